package mirror

import (
	"iter"
	"maps"

	"github.com/felixlog/felix/controlplane/model"
)

// touched is what a reconciliation has to look at: what changed since the last
// one, and what that one could not do. Tenants and namespaces are always looked
// at.
type touched struct {
	all     bool // everything
	streams map[model.StreamKey]struct{}
	caches  map[model.CacheKey]struct{}
	shards  map[model.ShardKey]struct{}
}

func newTouched() touched {
	return touched{
		streams: make(map[model.StreamKey]struct{}), caches: make(map[model.CacheKey]struct{}),
		shards: make(map[model.ShardKey]struct{}),
	}
}

// any says whether there is something to look at.
func (t *touched) any() bool {
	return t.all || len(t.streams)+len(t.caches)+len(t.shards) > 0
}

// stream touches a stream and its shards: who serves them may depend on it.
func (t *touched) stream(s model.Stream) {
	t.streams[s.Key()] = struct{}{}
	for n := range min(s.Shards, maxShards) {
		t.shard(model.ShardKey{TenantID: s.TenantID, Namespace: s.Namespace, Stream: s.Stream, Shard: n, Kind: model.StreamShard})
	}
}

// cache touches a cache and its shards.
func (t *touched) cache(c model.Cache) {
	t.caches[c.Key()] = struct{}{}
	for n := range min(c.Shards, maxShards) {
		t.shard(model.ShardKey{TenantID: c.TenantID, Namespace: c.Namespace, Stream: c.Cache, Shard: n, Kind: model.CacheShard})
	}
}

func (t *touched) shard(k model.ShardKey) { t.shards[k] = struct{}{} }

// among gives the keys of all that are touched, or, where everything is, all of
// them. The map may be written to meanwhile.
func among[K comparable, V any](everything bool, touched map[K]struct{}, all map[K]V) iter.Seq[K] {
	if everything {
		return maps.Keys(all)
	}
	return func(yield func(K) bool) {
		for k := range touched {
			if _, there := all[k]; there && !yield(k) {
				return
			}
		}
	}
}
