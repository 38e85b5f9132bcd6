package client

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A consuming is a Consume that runs in the background of a test.
type consuming struct {
	t      *testing.T
	cancel context.CancelFunc
	done   chan error
}

func consume(t *testing.T, c *Client, handler Handler, opts ...ConsumeOption) *consuming {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	k := &consuming{t: t, cancel: cancel, done: make(chan error, 1)}
	opts = append([]ConsumeOption{consumeLastAnswer(10 * time.Millisecond)}, opts...)
	go func() { k.done <- c.Consume(ctx, c.Group("s", "g"), handler, opts...) }()
	t.Cleanup(cancel)
	return k
}

// result waits for the consumer's end.
func (k *consuming) result() error {
	k.t.Helper()
	select {
	case err := <-k.done:
		return err
	case <-time.After(patience):
		k.t.Fatal("the consumer does not end")
		return nil
	}
}

// stop ends the consumer and expects a clean drain.
func (k *consuming) stop() {
	k.t.Helper()
	k.cancel()
	if err := k.result(); err != nil {
		k.t.Errorf("consumer: %v", err)
	}
}

func at(wait time.Duration) ConsumeOption {
	return ConsumeBackoff(func(uint32) time.Duration { return wait })
}

// TestAckedAfterReturn: on the wire, no acknowledgement comes before its
// handler has returned.
func TestAckedAfterReturn(t *testing.T) {
	const records = 500
	g := newGroupPeer(t, 1)
	g.publishNumbered(0, records)
	k := consume(t, dial(t, []string{g.addr()}), func(_ context.Context, d Delivery) error {
		runtime.Gosched()
		g.note("return %d", d.Offset)
		return nil
	}, ConsumeConcurrency(4))
	eventually(t, "all acknowledged", func() bool { return g.unfinished() == 0 })
	k.stop()
	for i := range records {
		acked, returned := g.at(fmt.Sprintf("ack 0:%d", i)), g.at(fmt.Sprintf("return %d", i))
		if returned < 0 || acked < returned {
			t.Errorf("record %d returned at %d, acknowledged at %d", i, returned, acked)
		}
	}
	if polls := len(g.lines("poll")); polls > records/4 {
		t.Errorf("%d polls for %d records", polls, records)
	}
}

// TestHandlerVerdicts: what a handler's end means for its record.
func TestHandlerVerdicts(t *testing.T) {
	boom := errors.New("boom")
	table := []struct {
		name    string
		handler func() error
		want    string // at the broker
		err     func(error) bool
	}{
		{"nil", func() error { return nil }, "ack 0:0", isNil},
		{"error", func() error { return boom }, "nack 0:0:1 7ms", func(err error) bool { return err == boom }},
		{"panic", func() error { panic(boom) }, "nack 0:0:1 7ms", func(err error) bool {
			p, ok := errors.AsType[*PanicError](err)
			return ok && errors.Is(err, boom) && strings.Contains(string(p.Stack), "consume_test.go")
		}},
		{"end of goroutine", func() error { runtime.Goexit(); return nil }, "nack 0:0:1 7ms", func(err error) bool {
			return errors.As(err, new(*PanicError))
		}},
		{"dead letter", func() error { return fmt.Errorf("wrapped: %w", DeadLetter(boom)) }, "dead letter 0:0",
			func(err error) bool { return errors.Is(err, boom) }},
		{"retry after", func() error { return RetryAfter(time.Minute, boom) }, "nack 0:0:1 60000ms",
			func(err error) bool { return errors.Is(err, boom) }},
	}
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			g := newGroupPeer(t, 1)
			g.publish(0, "a", "b")
			finished := make(chan error, 2)
			k := consume(t, dial(t, []string{g.addr()}), func(_ context.Context, d Delivery) error {
				if d.Offset == 0 {
					return row.handler()
				}
				return nil
			}, at(7*time.Millisecond), WithConsumeHooks(ConsumeHooks{
				Finished: func(_ Delivery, _ time.Duration, err error) { finished <- err },
			}))
			if err := <-finished; !row.err(err) {
				t.Errorf("handler's error %v", err)
			}
			eventually(t, row.want, func() bool { return g.at(row.want) >= 0 })
			eventually(t, "the next record", func() bool { return g.at("ack 0:1") >= 0 })
			k.stop()
			if n := len(g.lines("ack 0:0")); (n > 0) != (row.want == "ack 0:0") {
				t.Errorf("%d acks of the record", n)
			}
		})
	}
}

