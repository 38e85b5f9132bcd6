package cache

import "sync/atomic"

// A Name is the full name of a cache.
type Name struct {
	Tenant, Namespace, Name string
}

func (n Name) String() string { return n.Tenant + "/" + n.Namespace + "/" + n.Name }

// Options describe one cache. They do not change while it is registered.
type Options struct {
	// Shards is the number of parts keys are routed to; 0 means 1. It is kept
	// for whoever routes: in memory all parts share one map.
	Shards uint32
}

// A Cache is the handle of one named cache. It is safe for concurrent use.
type Cache struct {
	store  *Store
	id     uint64
	name   Name
	opts   Options
	active atomic.Bool
}

// An Item is a value as it is stored.
type Item struct {
	// Value is shared with other readers: it must not be modified. It is not
	// nil, and stays as it is when the key is overwritten or deleted.
	Value []byte
	// Version is that of the put that wrote the value.
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

// Get reads a key. It allocates nothing. Error: [ErrRemoved].
func (c *Cache) Get(key []byte) (Item, bool, error) {
	if !c.active.Load() {
		return Item{}, false, ErrRemoved
	}
	s := c.store
	sh := s.shardOf(c.id, key)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e := s.live(sh, sh.index[scoped{c.id, string(key)}])
	if e == nil {
		sh.misses++
		return Item{}, false, nil
	}
	sh.hits++
	e.used = s.version.Load()
	return e.item(), true, nil
}

// Put writes a copy of value and returns its version. Each put sets its own
// deadline: without a TTL the entry has none, whatever it had before. Errors:
// [*InvalidTTLError], [*TooLargeError], [ErrRemoved].
func (c *Cache) Put(key, value []byte, ttl TTL) (version uint64, err error) {
	r, err := c.put(key, value, ttl, Condition{})
	return r.Version, err
}

// Delete removes a key and returns what it removed. Error: [ErrRemoved].
func (c *Cache) Delete(key []byte) (Item, bool, error) {
	item, r, err := c.remove(key, Condition{})
	return item, r.Applied, err
}

// End deactivates the handle for good and lets go of the cache's entries.
func (c *Cache) End() {
	if !c.active.CompareAndSwap(true, false) {
		return
	}
	for i := range c.store.shards {
		c.store.shards[i].removeCache(c.store, c.id)
	}
}
