package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/felixtest"
)

// publishN publishes n records, named by their number, without a key or with
// one of many.
func publishN(t *testing.T, c *client.Client, stream string, n int, keyed bool) {
	t.Helper()
	pub := c.Publisher(stream)
	for i := range n {
		var err error
		if payload := fmt.Append(nil, i); keyed {
			_, err = pub.SendKeyed(testContext(t), fmt.Append(nil, "key", i), payload)
		} else {
			_, err = pub.Send(testContext(t), payload)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := pub.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestNodeGroup takes a group through every call.
func TestNodeGroup(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable(), felixtest.WithSetting("record-publishers", "true"))
	c := dialNode(t, n, client.WithPublishers(), client.WithTimestamps())
	ctx := testContext(t)
	g := c.Group("orders", "workers")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	publishN(t, c, "orders", 6, false)
	if n, err := g.Shards(ctx); err != nil || n != 1 {
		t.Fatalf("%d shards, %v", n, err)
	}
	first, err := g.Poll(ctx, client.PollMax(4), client.PollAs("me"), client.PollVisibility(time.Hour))
	must(err)
	for i, d := range first {
		if d.Offset != uint64(i) || string(d.Payload) != fmt.Sprint(i) || d.Attempts != 1 || d.Time.IsZero() || d.Publisher == "" {
			t.Errorf("delivery %d: %+v", i, d)
		}
	}
	if len(first) != 4 {
		t.Fatalf("%d deliveries", len(first))
	}
	must(g.Ack(ctx, first[0].Claim, first[2].Claim))
	must(g.Nack(ctx, first[1].Claim, time.Hour))
	must(g.DeadLetter(ctx, first[3].Claim))
	if err := g.Nack(ctx, first[1].Claim, 0); !errors.Is(err, client.ErrStaleClaim) || client.IsRetryable(err) {
		t.Errorf("second nack of one claim: %v", err)
	}
	if _, err := g.Extend(ctx, first[1].Claim, time.Minute); !errors.Is(err, client.ErrStaleClaim) {
		t.Errorf("extension of a claim handed back: %v", err)
	}
	rest, err := g.Poll(ctx)
	must(err)
	if len(rest) != 2 || rest[0].Offset != 4 {
		t.Fatalf("the rest: %+v", rest)
	}
	if granted, err := g.Extend(ctx, rest[0].Claim, 24*time.Hour); err != nil || granted != 12*time.Hour {
		t.Errorf("granted %v, %v", granted, err)
	}
	info, err := g.Describe(ctx, 0, client.DescribeHeld(0, 100))
	must(err)
	states := make([]client.HeldState, 0, len(info.Held))
	for _, h := range info.Held {
		states = append(states, h.State)
	}
	want := []client.HeldState{client.HeldDelayed, client.HeldClaimed, client.HeldClaimed}
	if info.Committed != 1 || !info.HasCommitted || info.Tail != 6 || info.DeadLetters != 1 || info.MaxAttempts != 5 || info.Lag() != 5 ||
		!slices.Equal(states, want) || info.First == nil || info.First.Offset != 1 || info.NextLapse.IsZero() || info.More {
		t.Errorf("info %+v", info)
	}
	must(g.Ack(ctx, first[1].Claim, rest[0].Claim, rest[1].Claim))
	dead, err := g.DeadLetters(ctx, 0)
	if err != nil || !slices.Equal(dead, []uint64{3}) {
		t.Errorf("dead letters %v, %v", dead, err)
	}
	must(g.Redrive(ctx, 0, 3))
	if err := g.Discard(ctx, 0, 3); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("discard of what was redriven: %v", err)
	}
	again, err := g.Poll(ctx)
	if err != nil || len(again) != 1 || again[0].Offset != 3 || again[0].Attempts != 1 {
		t.Fatalf("redriven: %+v, %v", again, err)
	}
	must(g.DeadLetter(ctx, again[0].Claim))
	must(g.Discard(ctx, 0, 3))

	if at, err := g.Create(ctx, 0, client.Latest()); err != nil || at.Moved || at.Offset != 6 {
		t.Errorf("create of a group that exists: %+v, %v", at, err)
	}
	if at, err := g.Seek(ctx, 0, client.Offset(2)); err != nil || !at.Moved || at.Offset != 2 {
		t.Errorf("seek: %+v, %v", at, err)
	}
	if _, err := g.Seek(ctx, 0, client.Offset(7)); !errors.Is(err, client.ErrInvalidRequest) {
		t.Errorf("seek past the end: %v", err)
	}
	if d, err := g.Poll(ctx); err != nil || len(d) != 4 || d[0].Offset != 2 {
		t.Errorf("behind the seek: %+v, %v", d, err)
	}
	if existed, err := g.Delete(ctx, 0); err != nil || !existed {
		t.Errorf("delete: %v, %v", existed, err)
	}
	if existed, err := g.Delete(ctx, 0); err != nil || existed {
		t.Errorf("second delete: %v, %v", existed, err)
	}
	if at, err := g.Create(ctx, 0, client.Latest()); err != nil || !at.Moved || at.Offset != 6 {
		t.Errorf("create: %+v, %v", at, err)
	}
	if err := g.Ack(ctx, client.Claim{Offset: 100}); !errors.Is(err, client.ErrInvalidRequest) {
		t.Errorf("ack past the end: %v", err)
	}
}

// TestNodeGroupNeedsStorage: a node without has no groups.
func TestNodeGroupNeedsStorage(t *testing.T) {
	c := dialNode(t, felixtest.Start(t))
	if _, err := c.Group("orders", "g").Poll(testContext(t)); !errors.Is(err, client.ErrUnsupported) {
		t.Errorf("error %v", err)
	}
}

// A tally counts what handlers were given.
type tally struct {
	mu      sync.Mutex
	handled map[string]int
}

func (c *tally) add(d client.Delivery) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.handled == nil {
		c.handled = map[string]int{}
	}
	c.handled[string(d.Payload)]++
	return c.handled[string(d.Payload)]
}

