package broker

import (
	"fmt"
	"iter"

	"github.com/felixlog/felix/broker/cache"
	"github.com/felixlog/felix/broker/placed"
	"github.com/felixlog/felix/broker/stream"
)

// A ShardID names a shard of a stream or a cache.
type ShardID struct {
	// Kind is KindStream or KindCache.
	Kind                    Kind
	Tenant, Namespace, Name string
	Shard                   uint32
}

func (id ShardID) String() string {
	return fmt.Sprintf("%s %s/%s/%s/%d", id.Kind, id.Tenant, id.Namespace, id.Name, id.Shard)
}

type (
	// A ShardState is how a shard stands with this broker (control plane 6.6).
	ShardState = placed.Status
	// NotServedError refuses a request to a shard that is not served here.
	NotServedError = placed.NotServedError
)

// A placeable is a stream or a cache, as orders about its shards see it.
type placeable interface {
	Assign(shard uint32, generation uint64) error
	Unassign(shard uint32, generation uint64, reason string) error
	Release(shard uint32, reason string) error
	Shards() uint32
	ShardStatus(shard uint32) placed.Status
}

var (
	_ placeable = (*stream.Stream)(nil)
	_ placeable = (*cache.Cache)(nil)
)

// Assign has a shard of a stream or cache with Placed served from now on; its
// log is opened in the background ([Broker.ShardStates] tells how far it is). An
// order whose generation is not above that of the newest one changes nothing
// and is no error. Errors: [*NotFoundError], [placed.ErrNotPlaced], and for a
// shard that there is not, *stream.NoShardError and *cache.ShardError.
func (b *Broker) Assign(id ShardID, generation uint64) error {
	return b.order(id, func(p placeable) error { return p.Assign(id.Shard, generation) })
}

// Unassign has a shard of a stream or cache with Placed served no longer. What
// lives on it ends with a [*NotServedError]; what was accepted before is
// finished, and its log is closed, in the background: the shard is draining
// until that is over. Its data stays on disk. Old orders and errors as
// [Broker.Assign].
func (b *Broker) Unassign(id ShardID, generation uint64, reason string) error {
	return b.order(id, func(p placeable) error { return p.Unassign(id.Shard, generation, reason) })
}

// Release is Unassign for who knows of no newer generation: the shard is absent
// from a snapshot, or generations began anew (control plane 5.3). All orders
// about it are forgotten, so that the next one counts whatever its generation.
// Errors as [Broker.Assign].
func (b *Broker) Release(id ShardID, reason string) error {
	return b.order(id, func(p placeable) error { return p.Release(id.Shard, reason) })
}

func (b *Broker) order(id ShardID, give func(placeable) error) error {
	p, err := b.placeable(id)
	if err != nil {
		return err
	}
	if err := give(p); err != nil {
		return fmt.Errorf("placement of %s: %w", id, err)
	}
	return nil
}

func (b *Broker) placeable(id ShardID) (placeable, error) {
	switch id.Kind {
	case KindStream:
		return b.Stream(id.Tenant, id.Namespace, id.Name)
	case KindCache:
		return b.Cache(id.Tenant, id.Namespace, id.Name)
	}
	return nil, fmt.Errorf("placement of %s: only streams and caches have shards", id)
}

// ShardState says how one shard stands with this broker. Error:
// [*NotFoundError], also for a shard that there is not.
func (b *Broker) ShardState(id ShardID) (ShardState, error) {
	p, err := b.placeable(id)
	if err != nil {
		return ShardState{}, err
	}
	if id.Shard >= p.Shards() {
		return ShardState{}, &NotFoundError{Kind: id.Kind, Name: fmt.Sprintf("%s/%s/%s/%d", id.Tenant, id.Namespace, id.Name, id.Shard)}
	}
	return p.ShardStatus(id.Shard), nil
}

// ShardStates lists the shards of all streams and caches with their states, in
// no order.
func (b *Broker) ShardStates() iter.Seq2[ShardID, ShardState] {
	return func(yield func(ShardID, ShardState) bool) {
		for id, p := range b.placeables() {
			for i := range p.Shards() {
				id.Shard = i
				if !yield(id, p.ShardStatus(i)) {
					return
				}
			}
		}
	}
}

func (b *Broker) placeables() map[ShardID]placeable {
	b.catalog.mu.RLock()
	defer b.catalog.mu.RUnlock()
	all := make(map[ShardID]placeable, len(b.catalog.streams)+len(b.catalog.caches))
	for n, s := range b.catalog.streams {
		all[ShardID{Kind: KindStream, Tenant: n.Tenant, Namespace: n.Namespace, Name: n.Name}] = s
	}
	for n, c := range b.catalog.caches {
		all[ShardID{Kind: KindCache, Tenant: n.Tenant, Namespace: n.Namespace, Name: n.Name}] = c
	}
	return all
}
