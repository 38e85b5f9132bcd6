package memory

import (
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// checkAssignment holds an assignment against what else is there (control plane
// 7.9).
func (s *State) checkAssignment(a model.Assignment) error {
	shards, ok := s.shardsIn(ownerOf(a.ShardKey))
	switch {
	case ok:
		return store.CheckAssignment(a, shards, s.nodes.has)
	case a.Kind == model.StreamShard:
		return missing("stream")
	case a.Kind == model.CacheShard:
		return missing("cache")
	default:
		return conflict(store.BadAssignment, "kind %q of shards is not known", a.Kind)
	}
}

// shardsIn is how many shards a stream or cache has.
func (s *State) shardsIn(o owner) (uint32, bool) {
	switch o.kind {
	case model.StreamShard:
		if r, ok := s.streams.get(model.StreamKey{TenantID: o.tenant, Namespace: o.namespace, Stream: o.name}); ok {
			return r.Shards, true
		}
	case model.CacheShard:
		if r, ok := s.caches.get(model.CacheKey{TenantID: o.tenant, Namespace: o.namespace, Cache: o.name}); ok {
			return r.Shards, true
		}
	}
	return 0, false
}
