package placement

import "github.com/felixlog/felix/controlplane/model"

// An Action is what a decision does with a shard.
type Action string

// The actions: what is not a step of a move, and the steps (control plane 8.1).
const (
	Keep        Action = "keep"
	Place       Action = "place"       // a new shard, or a new leader for one that lost its own
	Waiting     Action = "waiting"     // something is due that cannot start yet
	Unplaceable Action = "unplaceable" // nobody serves the shard, and nobody may

	Stage    Action = "stage"     // a destination begins to copy
	Fence    Action = "fence"     // the destination is level: the leader stops taking writes
	CutOver  Action = "cut_over"  // the destination leads
	Abandon  Action = "abandon"   // the destination is gone or not needed any more
	TimedOut Action = "timed_out" // the destination took too long
	Reseat   Action = "reseat"    // a new follower begins to copy
	Seat     Action = "seat"      // the new follower is level: it is one
	Cancel   Action = "cancel"    // an operator ended a copy
	Retake   Action = "retake"    // the old leader takes writes again
	Discard  Action = "discard"   // an operator gave a lost log up
)

// Step says whether the action is a step of a move.
func (a Action) Step() bool {
	switch a {
	case Keep, Place, Waiting, Unplaceable:
		return false
	}
	return true
}

// A Code is the reason of a decision or a refusal, for programs.
type Code string

// The codes of decisions that write nothing.
const (
	NoLiveNode        Code = "no_live_node"
	NoNodeInRegion    Code = "no_node_in_region"
	AllAtMaxShards    Code = "all_at_max_shards"
	NoCaughtUpReplica Code = "no_caught_up_replica"
	OnlyCopy          Code = "only_copy"
	Settling          Code = "settling"
	Paused            Code = "paused"
	MoveLimit         Code = "move_limit"
	NoDestination     Code = "no_destination"
	NoReport          Code = "no_report"
)

// A Decision is what becomes of one shard.
type Decision struct {
	Key    model.ShardKey
	Action Action
	// Assignment is to be written if the shard is still at the generation
	// Expected, nil for none; it is nil where nothing is to be written.
	Assignment *model.Assignment
	Expected   *uint64
	// Before is the assignment that there is, of the input, nil for a new shard.
	Before *model.Assignment
	// Code and Reason say why nothing is written though something is due, or
	// what a step is for.
	Code   Code
	Reason string
}
