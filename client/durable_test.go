package client_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/felixtest"
)

// durableNode is a node with storage, and a client that survives its
// restarts.
func durableNode(t *testing.T, opts ...client.Option) (*felixtest.Node, *client.Client) {
	t.Helper()
	n := felixtest.Start(t, felixtest.Durable())
	return n, dialNode(t, n, append([]client.Option{client.WithReconnect(client.ReconnectPolicy{
		Attempts: 100, Initial: 5 * time.Millisecond, Max: 100 * time.Millisecond,
	})}, opts...)...)
}

func TestDurablePublishHasOffsets(t *testing.T) {
	n, c := durableNode(t)
	ctx := testContext(t)
	for i := range uint64(5) {
		ack, err := c.PublishBatch(ctx, "orders", [][]byte{[]byte("a"), nil})
		if err != nil || !ack.HasOffset || ack.Offset != 2*i {
			t.Fatalf("batch %d: %+v, %v", i, ack, err)
		}
	}
	n.Restart()
	ack, err := c.Publish(ctx, "orders", []byte("b"), client.WithAtLeastOnce())
	if err != nil || !ack.HasOffset || ack.Offset < 10 {
		t.Errorf("after a restart: %+v, %v", ack, err)
	}
}

func TestNodePublishIf(t *testing.T) {
	_, c := durableNode(t)
	ctx := testContext(t)
	if ack, err := c.PublishIf(ctx, "orders", 0, [][]byte{[]byte("a"), []byte("b")}); err != nil || ack.Offset != 0 || !ack.HasOffset {
		t.Fatalf("first: %+v, %v", ack, err)
	}
	_, err := c.PublishIf(ctx, "orders", 0, [][]byte{[]byte("c")})
	mismatch, ok := errors.AsType[*client.OffsetMismatchError](err)
	if !ok || mismatch.Tail != 2 {
		t.Fatalf("second: %v", err)
	}
	// Many writers at the tail they saw: one wins each round.
	const writers = 8
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for range writers {
		wg.Go(func() {
			_, err := c.PublishIf(ctx, "orders", mismatch.Tail, [][]byte{[]byte("c")})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if _, lost := errors.AsType[*client.OffsetMismatchError](err); !lost {
				t.Errorf("neither won nor lost: %v", err)
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Errorf("%d of %d writers won", won, writers)
	}
}

func TestNodeCommit(t *testing.T) {
	n, c := durableNode(t)
	ctx := testContext(t)
	sub, err := c.Subscribe(ctx, "accounts", client.From(client.Earliest()))
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	entity := []byte("alice")
	if v, err := c.StateGet(ctx, "accounts", entity, "balance"); err != nil || v.Found {
		t.Errorf("before: %+v, %v", v, err)
	}
	first, err := c.Commit(ctx, "accounts", entity, []byte("opened"), []client.StateChange{
		client.SetState("balance", []byte("10")), client.SetState("owner", []byte("Alice")),
	})
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.Commit(ctx, "accounts", entity, []byte("renamed"), []client.StateChange{client.ClearState("owner")},
		client.ExpectOffset(first.Offset+1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Commit(ctx, "accounts", entity, []byte("x"), nil, client.ExpectOffset(first.Offset)); err == nil {
		t.Error("a stale commit was taken")
	}
	check := func(when string) {
		t.Helper()
		if v, err := c.StateGet(ctx, "accounts", entity, "balance"); err != nil || string(v.Value) != "10" || v.Version != first.Offset || v.AsOf != second.Offset {
			t.Errorf("%s: balance %+v, %v", when, v, err)
		}
		if v, err := c.StateGet(ctx, "accounts", entity, "owner"); err != nil || v.Found {
			t.Errorf("%s: owner %+v, %v", when, v, err)
		}
	}
	check("at once")
	n.Restart()
	check("after a restart")
	for _, want := range []string{"opened", "renamed"} {
		if ev, err := sub.Next(ctx); err != nil || string(ev.Payload) != want {
			t.Errorf("event %q, %v, want %q", ev.Payload, err, want)
		}
	}
}

func TestNodeTimesAndPublishers(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable(), felixtest.WithSetting("record-publishers", "true"))
	c := dialNode(t, n, client.WithTimestamps(), client.WithPublishers())
	ctx := testContext(t)
	for range 20 {
		if _, err := c.Publish(ctx, "orders", []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	var times []time.Time
	for ev, err := range c.Records(ctx, "orders", client.Range{MaxRecords: 3}) {
		if err != nil {
			t.Fatal(err)
		}
		if ev.Time.IsZero() || ev.Publisher != "tester" {
			t.Fatalf("record without time or publisher: %+v", ev)
		}
		times = append(times, ev.Time)
	}
	if len(times) != 20 {
		t.Fatalf("%d records", len(times))
	}
	for i, at := range times {
		offset, ok, err := c.OffsetForTime(ctx, "orders", 0, at)
		if err != nil || !ok || offset > uint64(i) || !times[offset].Equal(at) || offset > 0 && !times[offset-1].Before(at) {
			t.Errorf("record %d: offset %d %v, %v", i, offset, ok, err)
		}
	}
	if _, ok, err := c.OffsetForTime(ctx, "orders", 0, times[19].Add(time.Hour)); ok || err != nil {
		t.Errorf("an hour on: %v, %v", ok, err)
	}
	sub, err := c.Subscribe(ctx, "orders", client.From(client.Offset(7)))
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if ev, err := sub.Next(ctx); err != nil || ev.Offset != 7 || !ev.Time.Equal(times[7]) || ev.Publisher != "tester" {
		t.Errorf("subscribed: %+v, %v", ev, err)
	}
}

func TestNodeCounters(t *testing.T) {
	n, c := durableNode(t)
	n.CreateCache("stats")
	ctx := testContext(t)
	k := c.Cache("stats")
	if _, ok, err := k.CounterGet(ctx, "hits"); ok || err != nil {
		t.Errorf("never written: %v, %v", ok, err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 25 {
				if _, err := k.CounterAdd(ctx, "hits", 3); err != nil {
					t.Errorf("add: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if sum, err := k.CounterAdd(ctx, "hits", -600); err != nil || sum != 0 {
		t.Errorf("sum %d, %v, want 0", sum, err)
	}
	if _, err := k.CounterAdd(ctx, "hits", 1<<63-1); err != nil {
		t.Error(err)
	}
	if _, err := k.CounterAdd(ctx, "hits", 1); err == nil || client.IsOutcomeUnknown(err) || client.IsRetryable(err) {
		t.Errorf("overflow: %v", err)
	}
	n.Restart()
	if v, ok, err := k.CounterGet(ctx, "hits"); err != nil || !ok || v != 1<<63-1 {
		t.Errorf("after a restart: %d %v, %v", v, ok, err)
	}
	if _, ok, err := k.Get(ctx, "hits"); ok || err != nil {
		t.Errorf("a counter is no key: %v, %v", ok, err)
	}
}

func TestNodeVersionsSurvive(t *testing.T) {
	n, c := durableNode(t)
	n.CreateCache("users")
	ctx := testContext(t)
	k := c.Cache("users")
	if err := k.Put(ctx, "u1", []byte("a")); err != nil {
		t.Fatal(err)
	}
	entry, ok, err := k.GetVersioned(ctx, "u1")
	if err != nil || !ok || !entry.HasVersion {
		t.Fatalf("%+v %v, %v", entry, ok, err)
	}
	n.Restart()
	if res, err := k.PutIf(ctx, "u1", []byte("b"), client.IfVersion(entry.Version)); err != nil || !res.Applied {
		t.Errorf("put if: %+v, %v", res, err)
	}
	if res, err := k.PutIf(ctx, "u1", []byte("c"), client.IfVersion(entry.Version)); err != nil || res.Applied {
		t.Errorf("stale put if: %+v, %v", res, err)
	}
}

// TestMemoryNeedsALog: what only a log can serve is refused by name, and not
// retried.
func TestMemoryNeedsALog(t *testing.T) {
	n := felixtest.Start(t)
	n.CreateStream("orders", 1)
	n.CreateCache("users")
	c := dialNode(t, n)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	calls := map[string]func() error{
		"watch":   func() error { _, err := c.Cache("users").Watch(ctx); return err },
		"counter": func() error { _, err := c.Cache("users").CounterAdd(ctx, "k", 1); return err },
		"publish if": func() error {
			_, err := c.PublishIf(ctx, "orders", 0, [][]byte{nil})
			return err
		},
		"commit": func() error { _, err := c.Commit(ctx, "orders", []byte("e"), nil, nil); return err },
		"read":   func() error { _, err := c.Read(ctx, "orders", client.Range{}); return err },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, client.ErrUnsupported) && !errors.Is(err, client.ErrInvalidRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A producer is served, and forgets with the broker.
	p, err := c.NewProducer(ctx, "orders")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Publish(ctx, []byte("x")); err != nil {
		t.Error(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
