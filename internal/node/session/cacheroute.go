package session

import (
	"errors"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/broker/cache"
	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/wire"
)

// A cacheRoute is what one client stream knows about one cache: its handle
// and how much of it this identity may read and write.
type cacheRoute struct {
	cache           *cache.Cache
	tenant          string
	namespace, name string
	read, write     auth.Scope
}

// cacheRoute finds the route of a request, cached for the last cache used:
// a cache stream rarely changes its cache.
func (s *control) cacheRoute(tenant, namespace, name string) (*cacheRoute, error) {
	r := &s.lastCache
	if r.cache != nil && r.name == name && r.namespace == namespace && r.tenant == tenant && r.cache.Active() {
		return r, nil
	}
	if tenant != s.principal.Tenant {
		return nil, errTenant
	}
	if err := validNames("cache", namespace, name); err != nil {
		return nil, err
	}
	found := cacheRoute{
		tenant: tenant, namespace: namespace, name: name,
		read:  s.principal.Grants.CacheReadScope(namespace, name),
		write: s.principal.Grants.CacheWriteScope(namespace, name),
	}
	if found.read == auth.ScopeNone && found.write == auth.ScopeNone {
		return nil, errForbidden
	}
	c, err := s.c.srv.cache(tenant, namespace, name)
	if err != nil {
		return nil, err
	}
	found.cache = c
	s.lastCache = found
	return &s.lastCache, nil
}

func (s *control) mayRead(r *cacheRoute, key []byte) bool {
	return r.read == auth.ScopeAll || r.read == auth.ScopeKeys && s.principal.Grants.CanReadCache(r.namespace, r.name, string(key))
}

func (s *control) mayWrite(r *cacheRoute, key []byte) bool {
	return r.write == auth.ScopeAll || r.write == auth.ScopeKeys && s.principal.Grants.CanWriteCache(r.namespace, r.name, string(key))
}

// cache finds a registered cache. On a node that creates on first use, a
// cache in a known namespace appears here, within a limit; it is on the log
// where there is storage.
func (s *Server) cache(tenant, namespace, name string) (*cache.Cache, error) {
	c, err := s.broker.Cache(tenant, namespace, name)
	var missing *broker.NotFoundError
	if err == nil || !errors.As(err, &missing) {
		return c, err
	}
	full := broker.CacheName{Tenant: tenant, Namespace: namespace, Name: name}
	err = s.create(missing, firstUse{
		names: broker.StreamName(full),
		there: func() bool { _, err := s.broker.Cache(tenant, namespace, name); return err == nil },
		add:   func() error { return s.broker.AddCache(full, cache.Options{Durable: s.cfg.Storage}) },
	})
	if err != nil {
		return nil, scopeNotFound(err, tenant, namespace, name)
	}
	return s.broker.Cache(tenant, namespace, name)
}

// scopeNotFound words a missing cache as clients know it (wire 11).
func scopeNotFound(err error, tenant, namespace, name string) error {
	var missing *broker.NotFoundError
	if !errors.As(err, &missing) {
		return err
	}
	return refuse(wire.CodeNotFound, "cache scope not found: "+tenant+"/"+namespace+"/"+name)
}

// validCacheKey applies the bounds of keys at this door (decision 9).
func validCacheKey(key []byte) error {
	if err := wire.ValidateKey(key); err != nil {
		return invalidRequest(err.Error())
	}
	return nil
}
