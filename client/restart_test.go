package client_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/client"
)

// TestSubscriberOverARestart: neither gap nor duplicate.
func TestSubscriberOverARestart(t *testing.T) {
	const records, restartAt = 300, 120
	n, c := durableNode(t)
	n.CreateStream("orders", 4)
	ctx := testContext(t)
	sub, err := c.Subscribe(ctx, "orders", client.AllShards(), client.From(client.Earliest()))
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	producer, err := c.NewProducer(ctx, "orders")
	if err != nil {
		t.Fatal(err)
	}
	var restarted sync.WaitGroup
	for i := range records {
		if i == restartAt {
			restarted.Go(n.Restart)
		}
		if _, err := producer.SendKeyed(ctx, fmt.Append(nil, "key", i%16), fmt.Append(nil, i)); err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
	}
	restarted.Wait()
	if err := producer.Close(); err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for range records {
		ev, err := sub.Next(ctx)
		if err != nil {
			t.Fatalf("after %d records: %v", len(seen), err)
		}
		if ev.Gap != 0 {
			t.Errorf("gap of %d before %d:%d", ev.Gap, ev.Shard, ev.Offset)
		}
		seen[string(ev.Payload)]++
	}
	for i := range records {
		if n := seen[fmt.Sprint(i)]; n != 1 {
			t.Errorf("record %d came %d times", i, n)
		}
	}
	// Another subscription takes over where this one stands.
	again, err := c.Subscribe(ctx, "orders", client.ResumeAt(sub.Positions()))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for i := range 4 {
		if _, err := c.Publish(ctx, "orders", []byte("new"), client.WithKey(fmt.Append(nil, i))); err != nil {
			t.Fatal(err)
		}
		if ev, err := again.Next(ctx); err != nil || string(ev.Payload) != "new" || ev.Gap != 0 {
			t.Errorf("resumed: %+v, %v", ev, err)
		}
	}
}

// TestProducerOverRestarts: each batch is on the log once and in order,
// whatever the restarts did to the answers.
func TestProducerOverRestarts(t *testing.T) {
	const batches = 400
	n, c := durableNode(t)
	ctx := testContext(t)
	producer, err := c.NewProducer(ctx, "orders")
	if err != nil {
		t.Fatal(err)
	}
	var restarts sync.WaitGroup
	var pending []*client.Pending
	for i := range batches {
		if i == 100 || i == 250 {
			restarts.Wait()
			restarts.Go(n.Restart)
		}
		f, err := producer.Send(ctx, fmt.Append(nil, i))
		if err != nil {
			t.Fatalf("batch %d: %v", i, err)
		}
		pending = append(pending, f)
	}
	restarts.Wait()
	acked := map[uint64]int{}
	for i, f := range pending {
		ack, err := f.Wait(ctx)
		if err != nil || !ack.HasOffset {
			t.Fatalf("batch %d: %+v, %v", i, ack, err)
		}
		acked[ack.Offset] = i
	}
	if err := producer.Close(); err != nil {
		t.Fatal(err)
	}
	i := 0
	for ev, err := range c.Records(ctx, "orders", client.Range{}) {
		if err != nil {
			t.Fatal(err)
		}
		if string(ev.Payload) != fmt.Sprint(i) || acked[ev.Offset] != i {
			t.Fatalf("place %d holds %q at offset %d, acknowledged for batch %d", i, ev.Payload, ev.Offset, acked[ev.Offset])
		}
		i++
	}
	if i != batches {
		t.Errorf("%d records stored, want %d", i, batches)
	}
}

// TestWatcherOverARestart: each change once, in the order of its key.
func TestWatcherOverARestart(t *testing.T) {
	const rounds, restartAt = 100, 40
	n, c := durableNode(t)
	n.CreateCache("users")
	ctx := testContext(t)
	cache := c.Cache("users")
	if err := cache.Put(ctx, "old", []byte("value")); err != nil {
		t.Fatal(err)
	}
	w, err := cache.Watch(ctx, client.Retained())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	go func() {
		for i := range rounds {
			if i == restartAt {
				n.Restart()
			}
			put := func() error { return cache.Put(ctx, "k", fmt.Append(nil, i)) }
			for err := put(); err != nil; err = put() {
				if ctx.Err() != nil {
					return
				}
				// Perhaps written: a second put of the same is harmless.
			}
		}
		cache.Delete(ctx, "k")
	}()
	for _, want := range []client.Change{{Kind: client.Put, Key: "old", Retained: true}, {Kind: client.Synced}} {
		if got, err := w.Next(ctx); err != nil || got.Kind != want.Kind || got.Key != want.Key || got.Retained != want.Retained {
			t.Fatalf("state: %+v, %v", got, err)
		}
	}
	last, offset := -1, uint64(0)
	for {
		change, err := w.Next(ctx)
		if err != nil {
			t.Fatalf("after round %d: %v", last, err)
		}
		if change.Kind == client.Deleted {
			break
		}
		var i int
		fmt.Sscan(string(change.Value), &i)
		if change.Kind != client.Put || i != last && i != last+1 || change.Offset <= offset {
			t.Fatalf("change %+v after round %d at %d", change, last, offset)
		}
		last, offset = i, change.Offset
	}
	if last != rounds-1 {
		t.Errorf("the last round seen is %d, want %d", last, rounds-1)
	}
	// Another watch takes over from positions, and reads what this one saw.
	again, err := cache.Watch(ctx, client.WatchKey("k"), client.WatchFrom(offset))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	for _, want := range []client.ChangeKind{client.Put, client.Deleted} {
		if got, err := again.Next(ctx); err != nil || got.Kind != want {
			t.Errorf("from an offset: %+v, %v, want %v", got, err, want)
		}
	}
}

func TestNodeWatchSeesExpiry(t *testing.T) {
	n, c := durableNode(t)
	n.CreateCacheWith("sessions", broker.CacheOptions{Shards: 4, Durable: true})
	ctx := testContext(t)
	cache := c.Cache("sessions")
	w, err := cache.Watch(ctx, client.WatchPrefix("a/"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for i := range 8 {
		for _, prefix := range []string{"a/", "b/"} {
			if err := cache.Put(ctx, fmt.Sprint(prefix, i), []byte("x"), client.WithTTL(50*time.Millisecond)); err != nil {
				t.Fatal(err)
			}
		}
	}
	puts, expired := map[string]int{}, map[string]int{}
	for len(expired) < 8 {
		change, err := w.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		switch change.Kind {
		case client.Put:
			puts[change.Key]++
			if change.ExpiresAt.IsZero() {
				t.Errorf("%+v has no expiry", change)
			}
		case client.Expired:
			expired[change.Key]++
		default:
			t.Errorf("change %+v", change)
		}
		if change.Key[0] != 'a' {
			t.Errorf("change of %s", change.Key)
		}
	}
	for i := range 8 {
		if key := fmt.Sprint("a/", i); puts[key] != 1 || expired[key] != 1 {
			t.Errorf("%s: %d puts, %d expiries", key, puts[key], expired[key])
		}
	}
}
