package cache

import (
	"sync"
	"sync/atomic"

	"github.com/felixlog/felix/broker/placed"
)

// A Name is the full name of a cache.
type Name struct {
	Tenant, Namespace, Name string
}

func (n Name) String() string { return n.Tenant + "/" + n.Namespace + "/" + n.Name }

// Options describe one cache. They do not change while it is registered.
type Options struct {
	// Shards is the number of parts keys are routed to; 0 means 1. In memory
	// all parts share one map.
	Shards uint32
	// Durable keeps the cache on the log, where it survives a restart, is
	// never evicted and can be watched. It needs a store with storage.
	Durable bool
	// UID is which creation of the name this is (control plane 4.4); it is
	// written beside the logs, and logs of another one are refused. Empty:
	// nobody knows, and nothing is checked.
	UID string
	// Placed has shards served only while they are assigned ([Cache.Assign]);
	// otherwise all are served at once.
	Placed bool
	// Copies is how many brokers are to keep each shard; 0 means 1. With more
	// no shard is served: they would not be kept.
	Copies uint32
}

// A Cache is the handle of one named cache. It is safe for concurrent use.
type Cache struct {
	store  *Store
	id     uint64
	name   Name
	opts   Options
	active atomic.Bool
	cause  atomic.Pointer[error] // why it ended

	// parts are its shards as they are served now; nil in memory where all
	// share one part of the map.
	parts []atomic.Pointer[part]

	// placing guards seats, and the parts against two changes at once.
	placing sync.Mutex
	seats   []placed.Seat // nil unless placed
}

// An Item is a value as it is stored.
type Item struct {
	// Value may be shared with other readers: it must not be modified. It is
	// not nil, and stays as it is when the key is overwritten or deleted.
	Value []byte
	// Version is that of the put that wrote the value: on the log its offset.
	Version uint64
	// ExpiresAtMillis is the unix millisecond at which the entry ends, 0 for
	// never.
	ExpiresAtMillis int64
}

// Name is the cache's full name.
func (c *Cache) Name() Name { return c.name }

// Options are those the cache was registered with, Shards at least 1.
func (c *Cache) Options() Options { return c.opts }

// Shards is the number of parts keys are routed to.
func (c *Cache) Shards() uint32 { return c.opts.Shards }

// Active says that the cache is registered.
func (c *Cache) Active() bool { return c.active.Load() }

// Get reads a key of a shard. In memory it allocates nothing, and on the log
// the value, which is the caller's. Errors: [ErrRemoved],
// [*placed.NotServedError], and on the log [*ShardError], [*UnavailableError]
// and those of the log: an error is never told as a miss.
func (c *Cache) Get(shard uint32, key []byte) (Item, bool, error) {
	if c.Durable() {
		return c.getLog(shard, key)
	}
	return c.getMemory(shard, key)
}

func (c *Cache) getMemory(shard uint32, key []byte) (Item, bool, error) {
	scope, err := c.scope(shard)
	if err != nil {
		return Item{}, false, err
	}
	s := c.store
	sh := s.shardOf(scope, key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e := s.live(sh, sh.index[scoped{scope, string(key)}])
	if e == nil {
		sh.misses++
		return Item{}, false, nil
	}
	sh.hits++
	e.used = s.version.Load()
	return e.item(), true, nil
}

// End deactivates the handle for good. In memory its entries are gone; what is
// on the log stays on disk, for a cache of the same name. Watches end with
// [ErrRemoved].
func (c *Cache) End() { c.Close(ErrRemoved) }

// Close is End for a broker that stops: watches end with cause, after what
// they have queued. Closing again does nothing.
func (c *Cache) Close(cause error) {
	c.placing.Lock()
	if !c.cause.CompareAndSwap(nil, &cause) {
		c.placing.Unlock()
		return
	}
	c.active.Store(false)
	served := c.served()
	c.placing.Unlock()
	if c.parts == nil {
		c.store.removeScope(c.id)
	}
	for _, p := range served {
		if p.log == nil {
			c.store.removeScope(p.scope)
		}
	}
	endLogs(served, cause)
}

// ended is why the cache serves no longer; nil while it does.
func (c *Cache) ended() error {
	if cause := c.cause.Load(); cause != nil {
		return *cause
	}
	return nil
}
