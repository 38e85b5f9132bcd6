package memory

import (
	"context"

	"github.com/felixlog/felix/controlplane/model"
)

// picture is a snapshot of a table before its records are copied.
type picture[V any] struct {
	records    []*V
	next       uint64
	tombstones []model.Tombstone
}

// snapshot reads records and head at one instant (control plane 5.2).
func snapshot[V any](m *Machine, take func(*State) picture[V], clone func(*V) V) (model.Snapshot[V], error) {
	p, err := read(m, func(s *State) (picture[V], error) { return take(s), nil })
	if err != nil {
		return model.Snapshot[V]{}, err
	}
	return model.Snapshot[V]{Items: cloned(p.records, clone), NextSeq: p.next, Tombstones: p.tombstones}, nil
}

// page reads changes and head at one instant.
func page[C any](m *Machine, f func(*State) *feed[C], since uint64, clone func(C) C) (model.Page[C], error) {
	p, err := read(m, func(s *State) (model.Page[C], error) {
		f := f(s)
		return model.Page[C]{Items: some(f.since(since, s.limits.ChangesPage)), NextSeq: f.next}, nil
	})
	for i := range p.Items {
		p.Items[i] = clone(p.Items[i])
	}
	return p, err
}

// TenantsSnapshot implements [store.Catalog].
func (m *Machine) TenantsSnapshot(context.Context) (model.Snapshot[model.Tenant], error) {
	return snapshot(m, func(s *State) picture[model.Tenant] {
		return picture[model.Tenant]{records: s.tenants.all(), next: s.tenantFeed.next}
	}, same)
}

// NamespacesSnapshot implements [store.Catalog].
func (m *Machine) NamespacesSnapshot(context.Context) (model.Snapshot[model.Namespace], error) {
	return snapshot(m, func(s *State) picture[model.Namespace] {
		return picture[model.Namespace]{records: s.namespaces.all(), next: s.namespaceFeed.next}
	}, same)
}

// StreamsSnapshot implements [store.Catalog].
func (m *Machine) StreamsSnapshot(context.Context) (model.Snapshot[model.Stream], error) {
	return snapshot(m, func(s *State) picture[model.Stream] {
		return picture[model.Stream]{s.streams.all(), s.streamFeed.next, s.streamTombs.all()}
	}, cloneStream)
}

// CachesSnapshot implements [store.Catalog].
func (m *Machine) CachesSnapshot(context.Context) (model.Snapshot[model.Cache], error) {
	return snapshot(m, func(s *State) picture[model.Cache] {
		return picture[model.Cache]{s.caches.all(), s.cacheFeed.next, s.cacheTombs.all()}
	}, same)
}

// NodesSnapshot implements [store.Nodes].
func (m *Machine) NodesSnapshot(context.Context) (model.Snapshot[model.Node], error) {
	return snapshot(m, func(s *State) picture[model.Node] {
		return picture[model.Node]{records: s.nodes.all(), next: s.nodeFeed.next}
	}, cloneNode)
}

// AssignmentsSnapshot implements [store.Shards].
func (m *Machine) AssignmentsSnapshot(context.Context) (model.Snapshot[model.Assignment], error) {
	return snapshot(m, func(s *State) picture[model.Assignment] {
		return picture[model.Assignment]{records: s.assignments.all(), next: s.assignmentFeed.next}
	}, cloneAssignment)
}

// TenantChanges implements [store.Catalog].
func (m *Machine) TenantChanges(_ context.Context, since uint64) (model.Page[model.TenantChange], error) {
	return page(m, func(s *State) *feed[model.TenantChange] { return &s.tenantFeed }, since, cloneTenantChange)
}

// NamespaceChanges implements [store.Catalog].
func (m *Machine) NamespaceChanges(_ context.Context, since uint64) (model.Page[model.NamespaceChange], error) {
	return page(m, func(s *State) *feed[model.NamespaceChange] { return &s.namespaceFeed }, since, cloneNamespaceChange)
}

// StreamChanges implements [store.Catalog].
func (m *Machine) StreamChanges(_ context.Context, since uint64) (model.Page[model.StreamChange], error) {
	return page(m, func(s *State) *feed[model.StreamChange] { return &s.streamFeed }, since, cloneStreamChange)
}

// CacheChanges implements [store.Catalog].
func (m *Machine) CacheChanges(_ context.Context, since uint64) (model.Page[model.CacheChange], error) {
	return page(m, func(s *State) *feed[model.CacheChange] { return &s.cacheFeed }, since, cloneCacheChange)
}

// NodeChanges implements [store.Nodes].
func (m *Machine) NodeChanges(_ context.Context, since uint64) (model.Page[model.NodeChange], error) {
	return page(m, func(s *State) *feed[model.NodeChange] { return &s.nodeFeed }, since, cloneNodeChange)
}

// AssignmentChanges implements [store.Shards].
func (m *Machine) AssignmentChanges(_ context.Context, since uint64) (model.Page[model.AssignmentChange], error) {
	return page(m, func(s *State) *feed[model.AssignmentChange] { return &s.assignmentFeed }, since, cloneAssignmentChange)
}
