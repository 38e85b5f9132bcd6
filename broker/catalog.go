package broker

import (
	"sync"

	"github.com/felixlog/felix/broker/admission"
	"github.com/felixlog/felix/broker/cache"
	"github.com/felixlog/felix/broker/schedule"
	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/storage"
)

// Names and options of what a broker registers.
type (
	StreamName    = stream.Name
	StreamOptions = stream.Options
	CacheName     = cache.Name
	CacheOptions  = cache.Options
)

type namespaceName struct{ tenant, namespace string }

// A tenant is what publishes of one tenant share.
type tenant struct {
	queue   *schedule.Tenant
	account *admission.Account
}

// A catalog is the names a broker serves. Lookups take a read lock and
// allocate nothing; changes are rare.
type catalog struct {
	mu         sync.RWMutex
	closed     bool
	tenants    map[string]tenant
	namespaces map[namespaceName]struct{}
	streams    map[StreamName]*stream.Stream
	caches     map[CacheName]*cache.Cache
	// tenantRemoved hears of tenants that were removed; nil without a listener.
	tenantRemoved func(tenant string)
}

func (c *catalog) init() {
	c.tenants = make(map[string]tenant)
	c.namespaces = make(map[namespaceName]struct{})
	c.streams = make(map[StreamName]*stream.Stream)
	c.caches = make(map[CacheName]*cache.Cache)
}

// close empties the catalog for good.
func (c *catalog) close() ([]*stream.Stream, []*cache.Cache) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	streams, caches := c.take(func(string, string) bool { return true })
	c.init()
	return streams, caches
}

// take removes all streams and caches of matching namespaces; mu is held.
func (c *catalog) take(match func(tenant, namespace string) bool) (streams []*stream.Stream, caches []*cache.Cache) {
	for name, s := range c.streams {
		if match(name.Tenant, name.Namespace) {
			delete(c.streams, name)
			streams = append(streams, s)
		}
	}
	for name, ca := range c.caches {
		if match(name.Tenant, name.Namespace) {
			delete(c.caches, name)
			caches = append(caches, ca)
		}
	}
	return streams, caches
}

// within checks that a namespace is registered; mu is held.
func (c *catalog) within(tenant, namespace string) error {
	if c.closed {
		return ErrClosed
	}
	if _, ok := c.tenants[tenant]; !ok {
		return &NotFoundError{Kind: KindTenant, Name: tenant}
	}
	if _, ok := c.namespaces[namespaceName{tenant, namespace}]; !ok {
		return &NotFoundError{Kind: KindNamespace, Name: tenant + "/" + namespace}
	}
	return nil
}

// AddTenant registers a tenant; one that is registered stays as it is.
func (b *Broker) AddTenant(name string) error {
	c := &b.catalog
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	if _, ok := c.tenants[name]; !ok {
		c.tenants[name] = tenant{
			queue:   b.queue.NewTenant(),
			account: admission.NewAccount(name, b.cfg.quotaOf(name), b.cfg.QuotaBurst, b.clock.Now()),
		}
	}
	return nil
}

// AddNamespace registers a namespace of a registered tenant; one that is
// registered stays as it is. Error: [*NotFoundError].
func (b *Broker) AddNamespace(tenant, namespace string) error {
	c := &b.catalog
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	if _, ok := c.tenants[tenant]; !ok {
		return &NotFoundError{Kind: KindTenant, Name: tenant}
	}
	c.namespaces[namespaceName{tenant, namespace}] = struct{}{}
	return nil
}

// AddStream registers a stream in a registered namespace; one that is
// registered with the same options stays as it is, but for its retention, which
// becomes that of opts. The logs of a durable one are opened in the background:
// see [Broker.Opening]. Those of a placed one wait for [Broker.Assign]. Errors: [*NotFoundError], [*ConflictError],
// [*StorageRequiredError].
func (b *Broker) AddStream(name StreamName, opts StreamOptions) error {
	opts.Shards, opts.Copies = max(opts.Shards, 1), max(opts.Copies, 1)
	if err := storage.CheckUID(opts.UID); err != nil {
		return err
	}
	c := &b.catalog
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.within(name.Tenant, name.Namespace); err != nil {
		return err
	}
	if s, ok := c.streams[name]; ok {
		have := s.Options()
		if have == opts {
			return nil
		}
		have.Retention = opts.Retention
		if have != opts || !opts.Durable {
			return &ConflictError{Kind: KindStream, Name: name.String()}
		}
		return s.SetRetention(opts.Retention)
	}
	if opts.Durable && b.cfg.Storage == nil {
		return &StorageRequiredError{Kind: KindStream, Name: name.String()}
	}
	t := c.tenants[name.Tenant]
	s, err := b.hub.NewStream(name, opts, stream.Owner{Queue: t.queue, Account: t.account})
	if err != nil {
		return err
	}
	c.streams[name] = s
	return nil
}

// SetStreamRetention changes what a durable stream keeps, in logs that are open
// too. Errors: [*NotFoundError], [*NeedsLogError].
func (b *Broker) SetStreamRetention(name StreamName, r stream.Retention) error {
	s, err := b.Stream(name.Tenant, name.Namespace, name.Name)
	if err != nil {
		return err
	}
	return s.SetRetention(r)
}

// AddCache registers a cache in a registered namespace; one that is registered
// with the same options stays as it is. Errors: [*NotFoundError],
// [*ConflictError], [*StorageRequiredError].
func (b *Broker) AddCache(name CacheName, opts CacheOptions) error {
	opts.Shards, opts.Copies = max(opts.Shards, 1), max(opts.Copies, 1)
	if err := storage.CheckUID(opts.UID); err != nil {
		return err
	}
	c := &b.catalog
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.within(name.Tenant, name.Namespace); err != nil {
		return err
	}
	if ca, ok := c.caches[name]; ok {
		if ca.Options() != opts {
			return &ConflictError{Kind: KindCache, Name: name.String()}
		}
		return nil
	}
	if opts.Durable && b.cfg.Storage == nil {
		return &StorageRequiredError{Kind: KindCache, Name: name.String()}
	}
	c.caches[name] = b.caches.NewCache(name, opts)
	return nil
}

// Stream resolves a name. Error: [*NotFoundError].
func (b *Broker) Stream(tenant, namespace, name string) (*stream.Stream, error) {
	key := StreamName{Tenant: tenant, Namespace: namespace, Name: name}
	b.catalog.mu.RLock()
	s, ok := b.catalog.streams[key]
	b.catalog.mu.RUnlock()
	if !ok {
		return nil, &NotFoundError{Kind: KindStream, Name: key.String()}
	}
	return s, nil
}

// Cache resolves a name. Error: [*NotFoundError].
func (b *Broker) Cache(tenant, namespace, name string) (*cache.Cache, error) {
	key := CacheName{Tenant: tenant, Namespace: namespace, Name: name}
	b.catalog.mu.RLock()
	c, ok := b.catalog.caches[key]
	b.catalog.mu.RUnlock()
	if !ok {
		return nil, &NotFoundError{Kind: KindCache, Name: key.String()}
	}
	return c, nil
}
