package mirror

import (
	"context"
	"sync"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// A source reads a store as a client would, and fails on demand.
type source struct {
	mu    sync.Mutex
	store store.Store
	fail  func(call string) error // "streams snapshot", "streams changes"
	calls map[string]int
	waits bool // changes are held as long as asked for
	// far is how long a call takes; a change that is waited for ends the wait.
	far time.Duration
}

func newSource(s store.Store) *source {
	return &source{store: s, calls: make(map[string]int)}
}

func (s *source) at(call string) (store.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[call]++
	if s.fail != nil {
		if err := s.fail(call); err != nil {
			return nil, err
		}
	}
	return s.store, nil
}

func (s *source) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *source) count(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[call]
}

func snap[T any](s *source, name string, read func(store.Store) (model.Snapshot[T], error)) (model.Snapshot[T], error) {
	st, err := s.at(name + " snapshot")
	if err != nil {
		return model.Snapshot[T]{}, err
	}
	return read(st)
}

func page[T any](ctx context.Context, s *source, name string, wait time.Duration, read func(store.Store) (model.Page[T], error)) (model.Page[T], error) {
	call := name + " changes"
	if wait > 0 {
		call = name + " long-poll"
	}
	st, err := s.at(call)
	if err != nil {
		return model.Page[T]{}, err
	}
	s.mu.Lock()
	held, far := wait > 0 && s.waits, s.far
	s.mu.Unlock()
	if held {
		pause(ctx, wait)
	}
	if far > 0 {
		defer pause(ctx, far/2)
		pause(ctx, far/2)
		for until := time.Now().Add(wait); time.Now().Before(until) && ctx.Err() == nil; pause(ctx, far/10) {
			if p, err := read(st); err != nil || len(p.Items) > 0 {
				return p, err
			}
		}
	}
	return read(st)
}

func (s *source) TenantsSnapshot(ctx context.Context) (model.Snapshot[model.Tenant], error) {
	return snap(s, "tenants", func(st store.Store) (model.Snapshot[model.Tenant], error) { return st.TenantsSnapshot(ctx) })
}

func (s *source) NamespacesSnapshot(ctx context.Context) (model.Snapshot[model.Namespace], error) {
	return snap(s, "namespaces", func(st store.Store) (model.Snapshot[model.Namespace], error) { return st.NamespacesSnapshot(ctx) })
}

func (s *source) CachesSnapshot(ctx context.Context) (model.Snapshot[model.Cache], error) {
	return snap(s, "caches", func(st store.Store) (model.Snapshot[model.Cache], error) { return st.CachesSnapshot(ctx) })
}

func (s *source) StreamsSnapshot(ctx context.Context) (model.Snapshot[model.Stream], error) {
	return snap(s, "streams", func(st store.Store) (model.Snapshot[model.Stream], error) { return st.StreamsSnapshot(ctx) })
}

func (s *source) AssignmentsSnapshot(ctx context.Context) (model.Snapshot[model.Assignment], error) {
	return snap(s, "assignments", func(st store.Store) (model.Snapshot[model.Assignment], error) { return st.AssignmentsSnapshot(ctx) })
}

func (s *source) TenantChanges(ctx context.Context, since uint64, wait time.Duration) (model.Page[model.TenantChange], error) {
	return page(ctx, s, "tenants", wait, func(st store.Store) (model.Page[model.TenantChange], error) { return st.TenantChanges(ctx, since) })
}

func (s *source) NamespaceChanges(ctx context.Context, since uint64, wait time.Duration) (model.Page[model.NamespaceChange], error) {
	return page(ctx, s, "namespaces", wait, func(st store.Store) (model.Page[model.NamespaceChange], error) {
		return st.NamespaceChanges(ctx, since)
	})
}

func (s *source) CacheChanges(ctx context.Context, since uint64, wait time.Duration) (model.Page[model.CacheChange], error) {
	return page(ctx, s, "caches", wait, func(st store.Store) (model.Page[model.CacheChange], error) { return st.CacheChanges(ctx, since) })
}

func (s *source) StreamChanges(ctx context.Context, since uint64, wait time.Duration) (model.Page[model.StreamChange], error) {
	return page(ctx, s, "streams", wait, func(st store.Store) (model.Page[model.StreamChange], error) { return st.StreamChanges(ctx, since) })
}

func (s *source) AssignmentChanges(ctx context.Context, since uint64, wait time.Duration) (model.Page[model.AssignmentChange], error) {
	return page(ctx, s, "assignments", wait, func(st store.Store) (model.Page[model.AssignmentChange], error) {
		return st.AssignmentChanges(ctx, since)
	})
}
