package cache

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

type modelEntry struct {
	value    string
	version  uint64
	deadline time.Time // zero for never
}

// The cache against a plain map with the same clock.
func TestCacheAgainstAMap(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		clock := newFakeClock()
		s := NewStore(Config{}, clock)
		caches := []*Cache{s.NewCache(Name{"t", "n", "a"}, Options{}), s.NewCache(Name{"t", "n", "b"}, Options{})}
		model := map[string]modelEntry{}
		var lastVersion uint64
		live := func(name string) (modelEntry, bool) {
			e, ok := model[name]
			if ok && !e.deadline.IsZero() && !clock.Now().Before(e.deadline) {
				return modelEntry{}, false
			}
			return e, ok
		}
		for range rapid.IntRange(1, 100).Draw(rt, "steps") {
			which := rapid.IntRange(0, 1).Draw(rt, "cache")
			c := caches[which]
			key := rapid.SampledFrom([]string{"", "a", "b", "a long key that does not fit a small buffer"}).Draw(rt, "key")
			name := fmt.Sprint(which, "/", key)
			value := rapid.StringN(0, 40, 40).Draw(rt, "value")
			ttl, deadline := TTL{}, time.Time{}
			if rapid.Bool().Draw(rt, "timed") {
				ms := rapid.Uint64Range(1, 50).Draw(rt, "ttl")
				ttl, deadline = Millis(ms), clock.Now().Add(time.Duration(ms)*time.Millisecond)
			}
			was, there := live(name)
			put := func(version uint64) {
				if version <= lastVersion {
					rt.Fatalf("version %d after %d", version, lastVersion)
				}
				lastVersion = version
				model[name] = modelEntry{value, version, deadline}
			}
			wantResult := func(r Result, applied bool) {
				e, ok := live(name)
				if r.Applied != applied || r.HasVersion != ok || ok && r.Version != e.version {
					rt.Fatalf("%+v, want applied %v and version %d", r, applied, e.version)
				}
			}
			switch rapid.SampledFrom([]string{"get", "put", "delete", "absent", "version", "delete_if", "tick"}).Draw(rt, "op") {
			case "get":
				item, ok, err := c.Get(0, []byte(key))
				if err != nil || ok != there || ok && (string(item.Value) != was.value || item.Version != was.version) {
					rt.Fatalf("get %q: %q %v, %v; want %q %v", key, item.Value, ok, err, was.value, there)
				}
				if ok && (item.ExpiresAtMillis == 0) != was.deadline.IsZero() || ok && !was.deadline.IsZero() && item.ExpiresAtMillis != was.deadline.UnixMilli() {
					rt.Fatalf("get %q: expires at %d, want %v", key, item.ExpiresAtMillis, was.deadline)
				}
			case "put":
				version, err := c.Put([]byte(key), []byte(value), ttl)
				if err != nil {
					rt.Fatal(err)
				}
				put(version)
			case "delete":
				item, ok, err := c.Delete([]byte(key))
				if err != nil || ok != there || ok && string(item.Value) != was.value {
					rt.Fatalf("delete %q: %q %v, %v; want %q %v", key, item.Value, ok, err, was.value, there)
				}
				delete(model, name)
			case "absent":
				r, err := c.PutIf([]byte(key), []byte(value), ttl, Absent())
				if err != nil {
					rt.Fatal(err)
				}
				if !there {
					put(r.Version)
				}
				wantResult(r, !there)
			case "version":
				version := was.version + rapid.Uint64Range(0, 1).Draw(rt, "off")
				r, err := c.PutIf([]byte(key), []byte(value), ttl, AtVersion(version))
				if err != nil {
					rt.Fatal(err)
				}
				match := there && version == was.version
				if match {
					put(r.Version)
				}
				wantResult(r, match)
			case "delete_if":
				version := was.version + rapid.Uint64Range(0, 1).Draw(rt, "off")
				r, err := c.DeleteIf([]byte(key), version)
				if err != nil {
					rt.Fatal(err)
				}
				match := there && version == was.version
				if match {
					delete(model, name)
				}
				wantResult(r, match)
			case "tick":
				clock.advance(time.Duration(rapid.IntRange(1, 30).Draw(rt, "ms")) * time.Millisecond)
			}
			check(rt, s)
		}
	})
}

