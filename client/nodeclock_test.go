package client_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/felixtest"
	"github.com/felixlog/felix/felixtest/stepped"
)

// A clockStep is how a test sets a broker's clock.
type clockStep struct {
	set   func(*stepped.Clock)
	ahead bool
}

var clockSteps = map[string]clockStep{
	"an hour forth":   {func(c *stepped.Clock) { c.Step(time.Hour) }, true},
	"an hour back":    {func(c *stepped.Clock) { c.Step(-time.Hour) }, false},
	"ten years forth": {func(c *stepped.Clock) { c.Step(87_600 * time.Hour) }, true},
	"to 1970":         {func(c *stepped.Clock) { c.Set(time.Unix(0, 0)) }, false},
}

// said is what a node logs.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *said) count(text string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.Count(s.text.String(), text)
}

// awaited tries again until it is so.
func awaited(t *testing.T, what string, so func() bool) {
	t.Helper()
	for until := time.Now().Add(2 * patience); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("not so: %s", what)
		}
	}
}

// A clockRig is a node on a clock that can be set, with claims out, a delay
// running, keys that expire and clients whose tokens end.
type clockRig struct {
	t       *testing.T
	clock   *stepped.Clock
	said    *said
	node    *felixtest.Node
	c       *client.Client
	g       *client.Group
	caches  []*client.Cache // one in memory, one on the log
	claimed []client.Delivery
	brief   string // a token that ends in half an hour
	bound   *client.Client
	last    time.Time // of the newest record read
}

func (r *clockRig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func newClockRig(t *testing.T) *clockRig {
	t.Helper()
	r := &clockRig{t: t, clock: new(stepped.Clock), said: new(said)}
	r.node = felixtest.Start(t, felixtest.Durable(), felixtest.WithClock(r.clock), felixtest.WithLogger(slog.New(slog.NewTextHandler(r.said, nil))))
	r.node.CreateCacheWith("memory", broker.CacheOptions{})
	r.node.CreateCache("log")
	r.c = dialNode(t, r.node, client.WithTimestamps())
	r.g = r.c.Group("jobs", "workers")
	ctx := testContext(t)

	publishN(t, r.c, "jobs", 8, false)
	var err error
	r.claimed, err = r.g.Poll(ctx, client.PollMax(2), client.PollVisibility(time.Hour))
	r.must(err)
	delayed, err := r.g.Poll(ctx, client.PollMax(1))
	r.must(err)
	r.must(r.g.Nack(ctx, delayed[0].Claim, time.Hour))
	_, err = r.g.Poll(ctx, client.PollMax(1), client.PollVisibility(time.Second))
	r.must(err)

	for _, name := range []string{"memory", "log"} {
		k := r.c.Cache(name)
		r.must(k.Put(ctx, "seconds", []byte("v"), client.WithTTL(time.Second)))
		r.must(k.Put(ctx, "half an hour", []byte("v"), client.WithTTL(30*time.Minute)))
		r.caches = append(r.caches, k)
	}
	r.brief = r.node.TokenFor("brief", time.Now().Add(30*time.Minute))
	r.bound = dialNode(t, r.node, client.WithToken(r.brief))
	_, err = r.bound.Publish(ctx, "other", []byte("before"))
	r.must(err)
	return r
}

// memoryOffset publishes to a stream in memory, and answers the record's offset.
func (r *clockRig) memoryOffset() uint64 {
	r.t.Helper()
	ctx := testContext(r.t)
	sub, err := r.c.Subscribe(ctx, "memory")
	r.must(err)
	defer sub.Close()
	_, err = r.c.Publish(ctx, "memory", []byte("x"))
	r.must(err)
	e, err := sub.Next(ctx)
	r.must(err)
	return e.Offset
}

// accepts says whether a new connection may use a token.
func (r *clockRig) accepts(token string) bool {
	c, err := client.Dial(testContext(r.t), []string{r.node.Addr()}, client.WithTenant(r.node.Tenant()), client.WithToken(token), client.WithCAPEM(r.node.CAPEM()))
	if err == nil {
		r.must(c.Close())
	}
	return err == nil
}

func (r *clockRig) held(cache *client.Cache, key string) bool {
	r.t.Helper()
	_, ok, err := cache.Get(testContext(r.t), key)
	r.must(err)
	return ok
}

// recordsInOrder reads all records there are: times do not decrease, and lead
// back to where they are.
func (r *clockRig) recordsInOrder(when string) {
	r.t.Helper()
	ctx := testContext(r.t)
	// The node may have been restarted since the last one.
	_, err := r.c.Publish(ctx, "jobs", []byte("one more"), client.WithAtLeastOnce())
	r.must(err)
	page, err := r.c.Read(ctx, "jobs", client.Range{})
	r.must(err)
	var last time.Time
	found := uint64(0)
	for _, e := range page.Records {
		if e.Time.Before(last) || e.Time.IsZero() {
			r.t.Fatalf("%s: record %d is of %v, one before it of %v", when, e.Offset, e.Time, last)
		}
		at, ok, err := r.c.OffsetForTime(ctx, "jobs", 0, e.Time)
		if err != nil || !ok || at > e.Offset || at < found || e.Time.After(last) && at != e.Offset {
			r.t.Fatalf("%s: the time of record %d is found at %d, %t, %v; that of an earlier one at %d", when, e.Offset, at, ok, err, found)
		}
		last, found = e.Time, at
	}
	if last.Before(r.last) {
		r.t.Fatalf("%s: the newest record is of %v, and was of %v", when, last, r.last)
	}
	r.last = last
}

// TestNodeClockSteps sets the clock of a broker at work, and puts it right: what
// was given out for a time stays given out for that time and no longer.
func TestNodeClockSteps(t *testing.T) {
	for name, step := range clockSteps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newClockRig(t)
			ctx := testContext(t)
			r.recordsInOrder("before")
			r.node.CreateStreamWith("memory", broker.StreamOptions{Shards: 1})
			used := r.memoryOffset()
			step.set(r.clock)

			awaited(t, "the step is logged", func() bool { return r.said.count("the machine's clock was set") == 1 })
			r.recordsInOrder("after the step")
			var seen []uint64
			awaited(t, "the claim of seconds has lapsed, and all that was never claimed is there", func() bool {
				got, err := r.g.Poll(ctx)
				r.must(err)
				for _, d := range got {
					seen = append(seen, d.Offset)
				}
				return len(seen) >= 7 // 3 to 7, and two more
			})
			if slices.Sort(seen); seen[0] != 3 || len(slices.Compact(seen)) != len(seen) {
				t.Errorf("records %v were handed out, and not 3 and those after it once each", seen)
			}
			r.must(r.g.Ack(ctx, r.claimed[0].Claim))
			if granted, err := r.g.Extend(ctx, r.claimed[1].Claim, time.Hour); err != nil || granted != time.Hour {
				t.Errorf("a claim of an hour is extended by %v, %v", granted, err)
			}
			info, err := r.g.Describe(ctx, 0, client.DescribeHeld(1, 2))
			r.must(err)
			for n, state := range []client.HeldState{client.HeldClaimed, client.HeldDelayed} {
				h := info.Held[n]
				if left := h.Until.Sub(r.clock.Now()); h.State != state || left > time.Hour || left < 30*time.Minute {
					t.Errorf("record %d is %v for another %v by the broker's clock", h.Offset, h.State, left)
				}
			}

			for _, k := range r.caches {
				awaited(t, "a key of seconds is gone", func() bool { return !r.held(k, "seconds") })
				if !r.held(k, "half an hour") {
					t.Error("a key of half an hour is gone")
				}
			}

			r.node.RemoveStream("memory")
			r.node.CreateStreamWith("memory", broker.StreamOptions{Shards: 1})
			if again := r.memoryOffset(); again <= used {
				t.Errorf("a stream in memory that was made anew uses offset %d, after %d", again, used)
			}

			if _, err := r.bound.Publish(ctx, "other", []byte("after")); err != nil {
				t.Errorf("a client that was connected: %v", err)
			}
			if r.accepts(r.brief) == step.ahead {
				t.Errorf("a token of half an hour is accepted: %t", !step.ahead)
			}

			r.clock.Set(time.Now())
			awaited(t, "the step back to the right time is logged", func() bool { return r.said.count("the machine's clock was set") == 2 })
			r.recordsInOrder("put right")
			if _, err := r.g.Extend(ctx, r.claimed[1].Claim, time.Hour); err != nil {
				t.Errorf("a claim of an hour, when the clock is right again: %v", err)
			}
			if !r.accepts(r.brief) {
				t.Error("a token of half an hour is not accepted when the clock is right again")
			}
			if forth, back := r.said.count("clock was set forward"), r.said.count("clock was set back"); forth != 1 || back != 1 {
				t.Errorf("logged %d steps forward and %d back", forth, back)
			}
		})
	}
}

