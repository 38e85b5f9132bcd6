package store

import (
	"context"
	"time"

	"github.com/felixlog/felix/controlplane/model"
)

// PutResult is what became of a conditional write.
type PutResult struct {
	Outcome PutOutcome
	Written model.Assignment // as stored, with its generation
	Token   uint64           // the placement token after the call
	Current *uint64          // of Stale: the generation there is, nil for none
}

// PutOutcome is the outcome of a conditional write.
type PutOutcome string

// The outcomes (control plane 7.7).
const (
	Written PutOutcome = "written"
	Stale   PutOutcome = "stale"  // another generation than expected: skip the shard
	Fenced  PutOutcome = "fenced" // another token: end the pass
)

// MaxPuts is the most assignments that one PutAssignmentsIf writes.
const MaxPuts = 256

// A Put is one conditional write of many.
type Put struct {
	Assignment model.Assignment `json:"assignment"`
	Expected   *uint64          `json:"expected"` // the generation there must be, nil for no assignment
}

// Shards is who serves what.
type Shards interface {
	Assignments(ctx context.Context) ([]model.Assignment, error)
	// AssignmentsOf a node: those it leads or follows.
	AssignmentsOf(ctx context.Context, node string) ([]model.Assignment, error)
	Assignment(ctx context.Context, k model.ShardKey) (model.Assignment, error)
	// PutAssignmentIf writes a if the shard is still at the expected generation
	// (nil: still has none) and the placement token is still token, which a
	// written assignment advances by one. The generation of a is ignored. A
	// breach of control plane 7.9 is a ConflictError (BadAssignment): a shard
	// number the owner does not have, an unknown node, a leader among the
	// replicas, a repeat, a successor or joining node that is no replica, a
	// state that cannot follow. An owner that is gone is a NotFoundError.
	PutAssignmentIf(ctx context.Context, a model.Assignment, expected *uint64, token uint64) (PutResult, error)
	// PutAssignmentsIf is PutAssignmentIf for up to MaxPuts shards in one step:
	// in order, each at its own expected generation; a stale one is skipped, and
	// each of the others advances the token by one. Another token fences them
	// all. If one of them would be an error, none is written and that error is
	// returned. Results are in the order of the puts, and the token of each is
	// the one after the call.
	PutAssignmentsIf(ctx context.Context, puts []Put, token uint64) ([]PutResult, error)
	DeleteAssignment(ctx context.Context, k model.ShardKey) error
	AssignmentsSnapshot(ctx context.Context) (model.Snapshot[model.Assignment], error)
	AssignmentChanges(ctx context.Context, since uint64) (model.Page[model.AssignmentChange], error)
	// AssignmentsChanged returns a channel that is closed at the next assignment
	// change this instance makes or learns of by itself. Take it before reading.
	AssignmentsChanged() <-chan struct{}

	// RecordReports judges and stores what a leader reports, on the store's
	// clock, each shard in the same step as the check that the sender leads it:
	// one outcome a report, in order. The latest of the assignment's generation
	// replaces the one before. ReportedAtMillis is ignored.
	RecordReports(ctx context.Context, sender string, reports []model.ReplicaReport) ([]model.ReportOutcome, error)
	Reports(ctx context.Context) ([]model.ReplicaReport, error)
}

// Placement is what planners share (control plane 7.7, 7.8).
type Placement interface {
	MovesPaused(ctx context.Context) (bool, error)
	SetMovesPaused(ctx context.Context, paused bool) error
	PlacementToken(ctx context.Context) (uint64, error)
	// AcquireLease takes or renews the lease of the timed planner, judged by the
	// store's clock. A change of holder advances the placement token. Under Raft
	// it is confirmed leadership, whoever asks.
	AcquireLease(ctx context.Context, holder string, ttl time.Duration) (Lease, error)
	ReleaseLease(ctx context.Context, holder string) error
	// MayPlan says whether this instance may sweep and plan when woken: always,
	// but under Raft only as the confirmed leader.
	MayPlan(ctx context.Context) (bool, error)
}

// A Lease is the answer to who plans.
type Lease struct {
	Held      bool
	TakenOver bool // held now, and not before
}
