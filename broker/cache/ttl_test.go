package cache

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"
)

// TTLs at the edges of the number space, through put and put_if: a refused one
// leaves the old value and the old deadline.
func TestTTLEdges(t *testing.T) {
	now := newFakeClock().Now().UnixMilli()
	most := uint64(math.MaxInt64 - now)
	for _, c := range []struct {
		millis uint64
		ok     bool
	}{
		{0, false},
		{1, true},
		{1 << 53, true},
		{1<<53 + 1, true},
		{most, true},
		{most + 1, false},
		{1<<63 - 1, false},
		{1 << 63, false},
		{math.MaxUint64, false},
	} {
		for _, op := range []string{"put", "put_if"} {
			c1, clock := newCache(Config{})
			old := mustPut(t, c1, "k", "old", Millis(1000))
			var err error
			if op == "put" {
				_, err = c1.Put([]byte("k"), []byte("new"), Millis(c.millis))
			} else {
				_, err = c1.PutIf([]byte("k"), []byte("new"), Millis(c.millis), AtVersion(old))
			}
			item, found, _ := c1.Get(0, []byte("k"))
			if c.ok {
				if err != nil || !found || string(item.Value) != "new" || item.ExpiresAtMillis != now+int64(c.millis) {
					t.Errorf("%s ttl %d: %v, then %q until %d", op, c.millis, err, item.Value, item.ExpiresAtMillis)
				}
				clock.advance(time.Millisecond)
				if got := get(t, c1, "k"); (got == "-") != (c.millis == 1) {
					t.Errorf("%s ttl %d: %s after 1 ms", op, c.millis, got)
				}
				continue
			}
			var invalid *InvalidTTLError
			if !errors.As(err, &invalid) || invalid.Millis != c.millis {
				t.Errorf("%s ttl %d: %v", op, c.millis, err)
			}
			if !found || string(item.Value) != "old" || item.Version != old || item.ExpiresAtMillis != now+1000 {
				t.Errorf("%s ttl %d: a refused put left %+v", op, c.millis, item)
			}
			clock.advance(time.Second)
			if got := get(t, c1, "k"); got != "-" {
				t.Errorf("%s ttl %d: a refused put left %s after the old deadline", op, c.millis, got)
			}
			check(t, c1.store)
		}
	}
}

// The last accepted put alone decides when the key ends.
func TestEachPutSetsItsOwnDeadline(t *testing.T) {
	ttls := map[string]struct {
		ttl  TTL
		ends time.Duration
	}{"none": {TTL{}, 0}, "short": {Millis(10), 10 * time.Millisecond}, "long": {Millis(60_000), time.Minute}}
	for first, a := range ttls {
		for second, b := range ttls {
			for _, op := range []string{"put", "put_if"} {
				name := fmt.Sprintf("%s: %s then %s", op, first, second)
				c, clock := newCache(Config{})
				version := mustPut(t, c, "k", "1", a.ttl)
				clock.advance(5 * time.Millisecond)
				if op == "put" {
					mustPut(t, c, "k", "2", b.ttl)
				} else if r, err := c.PutIf([]byte("k"), []byte("2"), b.ttl, AtVersion(version)); err != nil || !r.Applied {
					t.Fatal(name, r, err)
				}
				if b.ends > 0 {
					clock.advance(b.ends - time.Millisecond)
					if got := get(t, c, "k"); got != `"2"` {
						t.Errorf("%s: %s before its deadline", name, got)
					}
					clock.advance(time.Millisecond)
					if got := get(t, c, "k"); got != "-" {
						t.Errorf("%s: %s at its deadline", name, got)
					}
				} else {
					clock.advance(time.Hour)
					if got := get(t, c, "k"); got != `"2"` {
						t.Errorf("%s: %s though it has no deadline", name, got)
					}
				}
				check(t, c.store)
			}
		}
	}
}

// An expired entry that nobody has removed yet is returned by nothing.
func TestExpiredIsAbsentEverywhere(t *testing.T) {
	ops := map[string]func(c *Cache, version uint64) error{
		"get": func(c *Cache, _ uint64) error {
			if _, ok, _ := c.Get(0, []byte("k")); ok {
				return errors.New("found")
			}
			return nil
		},
		"delete": func(c *Cache, _ uint64) error {
			if item, ok, _ := c.Delete([]byte("k")); ok || item.Value != nil {
				return fmt.Errorf("removed %q", item.Value)
			}
			return nil
		},
		"put_if absent": func(c *Cache, _ uint64) error {
			if r, _ := c.PutIf([]byte("k"), nil, TTL{}, Absent()); !r.Applied {
				return fmt.Errorf("%+v", r)
			}
			return nil
		},
		"put_if version": func(c *Cache, v uint64) error {
			if r, _ := c.PutIf([]byte("k"), nil, TTL{}, AtVersion(v)); r.Applied || r.HasVersion {
				return fmt.Errorf("%+v", r)
			}
			return nil
		},
		"delete_if": func(c *Cache, v uint64) error {
			if r, _ := c.DeleteIf([]byte("k"), v); r.Applied || r.HasVersion {
				return fmt.Errorf("%+v", r)
			}
			return nil
		},
	}
	for name, op := range ops {
		c, clock := newCache(Config{})
		version := mustPut(t, c, "k", "v", Millis(10))
		clock.advance(10 * time.Millisecond)
		if err := op(c, version); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if st := c.store.Stats(); st.Expired != 1 {
			t.Errorf("%s: %+v", name, st)
		}
		check(t, c.store)
	}
}

// A TTL that begins within a millisecond is not cut short by it.
func TestEntryLivesAtLeastItsTTL(t *testing.T) {
	c, clock := newCache(Config{})
	clock.advance(999 * time.Microsecond)
	mustPut(t, c, "k", "v", Millis(1))
	clock.advance(999 * time.Microsecond)
	if got := get(t, c, "k"); got != `"v"` {
		t.Fatalf("%s before its millisecond was over", got)
	}
	clock.advance(2 * time.Microsecond)
	if got := get(t, c, "k"); got != "-" {
		t.Fatalf("%s after its millisecond", got)
	}
}
