package store

import (
	"fmt"
	"slices"

	"github.com/felixlog/felix/controlplane/model"
)

// CheckAssignment holds an assignment against what else is there: the number of
// shards of its owner, and the nodes that are registered (control plane 7.9).
// What it refuses is a [*ConflictError] (BadAssignment).
func CheckAssignment(a model.Assignment, shards uint32, registered func(node string) bool) error {
	switch {
	case a.Shard >= shards:
		return badAssignment("shard %d is not one of the %d there are", a.Shard, shards)
	case !registered(a.Leader):
		return badAssignment("leader %q is not a registered node", a.Leader)
	case a.State != model.Assigning && a.State != model.Active && a.State != model.ShardDraining:
		return badAssignment("state %q is not known", a.State)
	}
	for i, r := range a.Replicas {
		switch {
		case !registered(r):
			return badAssignment("replica %q is not a registered node", r)
		case r == a.Leader:
			return badAssignment("leader %q is among the replicas", r)
		case slices.Contains(a.Replicas[:i], r):
			return badAssignment("replica %q is there twice", r)
		}
	}
	if a.Successor != "" && !slices.Contains(a.Replicas, a.Successor) {
		return badAssignment("successor %q is not a replica", a.Successor)
	}
	if a.Joining != "" && !slices.Contains(a.Replicas, a.Joining) {
		return badAssignment("joining node %q is not a replica", a.Joining)
	}
	return nil
}

// Follows says whether an assignment may go from one state to another (control
// plane 3.1).
func Follows(from, to model.ShardState) bool {
	switch from {
	case model.Assigning:
		return true
	case model.Active:
		return to != model.Assigning
	default:
		return to != model.Active
	}
}

func badAssignment(format string, args ...any) error {
	return &ConflictError{Reason: BadAssignment, What: fmt.Sprintf(format, args...)}
}
