package client_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/felixtest"
)

const patience = 20 * time.Second

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func dialNode(t testing.TB, n *felixtest.Node, opts ...client.Option) *client.Client {
	t.Helper()
	all := append([]client.Option{
		client.WithTenant(n.Tenant()), client.WithToken(n.Token()), client.WithCAPEM(n.CAPEM()),
	}, opts...)
	c, err := client.Dial(testContext(t), []string{n.Addr()}, all...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestNodeRoundTrip(t *testing.T) {
	n := felixtest.Start(t)
	c := dialNode(t, n)
	ctx := testContext(t)
	sub, err := c.Subscribe(ctx, "orders")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	for i := range 100 {
		if _, err := c.Publish(ctx, "orders", fmt.Appendf(nil, "record %d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.PublishBatch(ctx, "orders", [][]byte{nil, []byte("last")}); err != nil {
		t.Fatal(err)
	}
	for i := range 102 {
		ev, err := sub.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("record %d", i)
		switch i {
		case 100:
			want = ""
		case 101:
			want = "last"
		}
		if string(ev.Payload) != want || ev.Gap != 0 {
			t.Errorf("event %d: %q gap %d, want %q", i, ev.Payload, ev.Gap, want)
		}
	}
}

func TestNodeKeyedStream(t *testing.T) {
	const shards, keys, rounds = 4, 16, 25
	n := felixtest.Start(t)
	n.CreateStream("keyed", shards)
	c := dialNode(t, n)
	ctx := testContext(t)
	sub, err := c.Subscribe(ctx, "keyed", client.AllShards(), client.Buffer(256, client.Block))
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if sub.Shards() != shards {
		t.Fatalf("%d shards, want %d", sub.Shards(), shards)
	}
	pub := c.Publisher("keyed")
	for round := range rounds {
		for key := range keys {
			name := fmt.Appendf(nil, "k%d", key)
			if _, err := pub.SendKeyed(ctx, name, fmt.Appendf(nil, "%d/%d", key, round)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := pub.Close(); err != nil {
		t.Fatal(err)
	}
	at := map[int]int{}
	used := map[uint32]bool{}
	for range keys * rounds {
		ev, err := sub.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		var key, round int
		fmt.Sscanf(string(ev.Payload), "%d/%d", &key, &round)
		if at[key] != round {
			t.Errorf("key %d: round %d after %d", key, round, at[key])
		}
		at[key] = round + 1
		used[ev.Shard] = true
	}
	if len(used) < 2 {
		t.Errorf("records in %d shards only", len(used))
	}
}

func TestNodePipeline(t *testing.T) {
	const batches, records = 2000, 16
	n := felixtest.Start(t)
	c := dialNode(t, n)
	ctx := testContext(t)
	sub, err := c.Subscribe(ctx, "bulk", client.QueueCapacity(4096))
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	received := make(chan error, 1)
	go func() {
		received <- func() error {
			for at := 0; at < batches*records; {
				b, err := sub.NextBatch(ctx)
				if err != nil {
					return err
				}
				if b.Gap > 0 {
					at += int(b.Gap)
				}
				for ev := range b.Events() {
					if want := fmt.Sprintf("%08d", at); !bytes.HasPrefix(ev.Payload, []byte(want)) {
						return fmt.Errorf("record %.8s, want %s", ev.Payload, want)
					}
					at++
				}
			}
			return nil
		}()
	}()
	pub := c.Publisher("bulk")
	var answered atomic.Int64
	payloads := make([][]byte, records)
	for i := range batches {
		for r := range payloads {
			payloads[r] = fmt.Appendf(payloads[r][:0], "%08d%0248d", i*records+r, 0)
		}
		err := pub.SendFunc(ctx, func(_ client.Ack, err error) {
			if err != nil {
				t.Error(err)
			}
			answered.Add(1)
		}, payloads...)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := pub.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if answered.Load() != batches {
		t.Errorf("%d answers, want %d", answered.Load(), batches)
	}
	if err := <-received; err != nil {
		t.Error(err)
	}
}

func TestNodeCache(t *testing.T) {
	n := felixtest.Start(t)
	c := dialNode(t, n)
	ctx := testContext(t)
	k := c.Cache("sessions")
	if _, ok, err := k.Get(ctx, "a"); ok || err != nil {
		t.Errorf("miss: %v %v", ok, err)
	}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 50 {
				key := fmt.Sprintf("%d/%d", w, i)
				value := bytes.Repeat([]byte(key), i)
				if err := k.Put(ctx, key, value, client.WithTTL(time.Hour)); err != nil {
					t.Error(err)
				}
				if got, ok, err := k.Get(ctx, key); err != nil || !ok || !bytes.Equal(got, value) {
					t.Errorf("%s: %q %v %v", key, got, ok, err)
				}
			}
		})
	}
	wg.Wait()
	if previous, existed, err := k.Delete(ctx, "3/2"); err != nil || !existed || string(previous) != "3/23/2" {
		t.Errorf("delete: %q %v %v", previous, existed, err)
	}
	entry, ok, err := k.GetVersioned(ctx, "3/1")
	if err != nil || !ok || !entry.HasVersion {
		t.Fatalf("versioned: %+v %v %v", entry, ok, err)
	}
	if r, err := k.PutIf(ctx, "3/1", []byte("x"), client.IfVersion(entry.Version+1)); err != nil || r.Applied {
		t.Errorf("put if another version: %+v %v", r, err)
	}
	if r, err := k.PutIf(ctx, "3/1", []byte("x"), client.IfVersion(entry.Version)); err != nil || !r.Applied || r.Version == entry.Version {
		t.Errorf("put if: %+v %v", r, err)
	}
	if r, err := k.PutIf(ctx, "3/1", []byte("y"), client.IfAbsent()); err != nil || r.Applied {
		t.Errorf("put if absent: %+v %v", r, err)
	}
}

func TestNodeRefusals(t *testing.T) {
	n := felixtest.Start(t, felixtest.WithSetting("auto-create", "false"))
	n.CreateStream("readable", 1)
	token := n.Token("stream.subscribe:stream:" + n.Tenant() + "/default/readable")
	quick := client.WithReconnect(client.ReconnectPolicy{Attempts: 2, Initial: time.Millisecond, Max: time.Millisecond})
	limited := dialNode(t, n, client.WithToken(token), quick)
	ctx := testContext(t)
	if _, err := limited.Publish(ctx, "readable", nil); !errors.Is(err, client.ErrForbidden) {
		t.Errorf("publish without the right: %v", err)
	}
	sub, err := limited.Subscribe(ctx, "readable")
	if err != nil {
		t.Fatalf("subscribe: %v", err)
	}
	sub.Close()
	c := dialNode(t, n, quick)
	if _, err := c.Publish(ctx, "unknown", nil); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("unknown stream: %v", err)
	}
	if _, err := c.Subscribe(ctx, "unknown"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("subscribe to an unknown stream: %v", err)
	}
	if _, _, err := c.Cache("unknown").Get(ctx, "x"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("unknown cache: %v", err)
	}
	if _, err := c.Publish(ctx, "readable", nil); err != nil {
		t.Errorf("after the refusals: %v", err)
	}
	_, err = client.Dial(ctx, []string{n.Addr()}, client.WithTenant(n.Tenant()), client.WithToken("nonsense"), client.WithCAPEM(n.CAPEM()))
	if !errors.Is(err, client.ErrUnauthenticated) {
		t.Errorf("bad token: %v", err)
	}
}

func TestNodeRestart(t *testing.T) {
	n := felixtest.Start(t)
	c := dialNode(t, n)
	ctx := testContext(t)
	if _, err := c.Publish(ctx, "s", []byte("before")); err != nil {
		t.Fatal(err)
	}
	if err := c.Cache("k").Put(ctx, "x", []byte("v")); err != nil {
		t.Fatal(err)
	}
	sub, err := c.Subscribe(ctx, "s", client.ContinueAtLatest())
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	n.Restart()
	got := make(chan client.Event, 1)
	go func() {
		ev, err := sub.Next(ctx)
		if err != nil {
			t.Errorf("next after the restart: %v", err)
		}
		got <- ev
	}()
	for {
		if _, err := c.Publish(ctx, "s", []byte("after"), client.WithAtLeastOnce()); err != nil {
			t.Fatal(err)
		}
		select {
		case ev := <-got:
			if string(ev.Payload) != "after" {
				t.Errorf("event %q", ev.Payload)
			}
		case <-time.After(20 * time.Millisecond):
			continue
		}
		break
	}
	if _, ok, err := c.Cache("k").Get(ctx, "x"); ok || err != nil {
		t.Errorf("memory survived: %v %v", ok, err)
	}
}

// handClock is a node's time that stands still unless moved.
type handClock struct {
	mu     sync.Mutex
	now    time.Time
	timers map[*handTimer]bool
}

type handTimer struct {
	at time.Time
	f  func()
}

func newHandClock() *handClock {
	return &handClock{now: time.Now(), timers: map[*handTimer]bool{}}
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	timer := &handTimer{at: c.now.Add(d), f: f}
	c.timers[timer] = true
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		waiting := c.timers[timer]
		delete(c.timers, timer)
		return waiting
	}
}

func (c *handClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
	for timer := range c.timers {
		if !timer.at.After(c.now) {
			delete(c.timers, timer)
			go timer.f()
		}
	}
}

// TestNodeTokenExpires keeps a pipeline, a subscription and a cache going
// across the expiry of several tokens.
func TestNodeTokenExpires(t *testing.T) {
	const tokens, batches = 4, 50
	clock := newHandClock()
	n := felixtest.Start(t, felixtest.WithClock(clock))
	var given atomic.Int64
	c := dialNode(t, n, client.WithTokenProvider(func(context.Context) (string, error) {
		given.Add(1)
		return n.TokenFor("short-lived", clock.Now().Add(5*time.Second)), nil
	}))
	ctx := testContext(t)
	sub, err := c.Subscribe(ctx, "s", client.QueueCapacity(4096))
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	pub := c.Publisher("s")
	k := c.Cache("k")
	for token := range tokens {
		for i := range batches {
			err := pub.SendFunc(ctx, func(_ client.Ack, err error) {
				if err != nil {
					t.Errorf("token %d, batch %d: %v", token, i, err)
				}
			}, fmt.Appendf(nil, "%d/%d", token, i))
			if err != nil {
				t.Fatal(err)
			}
			if err := k.Put(ctx, "x", nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := pub.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		for i := range batches {
			ev, err := sub.Next(ctx)
			if want := fmt.Sprintf("%d/%d", token, i); err != nil || string(ev.Payload) != want || ev.Gap != 0 {
				t.Fatalf("event %q gap %d, %v, want %q", ev.Payload, ev.Gap, err, want)
			}
		}
		clock.advance(66 * time.Second)
	}
	if st := sub.Stats(); st.Reauths != tokens-1 {
		t.Errorf("stats %+v, want a renewed token for each but the first", st)
	}
	if got := given.Load(); got < 3*tokens {
		t.Errorf("%d tokens were asked for", got)
	}
	c.Close()
	stopped := make(chan struct{})
	go func() {
		n.Stop()
		close(stopped)
	}()
	for { // the node's own waits are of this clock too
		select {
		case <-stopped:
			return
		case <-time.After(time.Millisecond):
			clock.advance(time.Second)
		}
	}
}