// TestNodeStartsOnAWrongClock: what a restart finds on disk is judged by the clock
// as it is then; times of records go on.
func TestNodeStartsOnAWrongClock(t *testing.T) {
	for name, step := range clockSteps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newClockRig(t)
			r.recordsInOrder("before")
			r.node.CreateStreamWith("memory", broker.StreamOptions{Shards: 1})
			used := r.memoryOffset()
			onLog := r.caches[1]
			step.set(r.clock)
			r.node.Restart()
			_, err := r.c.Subscribe(testContext(t), "memory", client.From(client.Offset(used)))
			var at *client.CursorError
			if !errors.As(err, &at) || at.TooOld() != step.ahead {
				t.Errorf("an offset of before the restart, of a stream in memory: %v", err)
			}
			if there := r.held(onLog, "half an hour"); there == step.ahead {
				t.Errorf("a key of half an hour is there: %t", there)
			}
			r.recordsInOrder("started on a wrong clock")
			if warned := r.said.count("a time that is still to come"); (warned > 0) == step.ahead {
				t.Errorf("warned %d times of records of a time to come", warned)
			}
			got, err := r.g.Poll(testContext(t), client.PollVisibility(time.Second))
			if err != nil || len(got) < 10 {
				t.Errorf("%d records after a restart, %v", len(got), err)
			}
			r.must(onLog.Put(testContext(t), "a second", []byte("v"), client.WithTTL(time.Second)))
			awaited(t, "a key of a second is gone", func() bool { return !r.held(onLog, "a second") })

			r.clock.Set(time.Now())
			r.recordsInOrder("put right")
			awaited(t, fmt.Sprint("the claims of a second have lapsed after ", name), func() bool {
				got, err := r.g.Poll(testContext(t))
				r.must(err)
				return len(got) >= 10
			})
			r.node.Restart()
			r.recordsInOrder("started again on the right one")
		})
	}
}
