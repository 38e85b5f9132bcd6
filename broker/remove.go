package broker

import (
	"github.com/felixlog/felix/broker/cache"
	"github.com/felixlog/felix/broker/stream"
)

// RemoveTenant removes a tenant with its namespaces, streams and caches.
// Error: [*NotFoundError].
func (b *Broker) RemoveTenant(name string) error {
	c := &b.catalog
	c.mu.Lock()
	if _, ok := c.tenants[name]; !ok {
		c.mu.Unlock()
		return &NotFoundError{Kind: KindTenant, Name: name}
	}
	delete(c.tenants, name)
	for ns := range c.namespaces {
		if ns.tenant == name {
			delete(c.namespaces, ns)
		}
	}
	streams, caches := c.take(func(t, _ string) bool { return t == name })
	removed := c.tenantRemoved
	c.mu.Unlock()
	if removed != nil {
		removed(name)
	}
	b.end(streams, caches)
	return nil
}

// OnTenantRemoved has f called when a tenant is removed, before its streams and
// caches end, so that who serves its connections can say why. f must not block.
// There is one listener: a later call replaces it.
func (b *Broker) OnTenantRemoved(f func(tenant string)) {
	b.catalog.mu.Lock()
	defer b.catalog.mu.Unlock()
	b.catalog.tenantRemoved = f
}

// RemoveNamespace removes a namespace with its streams and caches. Error:
// [*NotFoundError].
func (b *Broker) RemoveNamespace(tenant, namespace string) error {
	c := &b.catalog
	c.mu.Lock()
	if err := c.within(tenant, namespace); err != nil {
		c.mu.Unlock()
		return err
	}
	delete(c.namespaces, namespaceName{tenant, namespace})
	streams, caches := c.take(func(t, n string) bool { return t == tenant && n == namespace })
	c.mu.Unlock()
	b.end(streams, caches)
	return nil
}

// RemoveStream removes a stream; what is on disk stays. Its handles refuse everything from then on
// with [stream.ErrRemoved]. Error: [*NotFoundError].
func (b *Broker) RemoveStream(name StreamName) error {
	c := &b.catalog
	c.mu.Lock()
	s, ok := c.streams[name]
	delete(c.streams, name)
	c.mu.Unlock()
	if !ok {
		return &NotFoundError{Kind: KindStream, Name: name.String()}
	}
	s.End(stream.ErrRemoved)
	return nil
}

// RemoveCache removes a cache and its entries. Its handles refuse everything
// from then on with [cache.ErrRemoved]. Error: [*NotFoundError].
func (b *Broker) RemoveCache(name CacheName) error {
	c := &b.catalog
	c.mu.Lock()
	ca, ok := c.caches[name]
	delete(c.caches, name)
	c.mu.Unlock()
	if !ok {
		return &NotFoundError{Kind: KindCache, Name: name.String()}
	}
	ca.End()
	return nil
}

// end deactivates what was taken out of the catalog.
func (b *Broker) end(streams []*stream.Stream, caches []*cache.Cache) {
	for _, s := range streams {
		s.End(stream.ErrRemoved)
	}
	for _, c := range caches {
		c.End()
	}
}