func (c *tally) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.handled)
}

// finished waits until the group has finished n records in all shards.
func finished(t *testing.T, g *client.Group, shards uint32, n uint64) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		var sum, lag uint64
		for shard := range shards {
			info, err := g.Describe(testContext(t), shard)
			if err != nil {
				t.Fatal(err)
			}
			sum += info.Committed
			lag += info.Lag() + info.InFlight + info.Owed
		}
		if sum == n && lag == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("finished %d of %d records, %d to go", sum, n, lag)
		}
	}
}

// TestNodeConsume: several workers share all shards; each record is handled
// once, though handlers fail and panic.
func TestNodeConsume(t *testing.T) {
	const shards, records, workers = 4, 600, 3
	n, c := durableNode(t)
	n.CreateStream("orders", shards)
	publishN(t, c, "orders", records, true)
	var count tally
	ctx, cancel := context.WithCancel(testContext(t))
	var wg sync.WaitGroup
	for i := range workers {
		own := dialNode(t, n)
		wg.Go(func() {
			err := own.Consume(ctx, own.Group("orders", "g"), func(_ context.Context, d client.Delivery) error {
				switch n := count.add(d); {
				case n == 1 && d.Offset%50 == 7:
					return errors.New("not yet")
				case n == 1 && d.Offset%50 == 8:
					panic("not yet")
				}
				return nil
			}, client.ConsumeConcurrency(2+i), client.ConsumeBackoff(func(uint32) time.Duration { return time.Millisecond }))
			if err != nil {
				t.Errorf("worker %d: %v", i, err)
			}
		})
	}
	finished(t, c.Group("orders", "g"), shards, records)
	cancel()
	wg.Wait()
	if count.len() != records {
		t.Errorf("%d records handled", count.len())
	}
	extra := 0
	for _, n := range count.handled {
		extra += n - 1
	}
	if extra == 0 || extra > shards*2*(records/50) {
		t.Errorf("%d repetitions", extra)
	}
}

// TestNodeConsumeOverARestart: claims die with the broker, and nothing is
// lost.
func TestNodeConsumeOverARestart(t *testing.T) {
	const records = 400
	n, c := durableNode(t)
	publishN(t, c, "orders", records, false)
	var count tally
	ctx, cancel := context.WithCancel(testContext(t))
	done := make(chan error, 1)
	g := c.Group("orders", "g")
	var restart sync.WaitGroup
	var once sync.Once
	go func() {
		done <- c.Consume(ctx, g, func(_ context.Context, d client.Delivery) error {
			count.add(d)
			if d.Offset == records/2 {
				once.Do(func() { restart.Go(n.Restart) })
			}
			return nil
		}, client.ConsumeConcurrency(4))
	}()
	for end := time.Now().Add(patience); count.len() < records && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // asking the node would keep it from stopping
	}
	restart.Wait()
	finished(t, g, 1, records)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if count.len() != records {
		t.Errorf("%d records handled", count.len())
	}
	if dead, err := g.DeadLetters(testContext(t), 0); err != nil || len(dead) != 0 {
		t.Errorf("dead letters %v, %v", dead, err)
	}
}

