package planner

import (
	"time"

	"github.com/felixlog/felix/controlplane/model"
)

// An Observer is told what the planner did, under the names of control plane
// 22. Calls are quick and come from one goroutine or several.
type Observer interface {
	ShardsPlaced(n int)                      // felix_shards_placed_total
	ShardsUnplaceable(n int)                 // felix_shards_unplaceable, of the last pass
	ShardMovesWaiting(n int)                 // felix_shard_moves_waiting, of the last pass
	ShardsUnderReplicated(n int)             // felix_shards_under_replicated, of the last pass
	ShardReconcileFailure()                  // felix_shard_reconcile_failures_total
	ShardMoveStep(step string)               // felix_shard_move_steps_total
	ShardMoveTimedOut()                      // felix_shard_moves_timed_out_total
	ShardAssignmentChange(op model.Op)       // felix_shard_assignment_changes_total, assigned and updated
	ShardAssignmentWriteConflict()           // felix_shard_assignment_write_conflicts_total
	PlacementWriteFenced()                   // felix_placement_writes_fenced_total
	PlacementLeaseHeld(held bool)            // felix_placement_lease_held
	PlacementLeaseTakeover()                 // felix_placement_lease_takeovers_total
	ShardMoveDuration(d time.Duration)       // felix_shard_move_duration_seconds, start to cut-over
	ShardMoveFence(d time.Duration)          // felix_shard_move_fence_seconds, fence to cut-over
	NodeExpiry(n int)                        // felix_node_expiry_total
	NodeExpiryFailure()                      // felix_node_expiry_failures_total
	NodeTransition(from, to model.Lifecycle) // felix_node_transitions_total
}

// nobody observes nothing.
type nobody struct{}

func (nobody) ShardsPlaced(int)                                {}
func (nobody) ShardsUnplaceable(int)                           {}
func (nobody) ShardMovesWaiting(int)                           {}
func (nobody) ShardsUnderReplicated(int)                       {}
func (nobody) ShardReconcileFailure()                          {}
func (nobody) ShardMoveStep(string)                            {}
func (nobody) ShardMoveTimedOut()                              {}
func (nobody) ShardAssignmentChange(model.Op)                  {}
func (nobody) ShardAssignmentWriteConflict()                   {}
func (nobody) PlacementWriteFenced()                           {}
func (nobody) PlacementLeaseHeld(bool)                         {}
func (nobody) PlacementLeaseTakeover()                         {}
func (nobody) ShardMoveDuration(time.Duration)                 {}
func (nobody) ShardMoveFence(time.Duration)                    {}
func (nobody) NodeExpiry(int)                                  {}
func (nobody) NodeExpiryFailure()                              {}
func (nobody) NodeTransition(model.Lifecycle, model.Lifecycle) {}
