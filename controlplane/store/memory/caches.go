package memory

import (
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

func (s *State) createCache(r model.Cache) error {
	if err := s.within(model.NamespaceKey{TenantID: r.TenantID, Namespace: r.Namespace}); err != nil {
		return err
	}
	if s.caches.has(r.Key()) {
		return store.Conflict(store.Exists, "cache already exists")
	}
	s.addCache(&r)
	return nil
}

func (s *State) addCache(r *model.Cache) {
	s.caches.put(r)
	s.cacheFeed.add(func(seq uint64) model.CacheChange {
		return model.CacheChange{Seq: seq, Op: model.Created, Key: r.Key(), Cache: r}
	})
}

type cachePatch struct {
	Key   model.CacheKey   `json:"key"`
	Patch model.CachePatch `json:"patch"`
}

// patchCache publishes nothing where nothing changes.
func (s *State) patchCache(b cachePatch) (model.Cache, error) {
	old, ok := s.caches.get(b.Key)
	if !ok {
		return model.Cache{}, missing("cache")
	}
	r := *old
	if b.Patch.DisplayName != nil {
		r.DisplayName = *b.Patch.DisplayName
	}
	if r != *old {
		s.caches.put(&r)
		s.cacheFeed.add(func(seq uint64) model.CacheChange {
			return model.CacheChange{Seq: seq, Op: model.Updated, Key: b.Key, Cache: &r}
		})
	}
	return r, nil
}

func (s *State) deleteCache(k model.CacheKey) error {
	gone, ok := s.caches.get(k)
	if !ok {
		return missing("cache")
	}
	s.disown(ofCache(k))
	s.caches.remove(k)
	s.cacheDeleted(gone)
	return nil
}

// cacheDeleted publishes the end of a cache.
func (s *State) cacheDeleted(r *model.Cache) {
	t := model.Tombstone{
		Kind: model.CacheShard, TenantID: r.TenantID, Namespace: r.Namespace, Name: r.Cache,
		UID: r.UID, DeletedAtMillis: s.now,
	}
	s.cacheTombs.add(t)
	s.cacheFeed.add(func(seq uint64) model.CacheChange {
		return model.CacheChange{Seq: seq, Op: model.Deleted, Key: r.Key(), Tombstone: &t}
	})
}
