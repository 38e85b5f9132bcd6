package store

import (
	"context"

	"github.com/felixlog/felix/controlplane/model"
)

// Catalog is who exists. Creating what is there is a [*ConflictError] (Exists);
// creating inside what is not there, and changing or deleting what is not there,
// a [*NotFoundError]. Deleting a tenant or namespace deletes all that is in it,
// with a change, and for streams and caches a tombstone, for each record, in
// the order of their keys: assignments, then streams and caches, then
// namespaces, then the tenant. Deleting a stream or cache deletes its
// assignments and reports.
type Catalog interface {
	Tenants(ctx context.Context) ([]model.Tenant, error)
	Tenant(ctx context.Context, id string) (model.Tenant, error)
	// CreateTenant makes a tenant without a signing key: the first one is another
	// step. CreateTenantWithKey makes it with its current key in one, or leaves
	// nothing behind.
	CreateTenant(ctx context.Context, t model.Tenant) error
	CreateTenantWithKey(ctx context.Context, t model.Tenant, key model.SigningKey) error
	DeleteTenant(ctx context.Context, id string) error

	// Namespaces of a tenant; a tenant that is not there is a NotFoundError.
	Namespaces(ctx context.Context, tenant string) ([]model.Namespace, error)
	Namespace(ctx context.Context, k model.NamespaceKey) (model.Namespace, error)
	CreateNamespace(ctx context.Context, n model.Namespace) error
	DeleteNamespace(ctx context.Context, k model.NamespaceKey) error

	Streams(ctx context.Context, k model.NamespaceKey) ([]model.Stream, error)
	Stream(ctx context.Context, k model.StreamKey) (model.Stream, error)
	CreateStream(ctx context.Context, s model.Stream) error
	PatchStream(ctx context.Context, k model.StreamKey, p model.StreamPatch) (model.Stream, error)
	DeleteStream(ctx context.Context, k model.StreamKey) error

	Caches(ctx context.Context, k model.NamespaceKey) ([]model.Cache, error)
	Cache(ctx context.Context, k model.CacheKey) (model.Cache, error)
	CreateCache(ctx context.Context, c model.Cache) error
	PatchCache(ctx context.Context, k model.CacheKey, p model.CachePatch) (model.Cache, error)
	DeleteCache(ctx context.Context, k model.CacheKey) error

	// CreateResources creates streams and caches of one namespace, all or none.
	CreateResources(ctx context.Context, k model.NamespaceKey, streams []model.Stream, caches []model.Cache) error

	TenantsSnapshot(ctx context.Context) (model.Snapshot[model.Tenant], error)
	NamespacesSnapshot(ctx context.Context) (model.Snapshot[model.Namespace], error)
	StreamsSnapshot(ctx context.Context) (model.Snapshot[model.Stream], error)
	CachesSnapshot(ctx context.Context) (model.Snapshot[model.Cache], error)
	TenantChanges(ctx context.Context, since uint64) (model.Page[model.TenantChange], error)
	NamespaceChanges(ctx context.Context, since uint64) (model.Page[model.NamespaceChange], error)
	StreamChanges(ctx context.Context, since uint64) (model.Page[model.StreamChange], error)
	CacheChanges(ctx context.Context, since uint64) (model.Page[model.CacheChange], error)

	// Bridges between regions. Putting one that is there is nothing; deleting one
	// that is not a NotFoundError.
	Bridges(ctx context.Context) ([]model.Bridge, error)
	PutBridge(ctx context.Context, b model.Bridge) error
	DeleteBridge(ctx context.Context, b model.Bridge) error
}

// PatchedStream is a stream with what a patch changes of it.
func PatchedStream(s model.Stream, p model.StreamPatch) model.Stream {
	if p.Retention != nil {
		s.Retention = *p.Retention
	}
	if p.Consistency != nil {
		s.Consistency = *p.Consistency
	}
	if p.Delivery != nil {
		s.Delivery = *p.Delivery
	}
	if p.Durable != nil {
		s.Durable = *p.Durable
	}
	return s
}
