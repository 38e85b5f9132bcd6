package cache

import (
	"hash/maphash"
	"math"
	"sync/atomic"
	"time"
)

const shardCount = 64

// DefaultMaxBytes bounds the entries of a broker where nothing is configured.
const DefaultMaxBytes = 256 << 20

// A Clock tells the time. Deadlines are wall time.
type Clock interface {
	Now() time.Time
}

// Config bounds the caches of one broker together.
type Config struct {
	// MaxBytes bounds keys, values and [EntryOverhead] of each; 0 or less
	// means the default.
	MaxBytes int64
	// MaxEntries bounds their number; 0 or less means no bound.
	MaxEntries int64
	// Seed starts the choice of what to look at for eviction.
	Seed uint64
}

// A Store holds the entries of all caches of a broker.
type Store struct {
	cfg   Config
	clock Clock
	hash  maphash.Seed

	bytes, entries     atomic.Int64
	version            atomic.Uint64
	ids                atomic.Uint64
	draws              atomic.Uint64
	evictions, expired atomic.Uint64

	shards [shardCount]shard
}

// NewStore returns an empty store. Versions start at the clock's wall
// microseconds, so that a version of an earlier run does not come again.
func NewStore(cfg Config, clock Clock) *Store {
	if cfg.MaxBytes <= 0 {
		cfg.MaxBytes = DefaultMaxBytes
	}
	if cfg.MaxEntries <= 0 {
		cfg.MaxEntries = math.MaxInt64
	}
	s := &Store{cfg: cfg, clock: clock, hash: maphash.MakeSeed()}
	s.version.Store(uint64(max(clock.Now().UnixMicro(), 0)))
	for i := range s.shards {
		s.shards[i].init()
	}
	return s
}

// NewCache returns the handle of a new, empty cache.
func (s *Store) NewCache(name Name, opts Options) *Cache {
	if opts.Shards == 0 {
		opts.Shards = 1
	}
	c := &Cache{store: s, id: s.ids.Add(1), name: name, opts: opts}
	c.active.Store(true)
	return c
}

func (s *Store) shardOf(cache uint64, key []byte) *shard {
	return &s.shards[(maphash.Bytes(s.hash, key)+mix(cache))%shardCount]
}

// live is e unless it has expired; then it is removed, and there is none. The
// shard's lock is held.
func (s *Store) live(sh *shard, e *entry) *entry {
	if e == nil || e.deadline == 0 || s.clock.Now().UnixMilli() < e.deadline {
		return e
	}
	s.expired.Add(1)
	s.drop(sh, e)
	return nil
}

// drop removes an entry and gives its room back. The shard's lock is held.
func (s *Store) drop(sh *shard, e *entry) {
	sh.remove(e)
	s.bytes.Add(-e.size())
	s.entries.Add(-1)
}

// reserve takes room for growth bytes and entries, or nothing.
func (s *Store) reserve(growth, entries int64) bool {
	if !take(&s.bytes, growth, s.cfg.MaxBytes) {
		return false
	}
	if !take(&s.entries, entries, s.cfg.MaxEntries) {
		s.bytes.Add(-growth)
		return false
	}
	return true
}

func take(used *atomic.Int64, n, limit int64) bool {
	if n == 0 {
		return true
	}
	if n < 0 {
		used.Add(n)
		return true
	}
	for {
		now := used.Load()
		if now > limit-n {
			return false
		}
		if used.CompareAndSwap(now, now+n) {
			return true
		}
	}
}

// mix spreads the bits of x (the finaliser of splitmix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Stats are the totals of a broker's caches.
type Stats struct {
	// Entries and Bytes are held now, those expired but not yet removed
	// included.
	Entries, Bytes int64
	// Hits and Misses count gets.
	Hits, Misses uint64
	// Puts and Deletes were applied.
	Puts, Deletes uint64
	// Evictions removed a live entry to make room; Expired entries were
	// removed after their deadline.
	Evictions, Expired uint64
}

// Stats reads the totals.
func (s *Store) Stats() Stats {
	st := Stats{
		Entries: s.entries.Load(), Bytes: s.bytes.Load(),
		Evictions: s.evictions.Load(), Expired: s.expired.Load(),
	}
	for i := range s.shards {
		sh := &s.shards[i]
		sh.mu.Lock()
		st.Hits += sh.hits
		st.Misses += sh.misses
		st.Puts += sh.puts
		st.Deletes += sh.deletes
		sh.mu.Unlock()
	}
	return st
}
