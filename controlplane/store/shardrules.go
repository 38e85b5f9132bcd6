package store

import (
	"math"
	"slices"

	"github.com/felixlog/felix/controlplane/model"
)

// JudgePut says what becomes of a conditional write whose placement token is
// the right one: the rules first, then the generation, then the step from one
// state to the next (control plane 7.7, 7.9). shards is how many the owner has,
// old the assignment there is, nil for none. The result has no token.
func JudgePut(p Put, shards uint32, registered func(node string) bool, old *model.Assignment) (PutResult, error) {
	a := p.Assignment
	a.Replicas = append([]string{}, a.Replicas...)
	if err := CheckAssignment(a, shards, registered); err != nil {
		return PutResult{}, err
	}
	switch {
	case old == nil && p.Expected != nil:
		return PutResult{Outcome: Stale}, nil
	case old == nil:
		a.Generation = 0
		return PutResult{Outcome: Written, Written: a}, nil
	case p.Expected == nil || *p.Expected != old.Generation:
		current := old.Generation
		return PutResult{Outcome: Stale, Current: &current}, nil
	case !follows(old.State, a.State):
		return PutResult{}, Conflict(BadAssignment, "an assignment that is %s cannot become %s", old.State, a.State)
	case old.Generation >= math.MaxInt64: // what a database counts to
		return PutResult{}, Conflict(BadAssignment, "the generations of the shard are used up")
	}
	a.Generation = old.Generation + 1
	return PutResult{Outcome: Written, Written: a}, nil
}

// CheckAssignment holds an assignment against what else is there: the number of
// shards of its owner, and the nodes that are registered (control plane 7.9).
// What it refuses is a [*ConflictError] (BadAssignment).
func CheckAssignment(a model.Assignment, shards uint32, registered func(node string) bool) error {
	switch {
	case a.Shard >= shards:
		return Conflict(BadAssignment, "shard %d is not one of the %d there are", a.Shard, shards)
	case !registered(a.Leader):
		return Conflict(BadAssignment, "leader %q is not a registered node", a.Leader)
	case a.State != model.Assigning && a.State != model.Active && a.State != model.ShardDraining:
		return Conflict(BadAssignment, "state %q is not known", a.State)
	}
	for i, r := range a.Replicas {
		switch {
		case !registered(r):
			return Conflict(BadAssignment, "replica %q is not a registered node", r)
		case r == a.Leader:
			return Conflict(BadAssignment, "leader %q is among the replicas", r)
		case slices.Contains(a.Replicas[:i], r):
			return Conflict(BadAssignment, "replica %q is there twice", r)
		}
	}
	if a.Successor != "" && !slices.Contains(a.Replicas, a.Successor) {
		return Conflict(BadAssignment, "successor %q is not a replica", a.Successor)
	}
	if a.Joining != "" && !slices.Contains(a.Replicas, a.Joining) {
		return Conflict(BadAssignment, "joining node %q is not a replica", a.Joining)
	}
	return nil
}

// follows says whether an assignment may go from one state to another (control
// plane 3.1).
func follows(from, to model.ShardState) bool {
	switch from {
	case model.Assigning:
		return true
	case model.Active:
		return to != model.Assigning
	default:
		return to != model.Active
	}
}

// NoOwner is the error of a write to a shard whose stream or cache is not there.
func NoOwner(k model.ShardKind) error {
	switch k {
	case model.StreamShard, model.CacheShard:
		return &NotFoundError{What: string(k)}
	}
	return Conflict(BadAssignment, "kind %q of shards is not known", k)
}

// JudgeReport says what becomes of a report (control plane 6.5). a is the
// assignment of its shard, nil for none.
func JudgeReport(sender string, r *model.ReplicaReport, a *model.Assignment) model.ReportOutcome {
	switch {
	case a == nil:
		return model.ReportUnassigned
	case a.Leader != sender:
		return model.ReportNotLeader
	case r.Generation > a.Generation:
		return model.ReportFutureGeneration
	case r.Generation < a.Generation:
		return model.ReportStale
	}
	return model.ReportAccepted
}