// Everything at once, on a store that is always full: the totals stay exact
// and within bounds, and nobody sees bytes that were not written for the key.
func TestAccountingUnderLoad(t *testing.T) {
	for _, cfg := range []Config{
		{MaxBytes: 20_000},
		{MaxEntries: 50},
		{MaxBytes: 20_000, MaxEntries: 60, Seed: 7},
	} {
		clock := newFakeClock()
		s := NewStore(cfg, clock)
		caches := []*Cache{s.NewCache(Name{"t", "n", "a"}, Options{}), s.NewCache(Name{"t", "n", "b"}, Options{})}
		var workers sync.WaitGroup
		for w := range 8 {
			workers.Add(1)
			go func() {
				defer workers.Done()
				rng := rand.New(rand.NewPCG(5, uint64(w)))
				for range 3000 {
					c := caches[rng.IntN(2)]
					key := fmt.Appendf(nil, "key %d", rng.IntN(200))
					value := bytes.Repeat(append(key, ';'), rng.IntN(20))
					ttl := TTL{}
					if rng.IntN(3) == 0 {
						ttl = Millis(1 + rng.Uint64N(20))
					}
					var err error
					switch rng.IntN(6) {
					case 0, 1:
						_, err = c.Put(key, value, ttl)
					case 2:
						_, err = c.PutIf(key, value, ttl, Absent())
					case 3:
						_, _, err = c.Delete(key)
					case 4:
						var item Item
						var ok bool
						item, ok, err = c.Get(0, key)
						if ok && !bytes.Equal(item.Value, bytes.Repeat(append(key, ';'), len(item.Value)/(len(key)+1))) {
							t.Errorf("%s holds %q", key, item.Value)
						}
						if ok {
							_, err = c.PutIf(key, value, ttl, AtVersion(item.Version))
						}
					case 5:
						clock.advance(time.Millisecond)
					}
					if err != nil {
						t.Error(err)
					}
					if b, n := s.bytes.Load(), s.entries.Load(); b > s.cfg.MaxBytes || n > s.cfg.MaxEntries {
						t.Errorf("%d bytes of %d, %d entries of %d", b, s.cfg.MaxBytes, n, s.cfg.MaxEntries)
					}
				}
			}()
		}
		workers.Wait()
		check(t, s)
		if st := s.Stats(); st.Evictions == 0 || st.Expired == 0 {
			t.Errorf("the store was not full: %+v", st)
		}
		caches[0].End()
		check(t, s)
		caches[1].End()
		check(t, s)
		if st := s.Stats(); st.Entries != 0 || st.Bytes != 0 {
			t.Errorf("after the end of all caches: %+v", st)
		}
	}
}

// A counter kept by compare-and-set from many goroutines: each applied write
// saw the one before it, so the sum is the number of those applied, and the
// versions of the key only rise.
func TestPutIfIsOneStep(t *testing.T) {
	c, _ := newCache(Config{})
	key := []byte("sum")
	const workers, each = 8, 300
	var wait sync.WaitGroup
	for range workers {
		wait.Add(1)
		go func() {
			defer wait.Done()
			var last uint64
			for applied := 0; applied < each; {
				item, ok, err := c.Get(0, key)
				if err != nil {
					t.Error(err)
					return
				}
				n, cond := 0, Absent()
				if ok {
					if _, err := fmt.Sscan(string(item.Value), &n); err != nil {
						t.Error(err)
					}
					cond = AtVersion(item.Version)
					if item.Version < last {
						t.Errorf("version %d after %d", item.Version, last)
					}
					last = item.Version
				}
				r, err := c.PutIf(key, fmt.Append(nil, n+1), TTL{}, cond)
				if err != nil {
					t.Error(err)
					return
				}
				if r.Applied {
					applied++
				}
				if !r.HasVersion || r.Version < last {
					t.Errorf("%+v after version %d", r, last)
				}
			}
		}()
	}
	wait.Wait()
	if got, want := get(t, c, "sum"), fmt.Sprintf("%q", fmt.Sprint(workers*each)); got != want {
		t.Fatalf("the sum is %s, want %s", got, want)
	}
}

// Of many that create a key, or delete one version of it, exactly one does.
func TestOneWinner(t *testing.T) {
	for range 200 {
		c, _ := newCache(Config{})
		race := func(f func() (Result, error)) (won int) {
			var wait sync.WaitGroup
			var mu sync.Mutex
			for range 4 {
				wait.Add(1)
				go func() {
					defer wait.Done()
					r, err := f()
					if err != nil {
						t.Error(err)
					}
					if r.Applied {
						mu.Lock()
						won++
						mu.Unlock()
					}
				}()
			}
			wait.Wait()
			return won
		}
		if n := race(func() (Result, error) { return c.PutIf([]byte("k"), []byte("v"), TTL{}, Absent()) }); n != 1 {
			t.Fatalf("%d created the key", n)
		}
		item, _, _ := c.Get(0, []byte("k"))
		if n := race(func() (Result, error) { return c.DeleteIf([]byte("k"), item.Version) }); n != 1 {
			t.Fatalf("%d deleted the version", n)
		}
	}
}