// TestNodeClaimIsKeptAndLost: a claim is extended for as long as its handler
// runs; when the group is moved, the handler is told.
func TestNodeClaimIsKeptAndLost(t *testing.T) {
	_, c := durableNode(t)
	publishN(t, c, "orders", 1, false)
	g := c.Group("orders", "g")
	ctx, cancel := context.WithCancel(testContext(t))
	extended := make(chan struct{}, 64)
	var count tally
	causes := make(chan error, 1)
	done := make(chan error, 1)
	go func() {
		done <- c.Consume(ctx, g, func(ctx context.Context, d client.Delivery) error {
			if count.add(d) > 1 {
				return nil
			}
			<-ctx.Done()
			causes <- context.Cause(ctx)
			return nil
		}, client.ConsumeVisibility(300*time.Millisecond), client.WithConsumeHooks(client.ConsumeHooks{
			Extended: func(client.Claim, time.Duration, time.Duration) { extended <- struct{}{} },
		}))
	}()
	for range 6 { // twice as long as the claim would stand
		<-extended
	}
	if _, err := g.Seek(testContext(t), 0, client.Earliest()); err != nil {
		t.Fatal(err)
	}
	if err := <-causes; !errors.As(err, new(*client.ClaimLostError)) || !errors.Is(err, client.ErrStaleClaim) {
		t.Errorf("cause %v", err)
	}
	finished(t, g, 1, 1)
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestNodeReclaim: a worker that comes again under its name has its records
// first, without waiting for their claims to lapse.
func TestNodeReclaim(t *testing.T) {
	n, c := durableNode(t)
	publishN(t, c, "orders", 3, false)
	first := dialNode(t, n)
	if d, err := first.Group("orders", "g").Poll(testContext(t), client.PollMax(2), client.PollAs("me"), client.PollReclaim()); err != nil || len(d) != 2 {
		t.Fatalf("first: %v, %v", d, err)
	}
	first.Close() // dies
	var count tally
	err := c.Consume(testContext(t), c.Group("orders", "g"), func(_ context.Context, d client.Delivery) error {
		count.add(d)
		return nil
	}, client.ConsumeAs("me"), client.ConsumeUntilEmpty())
	if err != nil || count.len() != 3 {
		t.Errorf("%d records handled, %v", count.len(), err)
	}
}

// TestNodeConsumeForbidden ends at once.
func TestNodeConsumeForbidden(t *testing.T) {
	n, _ := durableNode(t)
	c := dialNode(t, n, client.WithToken(n.Token("stream.publish:stream:t1/*/*")))
	err := c.Consume(testContext(t), c.Group("orders", "g"), func(context.Context, client.Delivery) error { return nil })
	if !errors.Is(err, client.ErrForbidden) {
		t.Errorf("error %v", err)
	}
}

// TestNodeAcksTogether: a node takes batches, and says which claims failed.
func TestNodeAcksTogether(t *testing.T) {
	c := dialNode(t, felixtest.Start(t, felixtest.Durable()))
	ctx := testContext(t)
	publishN(t, c, "orders", 10, false)
	g := c.Group("orders", "workers")
	got, err := g.Poll(ctx, client.PollMax(8))
	if err != nil || len(got) != 8 {
		t.Fatalf("%v, %v", got, err)
	}
	all := []client.Claim{{Offset: 99}}
	for _, d := range got {
		all = append(all, d.Claim)
	}
	err = g.Ack(ctx, all...)
	var failed *client.ClaimError
	if !errors.Is(err, client.ErrInvalidRequest) || !errors.As(err, &failed) || failed.Claim.Offset != 99 {
		t.Fatal(err)
	}
	if info, err := g.Describe(ctx, 0); err != nil || info.Committed != 8 || info.InFlight != 0 {
		t.Fatalf("%+v, %v", info, err)
	}
}
