package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/wire"
)

// TestDrain: running handlers finish undisturbed, and what was not begun goes
// back at once.
func TestDrain(t *testing.T) {
	g := newGroupPeer(t, 1)
	g.publishNumbered(0, 40)
	release, running := make(chan struct{}), make(chan uint64, 40)
	k := consume(t, dial(t, []string{g.addr()}), func(ctx context.Context, d Delivery) error {
		if d.Offset < 20 {
			return nil // earn some trust
		}
		running <- d.Offset
		<-release
		g.note("ctx %v", ctx.Err())
		return nil
	}, ConsumeConcurrency(2))
	a, b := <-running, <-running
	// How many records are claimed ahead depends on how fast the first were.
	behind := func() (n int) {
		g.mu.Lock()
		defer g.mu.Unlock()
		for i, r := range g.shards[0].records {
			if i >= 20 && uint64(i) != a && uint64(i) != b && r.attempts > 0 {
				n++
			}
		}
		return n
	}
	eventually(t, "records wait behind the running ones", func() bool { return behind() > 0 })
	k.cancel()
	eventually(t, "the rest is handed back", func() bool { return len(g.lines("nack")) > 0 })
	close(release)
	if err := k.result(); err != nil {
		t.Errorf("drain: %v", err)
	}
	for _, offset := range []uint64{a, b} {
		if g.at(fmt.Sprintf("ack 0:%d", offset)) < 0 {
			t.Errorf("record %d was running and is not acknowledged", offset)
		}
		if len(g.lines(fmt.Sprintf("nack 0:%d:", offset))) > 0 {
			t.Errorf("record %d was running and is handed back", offset)
		}
	}
	for _, line := range g.lines("nack") {
		if !strings.HasSuffix(line, " 0ms") {
			t.Errorf("handed back by %q", line)
		}
	}
	if lines := g.lines("ctx"); len(lines) != 2 || slices.ContainsFunc(lines, func(s string) bool { return s != "ctx <nil>" }) {
		t.Errorf("contexts of the running handlers: %v", lines)
	}
	if n := len(running); n != 0 {
		t.Errorf("%d handlers began during the drain", n)
	}
}

// TestDrainTimesOut: the contexts of handlers end, their records go back, and
// those that run on regardless are counted.
func TestDrainTimesOut(t *testing.T) {
	for _, abort := range []bool{false, true} {
		t.Run(fmt.Sprint("abort ", abort), func(t *testing.T) {
			g := newGroupPeer(t, 1)
			g.publishNumbered(0, 2)
			release, running := make(chan struct{}), make(chan struct{}, 2)
			insist, insisted := context.WithCancel(context.Background())
			drain := time.Duration(0)
			if abort {
				drain = time.Hour
			}
			ended := make(chan struct{})
			k := consume(t, dial(t, []string{g.addr()}), func(ctx context.Context, d Delivery) error {
				running <- struct{}{}
				if d.Offset == 0 {
					<-ctx.Done()
					return ctx.Err()
				}
				<-release
				close(ended)
				return nil
			}, ConsumeConcurrency(2), ConsumeDrain(drain), ConsumeAbort(insist), at(time.Hour), consumeGrace(200*time.Millisecond))
			<-running
			<-running
			k.cancel()
			insisted()
			err, ok := errors.AsType[*DrainError](k.result())
			if !ok || err.Cut != 2 || err.Running != 1 || err.Unsettled != 0 || err.Cause != nil {
				t.Errorf("error %+v", err)
			}
			if g.at("nack 0:0:1 0ms") < 0 {
				t.Errorf("the record of the handler that was cut is not handed back: %v", g.lines("nack"))
			}
			close(release)
			<-ended
			if len(g.lines("ack")) != 0 {
				t.Error("acknowledged behind the end of the consumer")
			}
		})
	}
}

// TestConsumeUntilEmpty ends by itself when all is settled, what failed
// included.
func TestConsumeUntilEmpty(t *testing.T) {
	g := newGroupPeer(t, 3)
	for shard := range 3 {
		g.publishNumbered(shard, 30*shard)
	}
	var handled atomic.Int32
	c := dial(t, []string{g.addr()})
	err := c.Consume(testContext(t), c.Group("s", "g"), func(_ context.Context, d Delivery) error {
		handled.Add(1)
		if d.Offset == 7 && d.Attempts < 3 {
			return RetryAfter(0, errors.New("no"))
		}
		return nil
	}, ConsumeUntilEmpty(), ConsumeConcurrency(3))
	if err != nil || g.unfinished() != 0 || handled.Load() != 90+2*2 {
		t.Errorf("%v, %d records unfinished, %d handled", err, g.unfinished(), handled.Load())
	}
}

// TestConsumeRefusedForGood: the refusal ends the consumer, behind a drain.
func TestConsumeRefusedForGood(t *testing.T) {
	for _, code := range []string{"forbidden", "invalid_request"} {
		t.Run(code, func(t *testing.T) {
			g := newGroupPeer(t, 2)
			g.publishNumbered(0, 10)
			running := make(chan struct{})
			var once sync.Once
			g.setRefuse(func(s *peerStream, m wire.Message) wire.Message {
				if m, ok := m.(*wire.GroupPoll); ok && m.Shard == 1 {
					<-running
					return refusal(code, "fatal")
				}
				return nil
			})
			var polled atomic.Int32
			err := consume(t, dial(t, []string{g.addr()}), func(_ context.Context, d Delivery) error {
				once.Do(func() { close(running) })
				return nil
			}, ConsumeConcurrency(2), WithConsumeHooks(ConsumeHooks{
				Polled: func(_ uint32, n int, _ time.Duration, _ error) { polled.Add(int32(n)) },
			})).result()
			if !hasCode(err, Code(code)) {
				t.Errorf("error %v", err)
			}
			if n := len(g.lines("ack")) + len(g.lines("nack")); n != int(polled.Load()) {
				t.Errorf("%d records settled of %d", n, polled.Load())
			}
		})
	}
}

// TestConsumeEndsWithItsClient: it says so, and what runs may finish.
func TestConsumeEndsWithItsClient(t *testing.T) {
	g := newGroupPeer(t, 1)
	g.publishNumbered(0, 1)
	c := dial(t, []string{g.addr()})
	running, release := make(chan struct{}), make(chan struct{})
	k := consume(t, c, func(context.Context, Delivery) error {
		close(running)
		<-release
		return nil
	}, consumeGrace(0), ConsumeDrain(time.Hour))
	<-running
	c.Close()
	close(release)
	if err := k.result(); !errors.Is(err, ErrClosed) {
		t.Errorf("error %v", err)
	}
}
