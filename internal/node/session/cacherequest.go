package session

import (
	"errors"

	"github.com/felixlog/felix/broker/cache"
	"github.com/felixlog/felix/wire"
)

// cacheRequest serves get, put, delete and the conditional forms (wire 11).
// Nothing here waits: read, look up, append the answer. A request without an
// id is the only one of its stream and ends it.
func (s *control) cacheRequest(m wire.Message) verdict {
	metrics, start := s.c.srv.metrics.Cache, s.c.srv.clock.Now()
	var err error
	oneShot := false
	switch m := m.(type) {
	case *wire.CacheGet:
		oneShot = !m.RequestID.Set
		err = s.cacheGet(m)
	case *wire.CachePut:
		oneShot = !m.RequestID.Set
		err = s.cachePut(m)
	case *wire.CacheDelete:
		oneShot = !m.RequestID.Set
		err = s.cacheDelete(m)
	case *wire.CachePutIf:
		err = s.cachePutIf(m)
	case *wire.CacheDeleteIf:
		err = s.cacheDeleteIf(m)
	}
	if err != nil {
		metrics.Errors.Inc()
		r := asCacheRefusal(err)
		s.refuse(r)
		// A foreign tenant or a missing right ends the stream (wire 8.1).
		if r.Code == wire.CodeForbidden || r.Code == wire.CodeUnauthenticated {
			return finish
		}
	}
	metrics.Latency.Observe(s.c.srv.clock.Now().Sub(start))
	if oneShot {
		return finished
	}
	return goOn
}

func (s *control) readable(tenant, namespace, name string, key []byte) (*cacheRoute, error) {
	r, err := s.keyRoute(tenant, namespace, name, key)
	if err == nil && !s.mayRead(r, key) {
		err = errForbidden
	}
	return r, err
}

func (s *control) writable(tenant, namespace, name string, key []byte) (*cacheRoute, error) {
	r, err := s.keyRoute(tenant, namespace, name, key)
	if err == nil && !s.mayWrite(r, key) {
		err = errForbidden
	}
	return r, err
}

func (s *control) keyRoute(tenant, namespace, name string, key []byte) (*cacheRoute, error) {
	if s.expired.Load() {
		return nil, errExpired
	}
	r, err := s.cacheRoute(tenant, namespace, name)
	if err != nil {
		return nil, err
	}
	return r, validCacheKey(key)
}

func (s *control) cacheGet(m *wire.CacheGet) error {
	r, err := s.readable(m.Tenant, m.Namespace, m.Cache, m.Key)
	if err != nil {
		return err
	}
	item, hit, err := r.cache.Get(m.Key)
	if err != nil {
		return err
	}
	answer := &s.cacheValue
	*answer = wire.CacheValue{Tenant: m.Tenant, Namespace: m.Namespace, Cache: m.Cache, Key: m.Key, RequestID: m.RequestID}
	if hit {
		answer.Value = wire.Some(item.Value)
		if s.offer.Has(wire.FeatureCacheConditional) {
			answer.Version = wire.Some(item.Version)
		}
	}
	s.answer(answer)
	return nil
}

func (s *control) cachePut(m *wire.CachePut) error {
	r, err := s.writable(m.Tenant, m.Namespace, m.Cache, m.Key)
	if err != nil {
		return err
	}
	if _, err := r.cache.Put(m.Key, m.Value, ttlOf(m.TTLMS)); err != nil {
		return err
	}
	if id, ok := m.RequestID.Get(); ok {
		s.cacheOK.RequestID = id
		s.answer(&s.cacheOK)
	} else {
		s.answer(&wire.OK{})
	}
	return nil
}

// cacheDelete answers the value it removed, or null; never a version.
func (s *control) cacheDelete(m *wire.CacheDelete) error {
	r, err := s.writable(m.Tenant, m.Namespace, m.Cache, m.Key)
	if err != nil {
		return err
	}
	item, removed, err := r.cache.Delete(m.Key)
	if err != nil {
		return err
	}
	answer := &s.cacheValue
	*answer = wire.CacheValue{Tenant: m.Tenant, Namespace: m.Namespace, Cache: m.Cache, Key: m.Key, RequestID: m.RequestID}
	if removed {
		answer.Value = wire.Some(item.Value)
	}
	s.answer(answer)
	return nil
}

func (s *control) cachePutIf(m *wire.CachePutIf) error {
	r, err := s.writable(m.Tenant, m.Namespace, m.Cache, m.Key)
	if err != nil {
		return err
	}
	cond := cache.AtVersion(m.Condition.Version)
	if m.Condition.Absent {
		cond = cache.Absent()
	}
	res, err := r.cache.PutIf(m.Key, m.Value, ttlOf(m.TTLMS), cond)
	if err != nil {
		return err
	}
	s.answerCondition(res, m.RequestID)
	return nil
}

func (s *control) cacheDeleteIf(m *wire.CacheDeleteIf) error {
	r, err := s.writable(m.Tenant, m.Namespace, m.Cache, m.Key)
	if err != nil {
		return err
	}
	res, err := r.cache.DeleteIf(m.Key, m.Version)
	if err != nil {
		return err
	}
	s.answerCondition(res, m.RequestID)
	return nil
}

func (s *control) answerCondition(res cache.Result, requestID uint64) {
	s.answer(&wire.CacheConditionResult{
		Applied:   res.Applied,
		Version:   wire.Optional[uint64]{Value: res.Version, Set: res.HasVersion},
		RequestID: requestID,
	})
}

func ttlOf(ms wire.Optional[uint64]) cache.TTL {
	if n, ok := ms.Get(); ok {
		return cache.Millis(n)
	}
	return cache.TTL{}
}

// asCacheRefusal words the errors of the cache room.
func asCacheRefusal(err error) *refusal {
	var ttl *cache.InvalidTTLError
	var size *cache.TooLargeError
	switch {
	case errors.As(err, &ttl), errors.As(err, &size):
		return invalidRequest(err.Error())
	case errors.Is(err, cache.ErrRemoved):
		return refuse(wire.CodeNotFound, err.Error())
	}
	return asRefusal(err)
}
