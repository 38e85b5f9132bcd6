package store

import (
	"slices"

	"github.com/felixlog/felix/controlplane/model"
)

// CheckFeatures refuses a node that lacks a feature the fleet relies on
// (LacksFeature).
func CheckFeatures(enabled, has []string) error {
	for _, f := range enabled {
		if !slices.Contains(has, f) {
			return Conflict(LacksFeature, "feature %s of the fleet is enabled, and the node does not have it: upgrade the node", f)
		}
	}
	return nil
}

// CheckIncarnation refuses the heartbeat of a registration that another one has
// replaced (OldIncarnation).
func CheckIncarnation(sent, recorded uint64) error {
	if sent >= recorded {
		return nil
	}
	return Conflict(OldIncarnation,
		"incarnation %d has been replaced by %d: another process has registered as this node", sent, recorded)
}

// CheckLifecycle refuses a move from one lifecycle to another that is no
// registration (control plane 3.1). The error is BadLifecycle.
func CheckLifecycle(from, to model.Lifecycle) error {
	switch to {
	case model.Live, model.Draining, model.Down, model.Left:
	default:
		return Conflict(BadLifecycle, "lifecycle %q is not known", to)
	}
	if to.Serving() && !from.Serving() {
		return Conflict(BadLifecycle, "node is %s: it comes back by registering", from)
	}
	return nil
}

// PatchedNode is a node with what an operator changes of it, or BadLifecycle.
func PatchedNode(n model.Node, p model.NodePatch) (model.Node, error) {
	if p.Lifecycle != nil {
		if !p.Lifecycle.Serving() {
			return n, Conflict(BadLifecycle, "a node can be set to live or draining only")
		}
		if err := CheckLifecycle(n.Status.Lifecycle, *p.Lifecycle); err != nil {
			return n, err
		}
		n.Status.Lifecycle = *p.Lifecycle
	}
	if p.Region != nil {
		n.Spec.Region = *p.Region
	}
	if p.Labels != nil {
		n.Spec.Labels = *p.Labels
		if n.Spec.Labels == nil {
			n.Spec.Labels = map[string]string{}
		}
	}
	if p.Capacity != nil {
		n.Spec.Capacity = *p.Capacity
	}
	return n, nil
}

// CheckDeletion refuses to forget a node that serves, or that so many
// assignments name (InUse).
func CheckDeletion(n model.Node, assignments int) error {
	if n.Status.Lifecycle.Serving() {
		return Conflict(InUse, "node is %s: deregister it first", n.Status.Lifecycle)
	}
	if assignments > 0 {
		return Conflict(InUse, "node is named by %d shard assignments: move them first", assignments)
	}
	return nil
}
