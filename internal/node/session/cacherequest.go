package session

import (
	"context"
	"hash/maphash"

	"github.com/felixlog/felix/broker/cache"
	"github.com/felixlog/felix/wire"
)

// cacheRequest serves get, put, delete, the conditional forms and counters
// (wire 11). A get of a cache in memory is read, look up, append the answer;
// a write of one is settled when the call returns. On the log a write is
// settled by the committer, and this goroutine goes on with the next request.
// A request without an id is the only one of its stream and ends it.
func (s *control) cacheRequest(ctx context.Context, m wire.Message) verdict {
	metrics, start := s.c.srv.metrics.Cache, s.c.srv.clock.Now()
	var err error
	oneShot := false
	switch m := m.(type) {
	case *wire.CacheGet:
		oneShot = !m.RequestID.Set
		err = s.cacheGet(ctx, m)
	case *wire.CachePut:
		oneShot = !m.RequestID.Set
		err = s.cachePut(ctx, m)
	case *wire.CacheDelete:
		oneShot = !m.RequestID.Set
		err = s.cacheDelete(ctx, m)
	case *wire.CachePutIf:
		err = s.cachePutIf(ctx, m)
	case *wire.CacheDeleteIf:
		err = s.cacheDeleteIf(ctx, m)
	case *wire.CounterAdd:
		err = s.counterAdd(ctx, m)
	case *wire.CounterGet:
		err = s.counterGet(ctx, m)
	}
	if err != nil {
		r := asCacheRefusal(err)
		metrics.Errors.Inc()
		metrics.Latency.Observe(s.c.srv.clock.Now().Sub(start))
		s.refuse(r)
		if r.ends() {
			return finish
		}
	}
	if oneShot {
		return finished
	}
	return goOn
}

// A cacheKey is where one key of a cache lives.
type cacheKey struct {
	*cacheRoute
	shard uint32
}

// readable finds a key that may be read, and waits until its shard serves.
func (s *control) readable(ctx context.Context, tenant, namespace, name string, key []byte) (cacheKey, error) {
	r, err := s.keyRoute(tenant, namespace, name, key)
	switch {
	case err != nil:
		return cacheKey{}, err
	case !s.mayRead(r, key):
		return cacheKey{}, errForbidden
	}
	return s.opened(ctx, r, key)
}

// writable finds a key that may be written, and waits until its shard serves.
func (s *control) writable(ctx context.Context, tenant, namespace, name string, key []byte) (cacheKey, error) {
	r, err := s.keyRoute(tenant, namespace, name, key)
	switch {
	case err != nil:
		return cacheKey{}, err
	case !s.mayWrite(r, key):
		return cacheKey{}, errForbidden
	}
	return s.opened(ctx, r, key)
}

func (s *control) opened(ctx context.Context, r *cacheRoute, key []byte) (cacheKey, error) {
	if !r.cache.Sharded() {
		return cacheKey{cacheRoute: r}, nil
	}
	k := cacheKey{r, r.shardOf(key)}
	return k, s.awaitReady(ctx, func(ctx context.Context) error { return r.cache.Ready(ctx, k.shard) })
}

func (s *control) keyRoute(tenant, namespace, name string, key []byte) (*cacheRoute, error) {
	if ended := s.rights.ended(); ended != nil {
		return nil, ended
	}
	r, err := s.cacheRoute(tenant, namespace, name)
	if err != nil {
		return nil, err
	}
	return r, validCacheKey(key)
}

// shardOf is the shard of a key (wire 11, 14).
func (r *cacheRoute) shardOf(key []byte) uint32 {
	return wire.ShardOf(key, true, r.cache.Shards(), wire.Modulo)
}

// hashOf is a key's hash among those being written. Equal keys of different
// caches only make a read wait that need not.
func (s *control) hashOf(key []byte) uint64 { return maphash.Bytes(s.c.srv.keySeed, key) }

