package memory

import (
	"context"
	"slices"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// What follows implements [store.Nodes], [store.Shards] and [store.Placement].

func nodes(s *State) *table[string, model.Node] { return s.nodes }

func assignments(s *State) *table[model.ShardKey, model.Assignment] { return s.assignments }

// Nodes lists all.
func (m *Machine) Nodes(context.Context) ([]model.Node, error) { return all(m, nodes, cloneNode) }

// Node finds one.
func (m *Machine) Node(_ context.Context, id string) (model.Node, error) {
	return find(m, nodes, id, "node", cloneNode)
}

// RegisterNode makes a node live.
func (m *Machine) RegisterNode(ctx context.Context, id string, spec model.NodeSpec) (model.Node, error) {
	return ask[model.Node](ctx, m, "register_node", registration{id, spec})
}

// PatchNode changes what an operator may change.
func (m *Machine) PatchNode(ctx context.Context, id string, p model.NodePatch) (model.Node, error) {
	return ask[model.Node](ctx, m, "patch_node", nodePatch{id, p})
}

// SetLifecycle moves a node.
func (m *Machine) SetLifecycle(ctx context.Context, id string, to model.Lifecycle) (model.Node, bool, error) {
	r, err := ask[lifecycleResult](ctx, m, "set_node_lifecycle", lifecycleBody{id, to})
	return r.Node, r.Changed, err
}

// DeleteNode forgets a node that is gone.
func (m *Machine) DeleteNode(ctx context.Context, id string) error {
	return m.tell(ctx, "delete_node", nodeID{id})
}

// Heartbeat records one.
func (m *Machine) Heartbeat(ctx context.Context, id string, incarnation uint64) (model.Node, error) {
	return ask[model.Node](ctx, m, "record_heartbeat", heartbeatBody{id, incarnation})
}

// ExpireStale takes silent nodes for down.
func (m *Machine) ExpireStale(ctx context.Context, beforeMillis uint64) ([]model.Expired, error) {
	// Most sweeps find nothing, and need no command to say so.
	stale, err := read(m, func(s *State) (bool, error) {
		return slices.ContainsFunc(s.nodes.sorted, func(n *model.Node) bool { return expired(n, beforeMillis) }), nil
	})
	if err != nil || !stale {
		return []model.Expired{}, err
	}
	return ask[[]model.Expired](ctx, m, "expire_stale_nodes", expiry{beforeMillis})
}

// EnabledFeatures lists those of the fleet.
func (m *Machine) EnabledFeatures(context.Context) ([]string, error) {
	return read(m, func(s *State) ([]string, error) { return slices.Clone(s.features), nil })
}

// EnableFeature enables one for ever.
func (m *Machine) EnableFeature(ctx context.Context, feature string) ([]string, error) {
	return ask[[]string](ctx, m, "enable_feature", featureBody{feature})
}

// Assignments lists all.
func (m *Machine) Assignments(context.Context) ([]model.Assignment, error) {
	return all(m, assignments, cloneAssignment)
}

// AssignmentsOf lists those of a node.
func (m *Machine) AssignmentsOf(_ context.Context, node string) ([]model.Assignment, error) {
	list, err := these(m, func(s *State) ([]*model.Assignment, error) {
		list := make([]*model.Assignment, 0, len(s.shardsOf[node]))
		for k := range s.shardsOf[node] {
			a, _ := s.assignments.get(k)
			list = append(list, a)
		}
		return list, nil
	}, cloneAssignment)
	slices.SortFunc(list, func(a, b model.Assignment) int { return a.ShardKey.Compare(b.ShardKey) })
	return list, err
}

// Assignment finds one.
func (m *Machine) Assignment(_ context.Context, k model.ShardKey) (model.Assignment, error) {
	return find(m, assignments, k, "assignment", cloneAssignment)
}

// PutAssignmentIf writes one if nobody else did.
func (m *Machine) PutAssignmentIf(ctx context.Context, a model.Assignment, expected *uint64, token uint64) (store.PutResult, error) {
	r, err := ask[putResult](ctx, m, "put_assignment_if", putBody{a, expected, token})
	if err != nil {
		return store.PutResult{}, err
	}
	return r.public(), nil
}

// PutAssignmentsIf writes many in one step.
func (m *Machine) PutAssignmentsIf(ctx context.Context, puts []store.Put, token uint64) ([]store.PutResult, error) {
	results, err := ask[[]putResult](ctx, m, "put_assignments_if", putsBody{puts, token})
	if err != nil {
		return nil, err
	}
	list := make([]store.PutResult, len(results))
	for i, r := range results {
		list[i] = r.public()
	}
	return list, nil
}

// public is the result as the store's interface has it.
func (r putResult) public() store.PutResult {
	p := store.PutResult{Outcome: r.Outcome, Token: r.Token, Current: r.Current}
	if r.Written != nil {
		p.Written = *r.Written
	}
	return p
}

// DeleteAssignment deletes one.
func (m *Machine) DeleteAssignment(ctx context.Context, k model.ShardKey) error {
	return m.tell(ctx, "delete_assignment", k)
}

// AssignmentsChanged is closed at the next change that is applied here.
func (m *Machine) AssignmentsChanged() <-chan struct{} {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.changed
}

// RecordReports judges and stores what a leader says.
func (m *Machine) RecordReports(ctx context.Context, sender string, reports []model.ReplicaReport) ([]model.ReportOutcome, error) {
	if len(reports) == 0 {
		return []model.ReportOutcome{}, nil
	}
	return ask[[]model.ReportOutcome](ctx, m, "record_reports", reportsBody{sender, reports})
}

// Reports lists the latest of each shard.
func (m *Machine) Reports(context.Context) ([]model.ReplicaReport, error) {
	list, err := these(m, func(s *State) ([]*model.ReplicaReport, error) {
		list := make([]*model.ReplicaReport, 0, len(s.reports))
		for _, r := range s.reports {
			list = append(list, r)
		}
		return list, nil
	}, cloneReport)
	slices.SortFunc(list, func(a, b model.ReplicaReport) int { return a.ShardKey.Compare(b.ShardKey) })
	return list, err
}

// MovesPaused says whether moves may not start.
func (m *Machine) MovesPaused(context.Context) (bool, error) {
	return read(m, func(s *State) (bool, error) { return s.movesPaused, nil })
}

// SetMovesPaused says it.
func (m *Machine) SetMovesPaused(ctx context.Context, paused bool) error {
	return m.tell(ctx, "set_moves_paused", pauseBody{paused})
}

// PlacementToken is what a pass reads first.
func (m *Machine) PlacementToken(context.Context) (uint64, error) {
	return read(m, func(s *State) (uint64, error) { return s.token, nil })
}

// AcquireLease asks who plans.
func (m *Machine) AcquireLease(ctx context.Context, holder string, ttl time.Duration) (store.Lease, error) {
	if m.hooks.AcquireLease != nil {
		return m.hooks.AcquireLease(ctx, holder, ttl)
	}
	return m.TakeLease(ctx, holder)
}

// TakeLease gives the lease to holder, whoever had it, and advances the
// placement token if that was another one. A holder that has it costs no
// command.
func (m *Machine) TakeLease(ctx context.Context, holder string) (store.Lease, error) {
	held, err := read(m, func(s *State) (bool, error) { return s.holder == holder, nil })
	if err != nil || held {
		return store.Lease{Held: held}, err
	}
	return ask[store.Lease](ctx, m, "take_lease", holderBody{holder})
}

// ReleaseLease gives the lease back.
func (m *Machine) ReleaseLease(ctx context.Context, holder string) error {
	if m.hooks.ReleaseLease != nil {
		return m.hooks.ReleaseLease(ctx, holder)
	}
	return m.tell(ctx, "release_lease", holderBody{holder})
}

// MayPlan says whether this instance may.
func (m *Machine) MayPlan(ctx context.Context) (bool, error) {
	_, err := look(m, func(*State) (bool, error) { return true, nil })
	if err != nil || m.hooks.MayPlan == nil {
		return err == nil, err
	}
	return m.hooks.MayPlan(ctx)
}
