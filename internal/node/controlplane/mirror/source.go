package mirror

import (
	"context"
	"time"

	"github.com/felixlog/felix/controlplane/model"
)

// A Source is where the feeds come from: a client of the control plane. A wait
// above zero lets an answer with nothing new be held for so long.
type Source interface {
	TenantsSnapshot(ctx context.Context) (model.Snapshot[model.Tenant], error)
	NamespacesSnapshot(ctx context.Context) (model.Snapshot[model.Namespace], error)
	CachesSnapshot(ctx context.Context) (model.Snapshot[model.Cache], error)
	StreamsSnapshot(ctx context.Context) (model.Snapshot[model.Stream], error)
	AssignmentsSnapshot(ctx context.Context) (model.Snapshot[model.Assignment], error)
	TenantChanges(ctx context.Context, since uint64, wait time.Duration) (model.Page[model.TenantChange], error)
	NamespaceChanges(ctx context.Context, since uint64, wait time.Duration) (model.Page[model.NamespaceChange], error)
	CacheChanges(ctx context.Context, since uint64, wait time.Duration) (model.Page[model.CacheChange], error)
	StreamChanges(ctx context.Context, since uint64, wait time.Duration) (model.Page[model.StreamChange], error)
	AssignmentChanges(ctx context.Context, since uint64, wait time.Duration) (model.Page[model.AssignmentChange], error)
}

// A Target is a broker core as the mirror changes it. It is never asked to
// remove what it was not given. Removing a tenant or namespace takes with it
// all that is in it.
type Target interface {
	AddTenant(tenant string) error
	RemoveTenant(tenant string) error
	AddNamespace(k model.NamespaceKey) error
	RemoveNamespace(k model.NamespaceKey) error
	// AddStream adds a stream, or changes what may change of one that is there.
	// A change that cannot be made while the stream is served is an error.
	AddStream(s model.Stream) error
	RemoveStream(k model.StreamKey) error
	AddCache(c model.Cache) error
	RemoveCache(k model.CacheKey) error
	// Purge removes the data that bears the tombstone's uid, and no other.
	Purge(ctx context.Context, t model.Tombstone) (removed int, err error)
	// Assign has the shard served, Unassign not any more, each at a generation
	// above those of the orders before. Release is Unassign where no newer
	// generation is known, and forgets the older ones.
	Assign(k model.ShardKey, generation uint64) error
	Unassign(k model.ShardKey, generation uint64, reason string) error
	Release(k model.ShardKey, reason string) error
}

// Routes hear of every assignment that the picture gains, changes or loses.
type Routes interface {
	SetRoute(a model.Assignment)
	DropRoute(k model.ShardKey)
}
