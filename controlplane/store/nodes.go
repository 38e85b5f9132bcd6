package store

import (
	"context"
	"slices"

	"github.com/felixlog/felix/controlplane/model"
)

// Nodes is the node catalogue (control plane 6).
type Nodes interface {
	Nodes(ctx context.Context) ([]model.Node, error)
	Node(ctx context.Context, id string) (model.Node, error)
	// RegisterNode makes the node live, on the store's clock: incarnation 0 for a
	// new id, one more for a known one, whose spec is replaced. One that was down
	// or left advances the placement token, so that a pass that read it as gone
	// cannot give away what it serves. Conflicts: AddressTaken, LacksFeature.
	RegisterNode(ctx context.Context, id string, spec model.NodeSpec) (model.Node, error)
	// PatchNode may move between live and draining only, else BadLifecycle.
	PatchNode(ctx context.Context, id string, p model.NodePatch) (model.Node, error)
	// SetLifecycle moves a node; changed is false where it was there already, and
	// nothing is published. down and left to draining is BadLifecycle; only
	// registration makes a node live that is down or left.
	SetLifecycle(ctx context.Context, id string, to model.Lifecycle) (n model.Node, changed bool, err error)
	// DeleteNode refuses, with InUse, a node that is live or draining or that any
	// assignment names.
	DeleteNode(ctx context.Context, id string) error
	// Heartbeat records one, on the store's clock and never backwards. An
	// incarnation below the recorded one is OldIncarnation. It revives nobody and
	// publishes nothing. The node is returned as it is.
	Heartbeat(ctx context.Context, id string, incarnation uint64) (model.Node, error)
	// ExpireStale marks down every live or draining node whose last heartbeat is
	// before the cutoff; two sweeps at once claim each node once.
	ExpireStale(ctx context.Context, beforeMillis uint64) ([]model.Expired, error)
	NodesSnapshot(ctx context.Context) (model.Snapshot[model.Node], error)
	NodeChanges(ctx context.Context, since uint64) (model.Page[model.NodeChange], error)

	// EnabledFeatures of the fleet, sorted. EnableFeature is never undone; it
	// answers with the serving nodes that lack the feature and enables it only
	// if there is none.
	EnabledFeatures(ctx context.Context) ([]string, error)
	EnableFeature(ctx context.Context, feature string) (lacking []string, err error)
}

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
