package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/wire"
)

func TestLostConnectionLeavesTheOutcomeUnknown(t *testing.T) {
	sent := make(chan *wire.Publish, 16)
	p := newPeer(t, func(s *peerStream) {
		for {
			m, ok := s.publish()
			if !ok {
				return
			}
			if string(m.Stream) == "fine" {
				s.ack(wire.Ack{RequestID: m.RequestID})
				continue
			}
			sent <- m
		}
	})
	c := dial(t, []string{p.addr()})
	ctx := testContext(t)
	pub := c.Publisher("s")
	var pending []*Pending
	for range 3 {
		f, err := pub.Send(ctx, []byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		pending = append(pending, f)
	}
	for range 3 {
		<-sent
	}
	p.cut()
	for _, f := range pending {
		_, err := f.Wait(ctx)
		if !IsOutcomeUnknown(err) || IsRetryable(err) {
			t.Errorf("error %v, want an unknown outcome", err)
		}
	}
	if _, err := c.Publish(ctx, "fine", nil); err != nil {
		t.Errorf("after reconnecting: %v", err)
	}
	select {
	case <-sent:
		t.Error("a plain publish was sent again")
	default:
	}
}

func TestAtLeastOnceSendsAgainInOrder(t *testing.T) {
	const n = 20
	var second []string
	done := make(chan struct{})
	first := true
	p := newPeer(t, nil)
	p.setServe(func(s *peerStream) {
		p.mu.Lock()
		drop := first
		first = false
		p.mu.Unlock()
		for i := 0; ; i++ {
			m, ok := s.publish()
			if !ok {
				return
			}
			if drop {
				if i == n-1 {
					s.conn.Close(7, "cut")
					return
				}
				continue
			}
			second = append(second, string(m.Block[8:]))
			s.ack(wire.Ack{RequestID: m.RequestID})
			if len(second) == n {
				close(done)
			}
		}
	})
	c := dial(t, []string{p.addr()})
	ctx := testContext(t)
	pub := c.Publisher("s", WithAtLeastOnce())
	for i := range n {
		if _, err := pub.Send(ctx, fmt.Appendf(nil, "%02d", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := pub.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	<-done
	if !slices.IsSorted(second) {
		t.Errorf("sent again out of order: %v", second)
	}
}

func TestContextEndsAWaitButNotTheStream(t *testing.T) {
	hold := make(chan struct{})
	p := newPeer(t, func(s *peerStream) {
		for {
			m, ok := s.publish()
			if !ok {
				return
			}
			if string(m.Stream) == "slow" {
				<-hold
			}
			s.ack(wire.Ack{RequestID: m.RequestID})
		}
	})
	c := dial(t, []string{p.addr()}, WithPools(Pools{PublishStreams: 1}))
	ctx, cancel := context.WithCancel(testContext(t))
	failed := make(chan error, 1)
	go func() {
		_, err := c.Publish(ctx, "slow", nil)
		failed <- err
	}()
	eventually(t, "the publish is under way", func() bool { return c.inflight.usedNow() > 0 })
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) || !IsOutcomeUnknown(err) {
		t.Errorf("error %v, want canceled with an unknown outcome", err)
	}
	close(hold)
	if _, err := c.Publish(testContext(t), "fine", nil); err != nil {
		t.Error(err)
	}
	if n := p.authCount(); n != 1 {
		t.Errorf("%d streams, want 1", n)
	}
}

func (b *budget) usedNow() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// TestAtLeastOnceGivesUp: a batch is sent as often as the policy says, and
// then fails with what the broker said last.
func TestAtLeastOnceGivesUp(t *testing.T) {
	var sent atomic.Int64
	p := newPeer(t, func(s *peerStream) {
		for {
			m, ok := s.publish()
			if !ok {
				return
			}
			sent.Add(1)
			s.ack(s.auth.Offer().FailedAck(m.RequestID, wire.Failure{Code: wire.CodeShardUnavailable, Message: "fenced", Detail: wire.Detail{Reason: "fenced"}}))
		}
	})
	c := dial(t, []string{p.addr()})
	_, err := c.Publish(testContext(t), "s", nil, WithAtLeastOnce())
	if !errors.Is(err, ErrShardUnavailable) || !IsRetryable(err) {
		t.Errorf("error %v", err)
	}
	if n := sent.Load(); n != 5 {
		t.Errorf("sent %d times, the policy says 5", n)
	}
	sent.Store(0)
	if _, err := c.Publish(testContext(t), "s", nil); !errors.Is(err, ErrShardUnavailable) || sent.Load() != 1 {
		t.Errorf("a plain publish was sent %d times: %v", sent.Load(), err)
	}
}

func TestAtLeastOnceWithoutABroker(t *testing.T) {
	p := newPeer(t, nil)
	p.setServe(func(s *peerStream) {
		if _, ok := s.publish(); ok {
			go p.stop()
		}
	})
	c := dial(t, []string{p.addr()}, WithDialTimeout(50*time.Millisecond))
	_, err := c.Publish(testContext(t), "s", nil, WithAtLeastOnce())
	var u *UnreachableError
	if !IsOutcomeUnknown(err) || !errors.As(err, &u) {
		t.Errorf("error %v, want an unknown outcome and that no broker is reachable", err)
	}
}

func TestCloseEndsARecovery(t *testing.T) {
	p := newPeer(t, func(s *peerStream) {
		for {
			m, ok := s.publish()
			if !ok {
				return
			}
			s.ack(s.auth.Offer().FailedAck(m.RequestID, wire.Failure{Code: wire.CodeOverloaded, Message: "later", Detail: wire.Detail{RetryAfterMS: 3_600_000}}))
		}
	})
	c := dial(t, []string{p.addr()})
	pub := c.Publisher("s", WithAtLeastOnce())
	f, err := pub.Send(testContext(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	blocked := make(chan error, 1)
	l, err := pub.route.lane(testContext(t), nil, false, true)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the lane waits to send again", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.recovering && l.outstanding == 0 && len(l.redo) == 0
	})
	go func() {
		_, err := pub.Send(context.Background(), nil) // waits behind the one that failed
		blocked <- err
	}()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Wait(testContext(t)); !errors.Is(err, ErrOverloaded) || !errors.Is(err, ErrClosed) {
		t.Errorf("the failed batch ended with %v", err)
	}
	if err := <-blocked; !errors.Is(err, ErrClosed) {
		t.Errorf("the one behind ended with %v", err)
	}
}

// TestABrokerThatStopsReading takes no more bytes but answers what it took.
func TestABrokerThatStopsReading(t *testing.T) {
	const n = 50
	var mu sync.Mutex
	var got []string
	first := true
	p := newPeer(t, nil)
	p.setServe(func(s *peerStream) {
		mu.Lock()
		stop := first
		first = false
		mu.Unlock()
		for {
			m, ok := s.publish()
			if !ok {
				s.CloseWrite()
				return
			}
			mu.Lock()
			got = append(got, string(m.Block[8:]))
			mu.Unlock()
			if stop {
				s.CancelRead(0)
				time.Sleep(20 * time.Millisecond) // the client's writes fail first
				s.ack(wire.Ack{RequestID: m.RequestID})
				s.CloseWrite()
				return
			}
			s.ack(wire.Ack{RequestID: m.RequestID})
		}
	})
	c := dial(t, []string{p.addr()})
	pub := c.Publisher("s", WithAtLeastOnce())
	var want []string
	for i := range n {
		payload := fmt.Sprintf("%02d", i)
		want = append(want, payload)
		if _, err := pub.Send(testContext(t), []byte(payload)); err != nil {
			t.Fatal(err)
		}
	}
	if err := pub.Close(); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want each once and in order", got)
	}
}

func TestRoutesAreBounded(t *testing.T) {
	c := loopClient(t)
	busy, err := c.route("", "busy")
	if err != nil {
		t.Fatal(err)
	}
	l, err := busy.lane(testContext(t), nil, false, true)
	if err != nil {
		t.Fatal(err)
	}
	l.outstanding = 1
	for i := range 2 * maxRoutes {
		if _, err := c.route("", fmt.Sprint("s", i)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(c.routes.routes); n != maxRoutes {
		t.Errorf("%d routes, the bound is %d", n, maxRoutes)
	}
	if again, _ := c.route("", "busy"); again != busy {
		t.Error("a route with something under way was forgotten")
	}
}
