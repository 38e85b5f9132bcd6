package cache

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"testing"
	"time"
)

// A mode is one way to keep a cache. again is the cache after whatever must
// not change what it holds.
type mode struct {
	name string
	open func(t *testing.T) (c *Cache, clock *fakeClock, again func(*Cache) *Cache)
}

func modes() []mode {
	durable := func(again func(*testing.T, *disk, *Cache) *Cache) func(t *testing.T) (*Cache, *fakeClock, func(*Cache) *Cache) {
		return func(t *testing.T) (*Cache, *fakeClock, func(*Cache) *Cache) {
			d := newDisk(t, Config{})
			return d.cache("c", 1), d.clock, func(c *Cache) *Cache { return again(t, d, c) }
		}
	}
	return []mode{
		{name: "memory", open: func(t *testing.T) (*Cache, *fakeClock, func(*Cache) *Cache) {
			c, clock := newCache(Config{})
			return c, clock, func(c *Cache) *Cache { return c }
		}},
		{name: "log", open: durable(func(_ *testing.T, _ *disk, c *Cache) *Cache { return c })},
		{name: "log, reopened", open: durable(func(_ *testing.T, d *disk, c *Cache) *Cache { return d.again(c) })},
		{name: "log, compacted", open: durable(func(t *testing.T, _ *disk, c *Cache) *Cache {
			c.compact(t, 0)
			return c
		})},
		{name: "log, compacted and reopened", open: durable(func(t *testing.T, d *disk, c *Cache) *Cache {
			c.compact(t, 0)
			return d.again(c)
		})},
	}
}

// TTLs at the edges of the number space have one result, whatever the mode: a
// refused put leaves the old value and the old deadline.
func TestTTLEdgesInAllModes(t *testing.T) {
	now := newFakeClock().Now().UnixMilli()
	most := uint64(math.MaxInt64 - now)
	edges := []struct {
		ttl TTL
		ok  bool
	}{
		{TTL{}, true},
		{Millis(0), false},
		{Millis(1), true},
		{Millis(1<<53 - 1), true},
		{Millis(1 << 53), true},
		{Millis(1<<53 + 1), true},
		{Millis(most), true},
		{Millis(most + 1), false},
		{Millis(1<<63 - 1), false},
		{Millis(1 << 63), false},
		{Millis(math.MaxUint64), false},
	}
	for _, m := range modes() {
		for _, op := range []string{"put", "put_if"} {
			c, clock, again := m.open(t)
			for i, e := range edges {
				key := fmt.Append(nil, i)
				old, err := c.Put(key, []byte("old"), Millis(1000))
				if err != nil {
					t.Fatal(err)
				}
				w := Write{Key: key, Value: []byte("new"), TTL: e.ttl}
				if op == "put_if" {
					w.Condition = AtVersion(old)
				}
				r, err := c.write(0, w)
				var invalid *InvalidTTLError
				if e.ok != (err == nil && r.Applied) || err != nil && !errors.As(err, &invalid) {
					t.Errorf("%s: %s with ttl %d: %+v, %v", m.name, op, e.ttl.millis, r, err)
				}
			}
			c = again(c)
			for i, e := range edges {
				want, ends := "old", now+1000
				if e.ok {
					want, ends = "new", 0
					if e.ttl.set {
						ends = now + int64(e.ttl.millis)
					}
				}
				item, found, err := c.Get(0, fmt.Append(nil, i))
				if err != nil || !found || string(item.Value) != want || item.ExpiresAtMillis != ends {
					t.Errorf("%s: %s with ttl %d: %q until %d (%v, %v), want %q until %d", m.name, op, e.ttl.millis, item.Value, item.ExpiresAtMillis, found, err, want, ends)
				}
			}
			clock.advance(time.Second)
			c = again(c)
			for i, e := range edges {
				_, found, err := c.Get(0, fmt.Append(nil, i))
				if live := e.ok && e.ttl.millis != 1; err != nil || found != live {
					t.Errorf("%s: %s with ttl %d: found %v (%v) a second later", m.name, op, e.ttl.millis, found, err)
				}
			}
		}
	}
}

