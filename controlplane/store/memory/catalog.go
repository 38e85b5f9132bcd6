package memory

import (
	"errors"
	"fmt"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

func missing(what string) error { return &store.NotFoundError{What: what} }

type tenantID struct {
	TenantID string `json:"tenant_id"`
}

func (s *State) createTenant(t model.Tenant) error {
	if s.tenants.has(t.TenantID) {
		return store.Conflict(store.Exists, "tenant already exists")
	}
	s.addTenant(t, &identities{})
	return nil
}

// addTenant makes one that is not there, with what its identities rest on.
func (s *State) addTenant(t model.Tenant, i *identities) {
	s.tenants.put(&t)
	s.auth[t.TenantID] = i
	s.tokens[t.TenantID] = newRefreshTable()
	s.tenantFeed.add(func(seq uint64) model.TenantChange {
		return model.TenantChange{Seq: seq, Op: model.Created, TenantID: t.TenantID, Tenant: &t}
	})
}

type tenantWithKey struct {
	Tenant model.Tenant     `json:"tenant"`
	Key    model.SigningKey `json:"key"`
}

func (s *State) createTenantWithKey(b tenantWithKey) error {
	if s.tenants.has(b.Tenant.TenantID) {
		return store.Conflict(store.Exists, "tenant already exists")
	}
	i := &identities{}
	if err := errors.Join(store.CheckFirstKey(b.Key), i.ensureKey(b.Key)); err != nil {
		return err
	}
	s.addTenant(b.Tenant, i)
	return nil
}

func (s *State) deleteTenant(b tenantID) error {
	if !s.tenants.has(b.TenantID) {
		return missing("tenant")
	}
	s.clear(inTenant(b.TenantID))
	s.tenants.remove(b.TenantID)
	delete(s.auth, b.TenantID)
	delete(s.tokens, b.TenantID)
	s.tenantFeed.add(func(seq uint64) model.TenantChange {
		return model.TenantChange{Seq: seq, Op: model.Deleted, TenantID: b.TenantID}
	})
	return nil
}

func (s *State) createNamespace(n model.Namespace) error {
	if !s.tenants.has(n.TenantID) {
		return missing("tenant")
	}
	if s.namespaces.has(n.Key()) {
		return store.Conflict(store.Exists, "namespace already exists")
	}
	s.namespaces.put(&n)
	s.namespaceFeed.add(func(seq uint64) model.NamespaceChange {
		return model.NamespaceChange{Seq: seq, Op: model.Created, Key: n.Key(), Namespace: &n}
	})
	return nil
}

func (s *State) deleteNamespace(k model.NamespaceKey) error {
	if !s.namespaces.has(k) {
		return missing("namespace")
	}
	s.clear(inNamespace(k))
	return nil
}

// clear deletes what is in a tenant, or a namespace with all that is in it, in
// the order that [store.Catalog] promises.
func (s *State) clear(in scope) {
	for _, a := range s.assignments.cut(in.shards) {
		s.unassigned(a)
	}
	for _, gone := range s.streams.cut(in.streams) {
		s.streamDeleted(gone)
	}
	for _, gone := range s.caches.cut(in.caches) {
		s.cacheDeleted(gone)
	}
	for _, gone := range s.namespaces.cut(in.namespaces) {
		s.namespaceFeed.add(func(seq uint64) model.NamespaceChange {
			return model.NamespaceChange{Seq: seq, Op: model.Deleted, Key: gone.Key()}
		})
	}
}

// within checks that a namespace is there.
func (s *State) within(k model.NamespaceKey) error {
	switch {
	case s.namespaces.has(k):
		return nil
	case s.tenants.has(k.TenantID):
		return missing("namespace")
	default:
		return missing("tenant")
	}
}

type resources struct {
	Key     model.NamespaceKey `json:"key"`
	Streams []model.Stream     `json:"streams"`
	Caches  []model.Cache      `json:"caches"`
}

func (s *State) createResources(b resources) error {
	if err := s.within(b.Key); err != nil {
		return err
	}
	// All are checked before the first is made.
	streams := make(map[model.StreamKey]bool, len(b.Streams))
	for _, r := range b.Streams {
		k := r.Key()
		if k.TenantID != b.Key.TenantID || k.Namespace != b.Key.Namespace {
			return fmt.Errorf("stream %q is of another namespace", k.Stream)
		}
		if streams[k] || s.streams.has(k) {
			return store.Conflict(store.Exists, "stream %q already exists", k.Stream)
		}
		streams[k] = true
	}
	caches := make(map[model.CacheKey]bool, len(b.Caches))
	for _, r := range b.Caches {
		k := r.Key()
		if k.TenantID != b.Key.TenantID || k.Namespace != b.Key.Namespace {
			return fmt.Errorf("cache %q is of another namespace", k.Cache)
		}
		if caches[k] || s.caches.has(k) {
			return store.Conflict(store.Exists, "cache %q already exists", k.Cache)
		}
		caches[k] = true
	}
	for i := range b.Streams {
		s.addStream(&b.Streams[i])
	}
	for i := range b.Caches {
		s.addCache(&b.Caches[i])
	}
	return nil
}

func (s *State) putBridge(b model.Bridge) error {
	s.bridges.put(&b)
	return nil
}

func (s *State) deleteBridge(b model.Bridge) error {
	if !s.bridges.has(b) {
		return missing("bridge")
	}
	s.bridges.remove(b)
	return nil
}
