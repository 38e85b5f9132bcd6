package cache

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
)

// added is the outcome of an addition, for a test that waits for it.
type added struct {
	sum  int64
	err  error
	done chan struct{}
}

func (a *added) Added(sum int64, err error) {
	a.sum, a.err = sum, err
	close(a.done)
}

func (c *Cache) add(shard uint32, key string, delta int64) (int64, error) {
	out := &added{done: make(chan struct{})}
	c.CounterAdd(shard, []byte(key), delta, out)
	<-out.done
	return out.sum, out.err
}

func TestCounters(t *testing.T) {
	d := newDisk(t, Config{})
	c := d.cache("c", 2)
	want := func(shard uint32, key string, sum int64, there bool) {
		t.Helper()
		if got, ok, err := c.CounterGet(shard, []byte(key)); err != nil || got != sum || ok != there {
			t.Fatalf("%s is %d %v (%v), want %d %v", key, got, ok, err, sum, there)
		}
	}
	want(0, "k", 0, false)
	w := watch(t, c, WatchOptions{})
	for _, s := range []struct{ delta, sum int64 }{{0, 0}, {5, 5}, {-7, -2}, {math.MaxInt64, math.MaxInt64 - 2}} {
		if sum, err := c.add(0, "k", s.delta); err != nil || sum != s.sum {
			t.Fatalf("%d after %d (%v), want %d", sum, s.delta, err, s.sum)
		}
	}
	_, err := c.add(0, "k", 3)
	var overflow *CounterOverflowError
	if !errors.As(err, &overflow) || overflow.Sum != math.MaxInt64-2 || overflow.Delta != 3 {
		t.Fatal(err)
	}
	mustPut(t, c, "k", "value", TTL{})
	wantChanges(t, next(t, w, 1), "updated k=value") // counters are not watched
	quiet(t, w)
	for range 2 {
		want(0, "k", math.MaxInt64-2, true)
		want(1, "k", 0, false)
		if got := get(t, c, "k"); got != `"value"` {
			t.Fatalf("the value is %s", got)
		}
		if info := c.Info()[0]; info.Counters != 1 {
			t.Fatalf("%+v", info)
		}
		c = d.again(c)
	}
	var shard *ShardError
	if _, err := c.add(2, "k", 1); !errors.As(err, &shard) {
		t.Fatal(err)
	}
	c.End()
	if _, err := c.add(0, "k", 1); err != ErrRemoved {
		t.Fatal(err)
	}
	if _, _, err := c.CounterGet(0, []byte("k")); err != ErrRemoved {
		t.Fatal(err)
	}
}

func TestCountersNeedALog(t *testing.T) {
	c, _ := newCache(Config{})
	var needs *NeedsLogError
	if _, err := c.add(0, "k", 1); !errors.As(err, &needs) {
		t.Error(err)
	}
	if _, _, err := c.CounterGet(0, []byte("k")); !errors.As(err, &needs) {
		t.Error(err)
	}
}

// The first uses of a shard's counters come at once: all count.
func TestCountersFromManyAtOnce(t *testing.T) {
	d := newDisk(t, Config{})
	c := d.cache("c", 1)
	const workers, each = 8, 50
	var wait sync.WaitGroup
	sums := make([]map[int64]bool, workers)
	for i := range workers {
		sums[i] = map[int64]bool{}
		wait.Go(func() {
			for range each {
				sum, err := c.add(0, "k", 1)
				if err != nil {
					t.Error(err)
				}
				sums[i][sum] = true
			}
		})
	}
	wait.Wait()
	seen := map[int64]bool{}
	for _, s := range sums {
		for sum := range s {
			seen[sum] = true
		}
	}
	if len(seen) != workers*each || !seen[1] || !seen[workers*each] {
		t.Fatalf("%d different sums of %d", len(seen), workers*each)
	}
	c = d.again(c)
	if sum, _, err := c.CounterGet(0, []byte("k")); err != nil || sum != workers*each {
		t.Fatal(sum, err, fmt.Sprint(seen))
	}
}
