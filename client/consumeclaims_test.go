package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/wire"
)

// TestClaimsAreExtended: those of running handlers, and those that wait.
func TestClaimsAreExtended(t *testing.T) {
	g := newGroupPeer(t, 1)
	g.publishNumbered(0, 12)
	release := make(chan struct{})
	var granted atomic.Int32
	k := consume(t, dial(t, []string{g.addr()}), func(_ context.Context, d Delivery) error {
		if d.Offset >= 8 {
			<-release
		}
		return nil
	}, ConsumeVisibility(150*time.Millisecond), WithConsumeHooks(ConsumeHooks{
		Extended: func(c Claim, d, _ time.Duration) {
			if d != 150*time.Millisecond {
				t.Errorf("granted %v", d)
			}
			granted.Add(1)
		},
	}))
	for _, offset := range []int{8, 11} { // one runs, one waits
		line := fmt.Sprintf("extend 0:%d:1 150ms", offset)
		eventually(t, "three extensions of each", func() bool { return len(g.lines(line)) >= 3 })
	}
	close(release)
	eventually(t, "all acknowledged", func() bool { return g.unfinished() == 0 })
	k.stop()
	if n := len(g.lines("nack")); n != 0 || granted.Load() == 0 {
		t.Errorf("%d nacks, %d extensions told", n, granted.Load())
	}
	after := len(g.lines("extend"))
	if lines := g.lines("extend 0:0:"); len(lines) > 0 && after == 0 {
		t.Errorf("a finished record is extended: %v", lines)
	}
}

// TestLostClaim: the handler is told, and its record left alone.
func TestLostClaim(t *testing.T) {
	g := newGroupPeer(t, 1)
	g.publishNumbered(0, 2)
	g.setRefuse(func(s *peerStream, m wire.Message) wire.Message {
		if m, ok := m.(*wire.GroupExtend); ok && m.Offset == 0 {
			return stale("fatal")
		}
		return nil
	})
	failed := make(chan error, 4)
	k := consume(t, dial(t, []string{g.addr()}), func(ctx context.Context, d Delivery) error {
		if d.Offset == 0 {
			<-ctx.Done()
			if lost, ok := errors.AsType[*ClaimLostError](context.Cause(ctx)); !ok || lost.Claim != d.Claim || !errors.Is(lost, ErrStaleClaim) {
				t.Errorf("cause %v", context.Cause(ctx))
			}
		}
		return nil // all done, it says
	}, ConsumeVisibility(30*time.Millisecond), WithConsumeHooks(ConsumeHooks{
		Failed: func(c Claim, err error) { failed <- err },
	}))
	if err := <-failed; !errors.As(err, new(*ClaimLostError)) {
		t.Errorf("told %v", err)
	}
	eventually(t, "the other record", func() bool { return g.at("ack 0:1") >= 0 })
	k.stop()
	if lines := append(g.lines("ack 0:0"), g.lines("nack 0:0")...); len(lines) != 0 {
		t.Errorf("of the lost record: %v", lines)
	}
}

// TestQueuedClaimLost: a record whose claim is lost before it is begun is not
// begun.
func TestQueuedClaimLost(t *testing.T) {
	g := newGroupPeer(t, 1)
	g.publishNumbered(0, 12)
	g.setRefuse(func(s *peerStream, m wire.Message) wire.Message {
		if m, ok := m.(*wire.GroupExtend); ok && m.Offset == 11 {
			return stale("fatal")
		}
		return nil
	})
	release, failed := make(chan struct{}), make(chan Claim, 4)
	var began [12]atomic.Int32
	k := consume(t, dial(t, []string{g.addr()}), func(_ context.Context, d Delivery) error {
		began[d.Offset].Add(1)
		if d.Offset >= 8 {
			<-release
		}
		return nil
	}, ConsumeVisibility(30*time.Millisecond), WithConsumeHooks(ConsumeHooks{
		Failed: func(c Claim, _ error) { failed <- c },
	}))
	if claim := <-failed; claim.Offset != 11 {
		t.Errorf("lost %v", claim)
	}
	close(release)
	eventually(t, "all others acknowledged", func() bool { return g.unfinished() == 1 })
	k.stop()
	if began[11].Load() != 0 {
		t.Error("begun all the same")
	}
}