// The last accepted put alone decides when a key ends, in every mode and with
// a restart or a compaction between any two steps.
func TestEachPutSetsItsOwnDeadlineInAllModes(t *testing.T) {
	ttls := []TTL{{}, Millis(10), Millis(60_000)}
	for _, m := range modes() {
		for _, op := range []string{"put", "put_if"} {
			c, clock, again := m.open(t)
			key := func(a, b TTL) string { return fmt.Sprint(a.millis, "-", b.millis) }
			versions := map[string]uint64{}
			each := func(f func(a, b TTL, key string)) {
				for _, a := range ttls {
					for _, b := range ttls {
						f(a, b, key(a, b))
					}
				}
			}
			each(func(a, _ TTL, key string) { versions[key] = mustPut(t, c, key, "1", a) })
			c = again(c)
			clock.advance(5 * time.Millisecond)
			each(func(_, b TTL, key string) {
				w := Write{Key: []byte(key), Value: []byte("2"), TTL: b}
				if op == "put_if" {
					w.Condition = AtVersion(versions[key])
				}
				if r, err := c.write(0, w); err != nil || !r.Applied {
					t.Fatalf("%s: %s %s: %+v, %v", m.name, op, key, r, err)
				}
			})
			c = again(c)
			passed := 5 * time.Millisecond
			for _, at := range []time.Duration{10, 14, 15, 60_004, 60_005, 3_600_000} {
				clock.advance(at*time.Millisecond - passed)
				passed = at * time.Millisecond
				each(func(_, b TTL, key string) {
					live := !b.set || passed < 5*time.Millisecond+time.Duration(b.millis)*time.Millisecond
					if got := get(t, c, key); (got == `"2"`) != live {
						t.Errorf("%s: %s %s: %s after %v", m.name, op, key, got, passed)
					}
				})
			}
		}
	}
}

// One history of writes has the same answers and leaves the same values in
// every mode; only versions differ, and those rise.
func TestModesAgree(t *testing.T) {
	var want []string
	for _, m := range modes() {
		c, clock, again := m.open(t)
		var got []string
		var last uint64
		version := map[string]uint64{}
		do := func(w Write) {
			r, err := c.write(0, w)
			key := string(w.Key)
			if err == nil && r.Applied && w.Op == Put {
				if r.Version < last {
					t.Errorf("%s: version %d after %d", m.name, r.Version, last)
				}
				last, version[key] = r.Version, r.Version
			}
			current := r.HasVersion && r.Version == version[key]
			got = append(got, fmt.Sprintf("%d %s: %v %v %v %q %v %v", w.Op, key, r.Applied, r.HasVersion, current, r.Removed.Value, r.HasRemoved, err))
		}
		put := func(key, value string, ttl TTL, cond Condition) {
			do(Write{Op: Put, Key: []byte(key), Value: []byte(value), TTL: ttl, Condition: cond})
		}
		del := func(key string, cond Condition) { do(Write{Op: Delete, Key: []byte(key), Condition: cond}) }
		steps := []func(){
			func() { put("a", "1", TTL{}, Condition{}) },
			func() { put("a", "2", TTL{}, Absent()) },
			func() { put("b", "", TTL{}, Absent()) },
			func() { put("a", "3", TTL{}, AtVersion(version["a"])) },
			func() { put("a", "4", TTL{}, AtVersion(version["a"]+1)) },
			func() { put("none", "x", TTL{}, AtVersion(1)) },
			func() { del("none", Condition{}) },
			func() { del("none", AtVersion(1)) },
			func() { del("a", AtVersion(version["a"]+1)) },
			func() { del("a", AtVersion(version["a"])) },
			func() { del("a", Condition{}) },
			func() { del("b", Condition{}) },
			func() { put("t", "timed", Millis(10), Condition{}) },
			func() { clock.advance(10 * time.Millisecond) },
			func() { put("t", "x", TTL{}, AtVersion(version["t"])) },
			func() { del("t", AtVersion(version["t"])) },
			func() { del("t", Condition{}) },
			func() { put("t", "again", TTL{}, Absent()) },
		}
		for _, step := range steps {
			step()
			c = again(c)
			for _, key := range []string{"a", "b", "t", "none"} {
				got = append(got, key+" is "+get(t, c, key))
			}
		}
		if want == nil {
			want = got
			continue
		}
		if a, b := strings.Join(got, "\n"), strings.Join(want, "\n"); a != b {
			t.Errorf("%s answers\n%s\nand memory\n%s", m.name, a, b)
		}
	}
}

// At the moment an entry's time is over, a new put is never removed by the
// expiry of the old one.
func TestOldDeadlineDoesNotRemoveNewValue(t *testing.T) {
	d := newDisk(t, Config{})
	c := d.cache("c", 1)
	for i := range campaign(300, 10_000) {
		mustPut(t, c, "k", "old", Millis(5))
		d.clock.advance(5 * time.Millisecond)
		var race sync.WaitGroup
		race.Go(d.store.sweep.pass)
		race.Go(func() { mustPut(t, c, "k", "new", TTL{}) })
		race.Wait()
		d.store.sweep.pass()
		if got := get(t, c, "k"); got != `"new"` {
			t.Fatalf("try %d: %s", i, got)
		}
	}
}
