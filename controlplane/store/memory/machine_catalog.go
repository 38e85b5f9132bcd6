package memory

import (
	"context"

	"github.com/felixlog/felix/controlplane/model"
)

// What follows implements [store.Catalog].

// find copies a record.
func find[K comparable, V any](m *Machine, t func(*State) *table[K, V], k K, what string, clone func(*V) V) (V, error) {
	v, err := read(m, func(s *State) (*V, error) {
		v, ok := t(s).get(k)
		if !ok {
			return nil, missing(what)
		}
		return v, nil
	})
	if err != nil {
		var none V
		return none, err
	}
	return clone(v), nil
}

// all copies the records of a table.
func all[K comparable, V any](m *Machine, t func(*State) *table[K, V], clone func(*V) V) ([]V, error) {
	list, err := read(m, func(s *State) ([]*V, error) { return t(s).all(), nil })
	if err != nil {
		return nil, err
	}
	return cloned(list, clone), nil
}

// these copies records that are found under the lock.
func these[V any](m *Machine, list func(*State) ([]*V, error), clone func(*V) V) ([]V, error) {
	found, err := read(m, list)
	if err != nil {
		return nil, err
	}
	return cloned(found, clone), nil
}

func tenants(s *State) *table[string, model.Tenant]                   { return s.tenants }
func namespaces(s *State) *table[model.NamespaceKey, model.Namespace] { return s.namespaces }
func streams(s *State) *table[model.StreamKey, model.Stream]          { return s.streams }
func caches(s *State) *table[model.CacheKey, model.Cache]             { return s.caches }
func bridges(s *State) *table[model.Bridge, model.Bridge]             { return s.bridges }

// Tenants lists all.
func (m *Machine) Tenants(context.Context) ([]model.Tenant, error) { return all(m, tenants, same) }

// Tenant finds one.
func (m *Machine) Tenant(_ context.Context, id string) (model.Tenant, error) {
	return find(m, tenants, id, "tenant", same)
}

// CreateTenant makes one.
func (m *Machine) CreateTenant(ctx context.Context, t model.Tenant) error {
	return m.tell(ctx, "create_tenant", t)
}

// CreateTenantWithKey makes one and its first key.
func (m *Machine) CreateTenantWithKey(ctx context.Context, t model.Tenant, key model.SigningKey) error {
	return m.tell(ctx, "create_tenant_with_key", tenantWithKey{t, key})
}

// DeleteTenant deletes one, with all that is in it.
func (m *Machine) DeleteTenant(ctx context.Context, id string) error {
	return m.tell(ctx, "delete_tenant", tenantID{id})
}

// Namespaces lists those of a tenant.
func (m *Machine) Namespaces(_ context.Context, tenant string) ([]model.Namespace, error) {
	return these(m, func(s *State) ([]*model.Namespace, error) {
		if !s.tenants.has(tenant) {
			return nil, missing("tenant")
		}
		return s.namespaces.run(inTenant(tenant).namespaces), nil
	}, same)
}

// Namespace finds one.
func (m *Machine) Namespace(_ context.Context, k model.NamespaceKey) (model.Namespace, error) {
	return find(m, namespaces, k, "namespace", same)
}

// CreateNamespace makes one.
func (m *Machine) CreateNamespace(ctx context.Context, n model.Namespace) error {
	return m.tell(ctx, "create_namespace", n)
}

// DeleteNamespace deletes one, with all that is in it.
func (m *Machine) DeleteNamespace(ctx context.Context, k model.NamespaceKey) error {
	return m.tell(ctx, "delete_namespace", k)
}

// Streams lists those of a namespace.
func (m *Machine) Streams(_ context.Context, k model.NamespaceKey) ([]model.Stream, error) {
	return these(m, func(s *State) ([]*model.Stream, error) {
		return s.streams.run(inNamespace(k).streams), s.within(k)
	}, cloneStream)
}

// Stream finds one.
func (m *Machine) Stream(_ context.Context, k model.StreamKey) (model.Stream, error) {
	return find(m, streams, k, "stream", cloneStream)
}

// CreateStream makes one.
func (m *Machine) CreateStream(ctx context.Context, s model.Stream) error {
	return m.tell(ctx, "create_stream", s)
}

// PatchStream changes one.
func (m *Machine) PatchStream(ctx context.Context, k model.StreamKey, p model.StreamPatch) (model.Stream, error) {
	return ask[model.Stream](ctx, m, "patch_stream", streamPatch{k, p})
}

// DeleteStream deletes one, with its assignments.
func (m *Machine) DeleteStream(ctx context.Context, k model.StreamKey) error {
	return m.tell(ctx, "delete_stream", k)
}

// Caches lists those of a namespace.
func (m *Machine) Caches(_ context.Context, k model.NamespaceKey) ([]model.Cache, error) {
	return these(m, func(s *State) ([]*model.Cache, error) {
		return s.caches.run(inNamespace(k).caches), s.within(k)
	}, same)
}

// Cache finds one.
func (m *Machine) Cache(_ context.Context, k model.CacheKey) (model.Cache, error) {
	return find(m, caches, k, "cache", same)
}

// CreateCache makes one.
func (m *Machine) CreateCache(ctx context.Context, c model.Cache) error {
	return m.tell(ctx, "create_cache", c)
}

// PatchCache changes one.
func (m *Machine) PatchCache(ctx context.Context, k model.CacheKey, p model.CachePatch) (model.Cache, error) {
	return ask[model.Cache](ctx, m, "patch_cache", cachePatch{k, p})
}

// DeleteCache deletes one, with its assignments.
func (m *Machine) DeleteCache(ctx context.Context, k model.CacheKey) error {
	return m.tell(ctx, "delete_cache", k)
}

// CreateResources makes streams and caches, all or none.
func (m *Machine) CreateResources(ctx context.Context, k model.NamespaceKey, streams []model.Stream, caches []model.Cache) error {
	return m.tell(ctx, "create_resources", resources{k, streams, caches})
}

// Bridges lists all.
func (m *Machine) Bridges(context.Context) ([]model.Bridge, error) { return all(m, bridges, same) }

// PutBridge adds one.
func (m *Machine) PutBridge(ctx context.Context, b model.Bridge) error {
	return m.tell(ctx, "put_bridge", b)
}

// DeleteBridge removes one.
func (m *Machine) DeleteBridge(ctx context.Context, b model.Bridge) error {
	return m.tell(ctx, "delete_bridge", b)
}
