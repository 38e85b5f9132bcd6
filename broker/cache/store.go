package cache

import (
	"hash/maphash"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"

	"github.com/felixlog/felix/broker/keyed"
	"github.com/felixlog/felix/broker/placed"
	"github.com/felixlog/felix/broker/steady"
	"github.com/felixlog/felix/storage"
	"github.com/felixlog/felix/storage/kvlog"
)

const shardCount = 64

// Defaults of a [Config].
const (
	DefaultMaxBytes        = 256 << 20
	DefaultCompactionRate  = kvlog.DefaultPace
	DefaultWatchQueue      = 1024
	DefaultWatchQueueBytes = 64 << 20
	DefaultWatchKeys       = 4 << 20
)

// Config sizes the caches of one broker. A number of zero or less means its
// default, if nothing else is said.
type Config struct {
	// MaxBytes bounds the caches in memory together: keys, values and
	// [EntryOverhead] of each.
	MaxBytes int64
	// MaxEntries bounds the number of their entries; 0 or less means no bound.
	MaxEntries int64
	// Seed starts the choice of what to look at for eviction.
	Seed uint64

	// Storage keeps the durable caches; without it they are unavailable. It
	// outlives the store.
	Storage *storage.Store
	// CompactionRate bounds what compaction of all caches together reads and
	// writes, in bytes a second; below 0 means no bound.
	CompactionRate int64
	// WatchQueue bounds the queue of one watch in changes, WatchQueueBytes in
	// bytes of keys and values. A change larger than that is taken by an empty
	// queue.
	WatchQueue      int
	WatchQueueBytes int64
	// WatchKeys bounds the keys that all watches together keep in mind because
	// their current values are still to be read, about 60 bytes each.
	WatchKeys int64
	// Logger is nil for silence.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if c.MaxBytes <= 0 {
		c.MaxBytes = DefaultMaxBytes
	}
	if c.MaxEntries <= 0 {
		c.MaxEntries = math.MaxInt64
	}
	if c.CompactionRate == 0 {
		c.CompactionRate = DefaultCompactionRate
	}
	if c.WatchQueue <= 0 {
		c.WatchQueue = DefaultWatchQueue
	}
	if c.WatchQueueBytes <= 0 {
		c.WatchQueueBytes = DefaultWatchQueueBytes
	}
	if c.WatchKeys <= 0 {
		c.WatchKeys = DefaultWatchKeys
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// A Store holds the entries of all caches of a broker.
type Store struct {
	cfg   Config
	clock *steady.Clock
	hash  maphash.Seed

	bytes, entries     atomic.Int64
	version            atomic.Uint64
	ids                atomic.Uint64
	draws              atomic.Uint64
	evictions, expired atomic.Uint64

	shards [shardCount]shard

	onLog logCounters
	sweep sweeper
	parts *keyed.Shared
	// snapshots is a place to take current values, heldKeys what watches hold.
	snapshots chan struct{}
	heldKeys  atomic.Int64

	// leaving is shards taken away that let go of their logs.
	leaving sync.WaitGroup

	mu sync.Mutex
	// newest is the shard on the log that has a name, until it has let go of
	// its logs.
	newest map[storage.Key]*logShard
}

// NewStore returns an empty store. Close it. Versions of caches in memory
// start at the clock's wall microseconds, so that one of an earlier run does
// not come again.
func NewStore(cfg Config, clock Clock) *Store {
	s := &Store{
		cfg:       cfg.withDefaults(),
		clock:     steady.New(clock),
		hash:      maphash.MakeSeed(),
		snapshots: make(chan struct{}, snapshotsAtOnce),
		newest:    make(map[storage.Key]*logShard),
	}
	s.version.Store(uint64(max(clock.Now().UnixMicro(), 0)))
	for i := range s.shards {
		s.shards[i].init()
	}
	s.sweep.store = s
	s.parts = keyed.NewShared(s.cfg.Storage, s.clock, s.cfg.CompactionRate)
	return s
}

// NewCache returns the handle of a new cache. In memory it is empty. On the
// log it is opened in the background, once the one that had the name before
// has ended, and holds what is on disk. The shards of a placed one wait to be
// assigned.
func (s *Store) NewCache(name Name, opts Options) *Cache {
	if opts.Shards == 0 {
		opts.Shards = 1
	}
	c := &Cache{store: s, id: s.ids.Add(1), name: name, opts: opts}
	c.active.Store(true)
	if opts.Placed {
		c.seats = make([]placed.Seat, opts.Shards)
	}
	if opts.Placed || opts.Durable || opts.Copies > 1 {
		c.parts = make([]atomic.Pointer[part], opts.Shards)
	}
	c.placing.Lock()
	defer c.placing.Unlock()
	for i := range c.parts {
		if opts.Placed {
			c.vacate(uint32(i), nil)
		} else {
			c.serve(uint32(i))
		}
	}
	return c
}

// Close ends what the store does in the background. Its caches are closed
// before it, and its storage after.
func (s *Store) Close() {
	s.leaving.Wait()
	s.sweep.close()
}

func (s *Store) shardOf(scope uint64, key []byte) *shard {
	return &s.shards[(maphash.Bytes(s.hash, key)+mix(scope))%shardCount]
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