// TestFailedRecordComesAgain: until it is handled, however it failed.
func TestFailedRecordComesAgain(t *testing.T) {
	const records, failures = 50, 3
	g := newGroupPeer(t, 1)
	g.publishNumbered(0, records)
	var mu sync.Mutex
	handled := map[string]int{}
	k := consume(t, dial(t, []string{g.addr()}), func(_ context.Context, d Delivery) error {
		mu.Lock()
		handled[string(d.Payload)]++
		n := handled[string(d.Payload)]
		mu.Unlock()
		switch {
		case int(d.Attempts) != n:
			t.Errorf("record %d: attempt %d is reported as %d", d.Offset, n, d.Attempts)
		case n > failures:
			return nil
		case n%2 == 0:
			panic("no")
		}
		return errors.New("no")
	}, ConsumeConcurrency(3), at(0))
	eventually(t, "all handled", func() bool { return g.unfinished() == 0 })
	k.stop()
	for i := range records {
		if n := handled[fmt.Sprint("r", i)]; n != failures+1 {
			t.Errorf("record %d was handled %d times", i, n)
		}
	}
}

func consumeGrace(d time.Duration) ConsumeOption {
	return consumeOption(func(o consumeOptions) consumeOptions { o.grace = d; return o })
}

func consumeLastAnswer(d time.Duration) ConsumeOption {
	return consumeOption(func(o consumeOptions) consumeOptions { o.lastAnswer = d; return o })
}

func consumeShardsEvery(d time.Duration) ConsumeOption {
	return consumeOption(func(o consumeOptions) consumeOptions { o.shardsEvery = d; return o })
}

// TestConcurrencyIsBounded: as many handlers as asked for run at once, and
// never more; slow ones have nothing claimed ahead.
func TestConcurrencyIsBounded(t *testing.T) {
	const n = 5
	g := newGroupPeer(t, 1)
	g.publishNumbered(0, 100)
	var running, most atomic.Int32
	full := make(chan struct{})
	var once sync.Once
	release := make(chan struct{})
	k := consume(t, dial(t, []string{g.addr()}), func(context.Context, Delivery) error {
		r := running.Add(1)
		defer running.Add(-1)
		for old := most.Load(); r > old && !most.CompareAndSwap(old, r); old = most.Load() {
		}
		if r == n {
			once.Do(func() { close(full) })
		}
		<-release
		return nil
	}, ConsumeConcurrency(n))
	<-full
	g.mu.Lock()
	claimed := 0
	for _, r := range g.shards[0].records {
		if r.claimed {
			claimed++
		}
	}
	g.mu.Unlock()
	if claimed != n {
		t.Errorf("%d records claimed while no handler has returned, want %d", claimed, n)
	}
	close(release)
	eventually(t, "all acknowledged", func() bool { return g.unfinished() == 0 })
	k.stop()
	if m := most.Load(); m != n {
		t.Errorf("%d handlers at once, want %d", m, n)
	}
}

// TestConsumeHooks: each is told once for what it is about.
func TestConsumeHooks(t *testing.T) {
	g := newGroupPeer(t, 1)
	g.publishNumbered(0, 10)
	var mu sync.Mutex
	counts := map[string]int{}
	count := func(what string, n int) {
		mu.Lock()
		counts[what] += n
		mu.Unlock()
	}
	k := consume(t, dial(t, []string{g.addr()}), func(_ context.Context, d Delivery) error {
		switch {
		case d.Offset == 3 && d.Attempts == 1:
			return errors.New("no")
		case d.Offset == 4:
			return DeadLetter(nil)
		}
		return nil
	}, at(0), WithConsumeHooks(ConsumeHooks{
		Polled:  func(_ uint32, n int, _ time.Duration, err error) { count("polled", n) },
		Started: func(Delivery, time.Duration) { count("started", 1) },
		Finished: func(_ Delivery, _ time.Duration, err error) {
			count("finished", 1)
			if err != nil {
				count("errors", 1)
			}
		},
		Acked:        func(Claim, time.Duration) { count("acked", 1) },
		Nacked:       func(Claim, time.Duration, time.Duration) { count("nacked", 1) },
		DeadLettered: func(Claim, time.Duration) { count("dead", 1) },
		Failed:       func(c Claim, err error) { t.Errorf("failed: %v %v", c, err) },
	}))
	eventually(t, "all finished", func() bool { return g.unfinished() == 0 })
	k.stop()
	mu.Lock()
	defer mu.Unlock()
	want := map[string]int{"polled": 11, "started": 11, "finished": 11, "errors": 2, "acked": 9, "nacked": 1, "dead": 1}
	for what, n := range want {
		if counts[what] != n {
			t.Errorf("%s: %d, want %d", what, counts[what], n)
		}
	}
}