// TestRecordThatComesWhileHeld is not handled twice at a time, and its newest
// claim is the one that counts.
func TestRecordThatComesWhileHeld(t *testing.T) {
	for _, fails := range []bool{false, true} {
		t.Run(fmt.Sprint("fails ", fails), func(t *testing.T) {
			g := newGroupPeer(t, 1)
			g.publishNumbered(0, 1)
			release := make(chan struct{})
			var began atomic.Int32
			k := consume(t, dial(t, []string{g.addr()}), func(_ context.Context, d Delivery) error {
				began.Add(1)
				<-release
				if fails {
					return errors.New("no")
				}
				return nil
			}, ConsumeConcurrency(2), at(time.Hour))
			eventually(t, "the handler runs", func() bool { return began.Load() == 1 })
			g.lapse(0)
			eventually(t, "the record is handed out again", func() bool {
				g.mu.Lock()
				defer g.mu.Unlock()
				return g.shards[0].records[0].attempts == 2
			})
			close(release)
			want := "ack 0:0"
			if fails {
				want = "nack 0:0:2 3600000ms"
			}
			eventually(t, want, func() bool { return g.at(want) >= 0 })
			k.stop()
			if n := began.Load(); n != 1 {
				t.Errorf("handled %d times", n)
			}
		})
	}
}

// TestSettlementRefused: the hook is told, and the consumer goes on.
func TestSettlementRefused(t *testing.T) {
	g := newGroupPeer(t, 1)
	g.publishNumbered(0, 3)
	g.setRefuse(func(s *peerStream, m wire.Message) wire.Message {
		if m, ok := m.(*wire.GroupAck); ok && m.Offset == 1 {
			return stale("fatal")
		}
		return nil
	})
	failed := make(chan Claim, 1)
	k := consume(t, dial(t, []string{g.addr()}), func(context.Context, Delivery) error { return nil },
		WithConsumeHooks(ConsumeHooks{Failed: func(c Claim, err error) {
			if !errors.Is(err, ErrStaleClaim) {
				t.Errorf("told %v", err)
			}
			failed <- c
		}}))
	if c := <-failed; c.Offset != 1 {
		t.Errorf("failed: %v", c)
	}
	eventually(t, "the others acknowledged", func() bool { return g.unfinished() == 1 })
	k.stop()
}

// TestRecordComesBeforeItsNackIsAnswered: the broker hands a record out again
// that was handed back, and the answer to that is slower. The new delivery is
// handled like any other.
func TestRecordComesBeforeItsNackIsAnswered(t *testing.T) {
	for _, ends := range []bool{false, true} {
		t.Run(fmt.Sprint("ends meanwhile ", ends), func(t *testing.T) {
			g := newGroupPeer(t, 1)
			g.publishNumbered(0, 1)
			polled, answered := make(chan struct{}, 8), make(chan struct{})
			g.setRefuse(func(s *peerStream, m wire.Message) wire.Message {
				nack, ok := m.(*wire.GroupNack)
				if !ok || nack.Attempts > 1 {
					return nil
				}
				answer := g.answer(s, m)
				<-answered
				return answer
			})
			var handled atomic.Int32
			k := consume(t, dial(t, []string{g.addr()}), func(_ context.Context, d Delivery) error {
				if handled.Add(1) == 1 {
					return RetryAfter(0, errors.New("no"))
				}
				return nil
			}, WithConsumeHooks(ConsumeHooks{Polled: func(_ uint32, n int, _ time.Duration, _ error) {
				if n > 0 {
					polled <- struct{}{}
				}
			}}))
			<-polled
			<-polled
			if ends {
				k.cancel()
			}
			close(answered)
			// Handled again, or handed back unhandled by a consumer that ends.
			eventually(t, "the second delivery is settled", func() bool {
				return g.at("ack 0:0") >= 0 || ends && g.at("nack 0:0:2 0ms") >= 0
			})
			k.stop()
			if n := handled.Load(); n != 2 && !ends {
				t.Errorf("handled %d times", n)
			}
		})
	}
}
