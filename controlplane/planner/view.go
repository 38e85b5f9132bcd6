package planner

import "github.com/felixlog/felix/controlplane/model"

// A PlanView is what a pass would do now (control plane 4.8). Shards that are
// kept are left out.
type PlanView struct {
	Paused bool           `json:"paused"`
	Items  []PlannedShard `json:"items"`
}

// A PlannedShard is what a pass would do with one shard.
type PlannedShard struct {
	model.ShardKey
	// Action is place, a step of a move, waiting or unplaceable.
	Action     string            `json:"action"`
	Assignment *model.Assignment `json:"assignment,omitempty"` // that would be written
	Code       string            `json:"code,omitempty"`       // the reason, for programs
	Reason     string            `json:"reason,omitempty"`     // the reason, for people
}

// A MovesView is the copies that hold a slot (control plane 4.8).
type MovesView struct {
	Paused bool        `json:"paused"`
	Items  []ShardMove `json:"items"`
}

// A ShardMove is one move, replacement or restoration in flight.
type ShardMove struct {
	model.ShardKey
	Leader          string           `json:"leader"`
	Destination     string           `json:"destination,omitempty"` // none for a fenced move that lost it
	Replacing       string           `json:"replacing,omitempty"`   // the follower that leaves for the destination
	Step            string           `json:"step"`                  // staged, fenced, replacing or restoring
	Reason          model.MoveReason `json:"reason,omitempty"`
	StartedAtMillis *uint64          `json:"started_at_millis,omitempty"`
	Generation      uint64           `json:"generation"`
	// LagRecords, CaughtUp and Drained are of a report at exactly this
	// generation; Drained only of a fenced move.
	LagRecords *uint64 `json:"lag_records,omitempty"`
	CaughtUp   bool    `json:"caught_up"`
	Drained    bool    `json:"drained"`
}

// A ReplicationView is the shards that do not have all their copies on brokers
// that serve, or whose leader does not serve (control plane 4.8).
type ReplicationView struct {
	UnderReplicated int                `json:"under_replicated"` // how many
	Items           []ShardReplication `json:"items"`
}

// A ShardReplication is the copies of one shard.
type ShardReplication struct {
	model.ShardKey
	Leader          string `json:"leader"`
	DesiredReplicas uint32 `json:"desired_replicas"` // the leader included
	CurrentReplicas uint32 `json:"current_replicas"` // on brokers that serve, without one that is being copied in
	UnderReplicated bool   `json:"under_replicated"`
	Unavailable     bool   `json:"unavailable,omitempty"` // nobody serves it
	Restoring       bool   `json:"restoring,omitempty"`   // a follower is being copied in
}

// A MoveResult is what an operator's call wrote, or would have written.
type MoveResult struct {
	Step       string           `json:"step"`
	Assignment model.Assignment `json:"assignment"`
	DryRun     bool             `json:"dry_run,omitempty"`
}

// A MoveRefusal says why an operator's call changed nothing (control plane 8.7).
type MoveRefusal struct {
	Status  int    // of HTTP: 404 or 409
	Code    string // of control plane 2.1
	Message string
}

func (r *MoveRefusal) Error() string { return r.Message }

// A NodeView is a node with what placement thinks of it (control plane 4.6).
type NodeView struct {
	Node      model.Node    `json:"node"`
	Placement NodePlacement `json:"placement"`
}

// NodePlacement is what placement thinks of a node.
type NodePlacement struct {
	Eligible       bool     `json:"eligible"` // may be given shards: there is no reason against it
	Routable       bool     `json:"routable"` // serves, and has renewed its lease
	Reasons        []string `json:"reasons"`
	HeartbeatAgeMS uint64   `json:"heartbeat_age_ms"`
}
