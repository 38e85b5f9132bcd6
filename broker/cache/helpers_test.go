package cache

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// fakeClock is a clock that stands where it is put.
type fakeClock struct {
	mu     sync.Mutex
	now    time.Time
	timers map[*fakeTimer]bool
}

type fakeTimer struct {
	at time.Time
	f  func()
}

func newFakeClock() *fakeClock {
	return &fakeClock{now: time.UnixMilli(1_000_000), timers: map[*fakeTimer]bool{}}
}

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *fakeClock) AfterFunc(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &fakeTimer{at: c.now.Add(d), f: f}
	c.timers[t] = true
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		pending := c.timers[t]
		delete(c.timers, t)
		return pending
	}
}

// advance moves the time, by less than nothing too, and starts what is due.
func (c *fakeClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	for t := range c.timers {
		if !t.at.After(c.now) {
			delete(c.timers, t)
			go t.f()
		}
	}
}

func newCache(cfg Config) (*Cache, *fakeClock) {
	clock := newFakeClock()
	return NewStore(cfg, clock).NewCache(Name{"t", "n", "c"}, Options{}), clock
}

// ignored is a completion nobody waits for.
type ignored struct{}

func (ignored) Written(Result, error) {}

// written is the outcome of a write, for a test that waits for it.
type written struct {
	Result
	err  error
	done chan struct{}
}

func (w *written) Written(r Result, err error) {
	w.Result, w.err = r, err
	close(w.done)
}

// write writes and waits.
func (c *Cache) write(shard uint32, w Write) (Result, error) {
	out := &written{done: make(chan struct{})}
	c.Write(shard, w, out)
	<-out.done
	return out.Result, out.err
}

func (c *Cache) Put(key, value []byte, ttl TTL) (uint64, error) {
	r, err := c.write(0, Write{Op: Put, Key: key, Value: value, TTL: ttl})
	return r.Version, err
}

func (c *Cache) PutIf(key, value []byte, ttl TTL, cond Condition) (Result, error) {
	return c.write(0, Write{Op: Put, Key: key, Value: value, TTL: ttl, Condition: cond})
}

func (c *Cache) Delete(key []byte) (Item, bool, error) {
	r, err := c.write(0, Write{Op: Delete, Key: key})
	return r.Removed, r.HasRemoved, err
}

func (c *Cache) DeleteIf(key []byte, version uint64) (Result, error) {
	return c.write(0, Write{Op: Delete, Key: key, Condition: AtVersion(version)})
}

func mustPut(t testing.TB, c *Cache, key, value string, ttl TTL) uint64 {
	t.Helper()
	v, err := c.Put([]byte(key), []byte(value), ttl)
	if err != nil {
		t.Fatalf("put %q: %v", key, err)
	}
	return v
}

// get reads a key as "value" or "-" for none.
func get(t testing.TB, c *Cache, key string) string {
	t.Helper()
	item, ok, err := c.Get(0, []byte(key))
	if err != nil {
		t.Fatalf("get %q: %v", key, err)
	}
	if !ok {
		return "-"
	}
	if item.Value == nil {
		t.Fatalf("get %q: a value that is nil", key)
	}
	return fmt.Sprintf("%q", item.Value)
}

// check proves the bookkeeping of a store that nobody uses at the moment:
// totals are sums over the entries, and each entry is where it says.
func check(t interface{ Fatalf(string, ...any) }, s *Store) {
	var entries, bytes int64
	for i := range s.shards {
		sh := &s.shards[i]
		if len(sh.index) != len(sh.entries) {
			t.Fatalf("shard %d: %d keys, %d entries", i, len(sh.index), len(sh.entries))
		}
		timed := 0
		for slot, e := range sh.entries {
			if e.slot != slot || sh.index[e.name] != e || s.shardOf(e.name.scope, []byte(e.name.key)) != sh {
				t.Fatalf("shard %d: entry %v is misplaced", i, e.name)
			}
			if (e.deadline != 0) != (e.order >= 0) || e.order >= 0 && sh.expiry[e.order] != e {
				t.Fatalf("shard %d: entry %v with deadline %d is at %d of the expiry order", i, e.name, e.deadline, e.order)
			}
			if e.order >= 0 {
				timed++
				if e.deadline < sh.expiry[0].deadline || sh.earliest.Load() != sh.expiry[0].deadline {
					t.Fatalf("shard %d: deadline %d before the earliest, %d", i, e.deadline, sh.earliest.Load())
				}
			}
			entries++
			bytes += int64(len(e.name.key)) + int64(len(e.value)) + EntryOverhead
		}
		if timed != len(sh.expiry) {
			t.Fatalf("shard %d: %d entries with a deadline, %d in order", i, timed, len(sh.expiry))
		}
	}
	st := s.Stats()
	if st.Entries != entries || st.Bytes != bytes {
		t.Fatalf("counted %d entries and %d bytes, there are %d and %d", st.Entries, st.Bytes, entries, bytes)
	}
	if st.Entries > s.cfg.MaxEntries || st.Bytes > s.cfg.MaxBytes {
		t.Fatalf("%d entries of %d, %d bytes of %d", st.Entries, s.cfg.MaxEntries, st.Bytes, s.cfg.MaxBytes)
	}
}
