package client_test

import (
	"fmt"
	"testing"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/client"
)

// TestWatcherIsToldOfAStop: a node that stops tells its watches so, and they
// go on at the node that comes back, without a change twice or a state anew.
func TestWatcherIsToldOfAStop(t *testing.T) {
	const shards = 3
	n, c := durableNode(t)
	n.CreateCacheWith("users", broker.CacheOptions{Shards: shards, Durable: true})
	ctx := testContext(t)
	cache := c.Cache("users")
	w, err := cache.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	n.CreateCacheWith("still", broker.CacheOptions{Shards: 1, Durable: true})
	still := c.Cache("still")
	quiet, err := still.Watch(ctx, client.WatchKey("nobody"))
	if err != nil {
		t.Fatal(err)
	}
	defer quiet.Close()
	written, seen := 0, map[string]int{}
	write := func() {
		t.Helper()
		for range 30 {
			if err := cache.Put(ctx, fmt.Sprint("k", written), nil); err != nil {
				t.Fatal(err)
			}
			written++
		}
	}
	read := func() {
		t.Helper()
		for len(seen) < written {
			change, err := w.Next(ctx)
			if err != nil || change.Kind != client.Put {
				t.Fatalf("after %d of %d: %+v, %v", len(seen), written, change, err)
			}
			seen[change.Key]++
		}
	}
	write()
	read()
	// The quiet watch is heard from after each stop: one that is still on its way
	// back when the node stops again has nothing to be told.
	for round := range uint64(2) {
		n.Restart()
		write()
		read()
		if err := still.Put(ctx, "nobody", nil); err != nil {
			t.Fatal(err)
		}
		if change, err := quiet.Next(ctx); err != nil || change.Key != "nobody" {
			t.Fatalf("%+v, %v", change, err)
		}
		if st := quiet.Stats(); st.Moves != round+1 || st.Changes != round+1 {
			t.Errorf("%+v", st)
		}
	}
	for key, times := range seen {
		if times != 1 {
			t.Errorf("%s came %d times", key, times)
		}
	}
	if st := w.Stats(); st.Moves != 2*shards || st.Resets+st.Duplicates+st.Lagged != 0 || st.Changes != uint64(written) {
		t.Errorf("%+v", st)
	}
}
