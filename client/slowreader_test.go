package client_test

import (
	"bytes"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/wire"
)

// smallWindows lets a reader that does not read hold the broker up soon.
func smallWindows() client.Option {
	return client.WithWindows(client.Windows{EventStream: 64 << 10, EventConn: 128 << 10})
}

// TestASlowSubscriberLosesNothing: the broker gives up on it, and it reads on
// from the log.
func TestASlowSubscriberLosesNothing(t *testing.T) {
	const records = 2000
	_, c := durableNode(t, smallWindows())
	ctx := testContext(t)
	sub, err := c.Subscribe(ctx, "orders", client.QueueCapacity(4))
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	pub := c.Publisher("orders")
	padding := bytes.Repeat([]byte("x"), 1<<10)
	for i := range records {
		if _, err := pub.Send(ctx, fmt.Appendf(nil, "%d %s", i, padding)); err != nil {
			t.Fatal(err)
		}
	}
	if err := pub.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(records) {
		ev, err := sub.Next(ctx)
		if err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		if ev.Offset != i || ev.Gap != 0 || !bytes.HasPrefix(ev.Payload, fmt.Appendf(nil, "%d ", i)) {
			t.Fatalf("record %d: offset %d gap %d %.10q", i, ev.Offset, ev.Gap, ev.Payload)
		}
	}
	if st := sub.Stats(); st.Lagged == 0 || st.Lost != 0 {
		t.Errorf("stats %+v: the reader was not slow enough to test anything", st)
	}
}

// TestASlowWatcherMissesNothing: likewise for changes.
func TestASlowWatcherMissesNothing(t *testing.T) {
	const changes, writers = 2400, 16
	n, c := durableNode(t, smallWindows())
	n.CreateCache("users")
	ctx := testContext(t)
	cache := c.Cache("users")
	w, err := cache.Watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	value := bytes.Repeat([]byte("x"), 256)
	var wg sync.WaitGroup
	for writer := range writers {
		wg.Go(func() {
			for i := range changes / writers {
				if err := cache.Put(ctx, fmt.Sprint(writer, "/", i), fmt.Appendf(nil, "%d %s", i, value)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	at := map[string]int{}
	last := int64(-1)
	for range changes {
		change, err := w.Next(ctx)
		if err != nil {
			t.Fatalf("behind %d: %v", last, err)
		}
		writer, number, _ := strings.Cut(change.Key, "/")
		if change.Kind != client.Put || number != fmt.Sprint(at[writer]) || int64(change.Offset) <= last {
			t.Fatalf("%v of %s at %d, want number %d; the one before was at %d", change.Kind, change.Key, change.Offset, at[writer], last)
		}
		at[writer]++
		last = int64(change.Offset)
	}
	if st := w.Stats(); st.Lagged == 0 {
		t.Errorf("stats %+v: the reader was not slow enough to test anything", st)
	}
}

// TestWatchersThatJoinUnderLoad: a copy kept by watching is the cache, from
// whichever moment it began.
func TestWatchersThatJoinUnderLoad(t *testing.T) {
	const rounds, watchers, shards = 180, 6, 3
	n, c := durableNode(t)
	n.CreateCacheWith("users", broker.CacheOptions{Shards: shards, Durable: true})
	ctx := testContext(t)
	cache := c.Cache("users")
	var joined, done sync.WaitGroup
	copies := make([]map[string]string, watchers)
	for i := range rounds {
		if i%(rounds/watchers) == 0 {
			join := i / (rounds / watchers)
			copies[join] = map[string]string{}
			joined.Add(1)
			done.Go(func() {
				w, err := cache.Watch(ctx, client.Retained())
				joined.Done()
				if err != nil {
					t.Error(err)
					return
				}
				defer w.Close()
				ends := 0
				for change, err := range w.Changes(ctx) {
					switch {
					case err != nil:
						t.Errorf("watcher %d: %v", join, err)
						return
					case strings.HasPrefix(change.Key, "end"):
						if ends++; ends == shards {
							return
						}
					case change.Kind == client.Put:
						copies[join][change.Key] = string(change.Value)
					case change.Kind == client.Deleted:
						delete(copies[join], change.Key)
					}
				}
			})
		}
		var err error
		key := fmt.Sprint("k", i*7%23)
		if i%5 == 4 {
			_, _, err = cache.Delete(ctx, key)
		} else {
			err = cache.Put(ctx, key, fmt.Append(nil, i))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	joined.Wait()
	want := map[string]string{}
	for i := range 23 {
		key := fmt.Sprint("k", i)
		if v, ok, err := cache.Get(ctx, key); err != nil {
			t.Fatal(err)
		} else if ok {
			want[key] = string(v)
		}
	}
	// A last change in each shard.
	ended := map[uint32]bool{}
	for i := 0; len(ended) < shards; i++ {
		key := fmt.Sprint("end", i)
		shard := wire.ShardOf([]byte(key), true, shards, wire.Modulo)
		if ended[shard] {
			continue
		}
		ended[shard] = true
		if err := cache.Put(ctx, key, nil); err != nil {
			t.Fatal(err)
		}
	}
	done.Wait()
	for join, copy := range copies {
		if !maps.Equal(copy, want) {
			t.Errorf("watcher %d has %v, the cache %v", join, copy, want)
		}
	}
}

// TestAWatchFromCompactedChangesBeginsAnew: what compaction took away is
// announced, and the values that come instead are the cache.
func TestAWatchFromCompactedChangesBeginsAnew(t *testing.T) {
	const keys = 8
	n, c := durableNode(t)
	n.CreateCache("users")
	ctx := testContext(t)
	cache := c.Cache("users")
	value := bytes.Repeat([]byte("x"), 64<<10)
	watchOld := func() (*client.Watch, client.Change) {
		t.Helper()
		w, err := cache.Watch(ctx, client.WatchFrom(1))
		if err != nil {
			t.Fatal(err)
		}
		first, err := w.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		return w, first
	}
	for {
		for i := range 64 {
			if err := cache.Put(ctx, fmt.Sprint(i%keys), value); err != nil {
				t.Fatalf("nothing was compacted away: %v", err)
			}
		}
		w, first := watchOld()
		w.Close()
		if first.Kind == client.Reset {
			break
		}
	}
	w, first := watchOld()
	defer w.Close()
	if first.Kind != client.Reset {
		t.Fatalf("first change %v", first.Kind)
	}
	if err := cache.Put(ctx, "end", nil); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for {
		change, err := w.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if change.Key == "end" {
			break
		}
		if change.Kind != client.Put || !change.Retained {
			t.Errorf("change %v of %s, retained %v", change.Kind, change.Key, change.Retained)
		}
		seen[change.Key]++
	}
	if len(seen) != keys {
		t.Errorf("values of %d keys came, want %d", len(seen), keys)
	}
	if st := w.Stats(); st.Resets != 1 {
		t.Errorf("stats %+v", st)
	}
	// It goes on behind the values.
	again, err := cache.Watch(ctx, client.WatchResumeAt(w.Positions()))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := cache.Put(ctx, "new", nil); err != nil {
		t.Fatal(err)
	}
	if change, err := again.Next(ctx); err != nil || change.Key != "new" {
		t.Errorf("resumed: %v of %q, %v", change.Kind, change.Key, err)
	}
}
