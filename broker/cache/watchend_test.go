package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
)

func TestWatchRefusals(t *testing.T) {
	d := newDisk(t, Config{})
	c := d.cache("c", 2)
	memory := d.store.NewCache(Name{"t", "n", "memory"}, Options{})
	var invalid *InvalidWatchError
	var shard *ShardError
	var needs *NeedsLogError
	for _, r := range []struct {
		c  *Cache
		o  WatchOptions
		as any
	}{
		{c, WatchOptions{Key: []byte("k"), Prefix: []byte("p")}, &invalid},
		{c, WatchOptions{Key: []byte{}, Prefix: []byte{}}, &invalid},
		{c, WatchOptions{HasFrom: true, Retained: true}, &invalid},
		{c, WatchOptions{Shard: 2}, &shard},
		{memory, WatchOptions{}, &needs},
	} {
		if _, err := r.c.Watch(t.Context(), r.o); !errors.As(err, r.as) {
			t.Errorf("%+v: %v", r.o, err)
		}
	}
	ended, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("had enough")
	cancel(cause)
	w := watch(t, c, WatchOptions{})
	if _, err := w.Next(ended); err != cause {
		t.Error(err)
	}
	if st := d.store.Stats(); st.Watches != 1 {
		t.Errorf("%+v", st)
	}
}

// A cache that ends ends its watches with the cause, after what they had
// queued, and wakes those who wait.
func TestWatchesEndWithTheCache(t *testing.T) {
	d := newDisk(t, Config{})
	c := d.cache("c", 1)
	cause := errors.New("broker stops")
	queued, waiting, history := watch(t, c, WatchOptions{}), watch(t, c, WatchOptions{Key: []byte("nothing")}), watch(t, c, WatchOptions{HasFrom: true})
	mustPut(t, c, "k", "v", TTL{})
	got := make(chan error)
	go func() {
		_, err := waiting.Next(context.Background())
		got <- err
	}()
	c.Close(cause)
	c.End()
	if err := <-got; err != cause {
		t.Fatal(err)
	}
	changes, err := ends(t, queued)
	if err != cause {
		t.Fatal(err)
	}
	wantChanges(t, changes, "updated k=v")
	if _, err := ends(t, history); err != cause {
		t.Fatal(err)
	}
	if _, err := c.Watch(t.Context(), WatchOptions{}); err != cause {
		t.Fatal(err)
	}
}

// One that is still reading history when the cache ends hears the cause too.
func TestHistoryEndsWithTheCache(t *testing.T) {
	cause := errors.New("broker stops")
	for _, o := range []WatchOptions{{HasFrom: true}, {Retained: true}} {
		d := newDisk(t, Config{})
		c := d.cache("c", 1)
		mustPut(t, c, "k", "v", TTL{})
		w := watch(t, c, o)
		w.shard.hub.mu.Lock() // the end has not come to the watch
		var end sync.WaitGroup
		end.Go(func() { c.Close(cause) })
		until(t, "the cache has ended", func() bool { return !c.Active() })
		_, err := w.history()
		w.shard.hub.mu.Unlock()
		end.Wait()
		if err != cause {
			t.Fatal(err)
		}
	}
}

// Watches that have current values still to read share a bound, which one
// alone may exceed, and give their part back when they have read or close.
func TestWatchesShareTheKeysTheyHold(t *testing.T) {
	d := newDisk(t, Config{WatchKeys: 10})
	c := d.cache("c", 1)
	for i := range 8 {
		mustPut(t, c, fmt.Sprint("k", i), "v", TTL{})
	}
	all := WatchOptions{Retained: true}
	first := watch(t, c, all)
	_, err := c.Watch(t.Context(), all)
	var busy *WatchBusyError
	if !errors.As(err, &busy) || busy.Keys != 8 || busy.Held != 8 || busy.Limit != 10 {
		t.Fatal(err)
	}
	one := watch(t, c, WatchOptions{Retained: true, Key: []byte("k1")})
	one.Close()
	one.Close()
	next(t, first, 8)
	quiet(t, first)
	for i := range 8 {
		mustPut(t, c, fmt.Sprint("more ", i), "v", TTL{})
	}
	large := watch(t, c, all)
	if n := d.store.heldKeys.Load(); n != 16 || large.RetainedCount() != 16 {
		t.Fatalf("%d keys are held", n)
	}
	large.Close()
	if n := d.store.heldKeys.Load(); n != 0 {
		t.Fatalf("%d keys are held by nobody", n)
	}
	if st := d.store.Stats(); st.Watches != 1 {
		t.Fatalf("a refused watch stays: %+v", st)
	}
}