// errEnded is the error of a request whose stream ended while it waited; no
// answer reaches anybody.
var errEnded = unauthenticated("stream ended")

func (s *control) cacheGet(ctx context.Context, m *wire.CacheGet) error {
	r, err := s.readable(ctx, m.Tenant, m.Namespace, m.Cache, m.Key)
	if err != nil {
		return err
	}
	s.awaitKey(ctx, m.Key)
	item, hit, err := r.cache.Get(r.shard, m.Key)
	if err != nil {
		return err
	}
	p := s.owe(formValue, m.RequestID)
	if p == nil {
		return errEnded
	}
	p.name(m.Tenant, m.Namespace, m.Cache, m.Key)
	p.found(item, hit)
	return nil
}

// name keeps what a cache_value repeats of its request.
func (p *owed) name(tenant, namespace, name string, key []byte) {
	p.names.tenant, p.names.namespace, p.names.cache = tenant, namespace, name
	p.names.key = append(p.names.key, key...)
}

// found settles a get.
func (p *owed) found(item cache.Item, hit bool) {
	p.ledger.answers.count(p, nil)
	p.ledger.out.mu.Lock()
	defer p.ledger.out.mu.Unlock()
	p.item, p.hit, p.versions = item, hit, true
	p.holdLocked(len(item.Value))
	p.ledger.settleLocked(p)
}

// write hands a write to the cache, with its answer owed.
func (s *control) write(r cacheKey, f form, requestID wire.Optional[uint64], w cache.Write) error {
	p := s.owe(f, requestID)
	if p == nil {
		return errEnded
	}
	if f == formValue {
		p.name(r.tenant, r.namespace, r.name, w.Key)
	}
	if !r.cache.Durable() {
		r.cache.Write(r.shard, w, p)
		return nil
	}
	s.turns.enterKey(p, s.hashOf(w.Key))
	r.cache.Write(r.shard, w, p)
	s.turns.left(p, s.c.srv.clock.Now())
	return nil
}

func (s *control) cachePut(ctx context.Context, m *wire.CachePut) error {
	r, err := s.writable(ctx, m.Tenant, m.Namespace, m.Cache, m.Key)
	if err != nil {
		return err
	}
	return s.write(r, formPut, m.RequestID, cache.Write{Op: cache.Put, Key: m.Key, Value: m.Value, TTL: ttlOf(m.TTLMS)})
}

// cacheDelete answers the value it removed, or null; never a version.
func (s *control) cacheDelete(ctx context.Context, m *wire.CacheDelete) error {
	r, err := s.writable(ctx, m.Tenant, m.Namespace, m.Cache, m.Key)
	if err != nil {
		return err
	}
	return s.write(r, formValue, m.RequestID, cache.Write{Op: cache.Delete, Key: m.Key})
}

func (s *control) cachePutIf(ctx context.Context, m *wire.CachePutIf) error {
	r, err := s.writable(ctx, m.Tenant, m.Namespace, m.Cache, m.Key)
	if err != nil {
		return err
	}
	cond := cache.AtVersion(m.Condition.Version)
	if m.Condition.Absent {
		cond = cache.Absent()
	}
	return s.write(r, formCondition, wire.Some(m.RequestID), cache.Write{Op: cache.Put, Key: m.Key, Value: m.Value, TTL: ttlOf(m.TTLMS), Condition: cond})
}

func (s *control) cacheDeleteIf(ctx context.Context, m *wire.CacheDeleteIf) error {
	r, err := s.writable(ctx, m.Tenant, m.Namespace, m.Cache, m.Key)
	if err != nil {
		return err
	}
	return s.write(r, formCondition, wire.Some(m.RequestID), cache.Write{Op: cache.Delete, Key: m.Key, Condition: cache.AtVersion(m.Version)})
}

func ttlOf(ms wire.Optional[uint64]) cache.TTL {
	if n, ok := ms.Get(); ok {
		return cache.Millis(n)
	}
	return cache.TTL{}
}
