package client

import (
	"fmt"
	"sync"
	"testing"

	"github.com/felixlog/felix/transport"
	"github.com/felixlog/felix/wire"
)

// pending counts the event streams that wait for their claim.
func pending(c *Client) int {
	n := 0
	for _, b := range c.endpoints.all() {
		b.mu.Lock()
		for _, slot := range b.pools[roleEvent] {
			if slot.conn != nil {
				slot.conn.router.mu.Lock()
				n += len(slot.conn.router.pending)
				slot.conn.router.mu.Unlock()
			}
		}
		b.mu.Unlock()
	}
	return n
}

// TestEventStreamMayComeFirst: hello and events arrive before "subscribed".
func TestEventStreamMayComeFirst(t *testing.T) {
	answer := make(chan struct{})
	p := subscriber(t, func(n int, s *peerStream, m *wire.Subscribe) {
		st, err := s.conn.OpenUniStream(s.conn.Context())
		if err != nil {
			t.Error(err)
			return
		}
		e := &peerEvents{SendStream: st, p: s.p, id: 77}
		e.send(&wire.EventStreamHello{SubscriptionID: 77})
		e.batch(3, 0, "early")
		<-answer
		s.send(&wire.Subscribed{SubscriptionID: 77})
		s.CloseWrite()
	})
	c := dial(t, []string{p.addr()})
	go func() {
		eventually(t, "the stream waits for its claim", func() bool { return pending(c) == 1 })
		close(answer)
	}()
	sub, err := c.Subscribe(testContext(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	expect(t, sub, "early", 3, 0)
	if n := pending(c); n != 0 {
		t.Errorf("%d streams still pending", n)
	}
}

// TestStrangeStreamsHoldNobodyUp: streams that are silent, stop inside the
// hello, or are not event streams come before the real one.
func TestStrangeStreamsHoldNobodyUp(t *testing.T) {
	p := subscriber(t, func(n int, s *peerStream, m *wire.Subscribe) {
		hello := wire.AppendMessage(nil, &wire.EventStreamHello{SubscriptionID: 1 << 40})
		for _, bytes := range [][]byte{hello[:1], hello[:11], hello[:20], []byte("garbage garbage"), wire.AppendMessage(nil, &wire.OK{}), hello, hello} {
			st, err := s.conn.OpenUniStream(s.conn.Context())
			if err != nil {
				t.Error(err)
				return
			}
			st.Write(bytes)
		}
		s.events(durableAt(0, 0)).batch(0, 0, fmt.Sprint(n))
	})
	c := dial(t, []string{p.addr()})
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			sub, err := c.Subscribe(testContext(t), "s")
			if err != nil {
				t.Error(err)
				return
			}
			defer sub.Close()
			next(t, sub)
		})
	}
	wg.Wait()
}

func TestPendingStreamsAreBounded(t *testing.T) {
	const bound = 4
	var mu sync.Mutex
	var extra []transport.SendStream
	p := subscriber(t, func(n int, s *peerStream, m *wire.Subscribe) {
		mu.Lock()
		defer mu.Unlock()
		for i := range 3 * bound {
			st, err := s.conn.OpenUniStream(s.conn.Context())
			if err != nil {
				t.Error(err)
				return
			}
			st.Write(wire.AppendMessage(nil, &wire.EventStreamHello{SubscriptionID: uint64(1000 + i)}))
			extra = append(extra, st)
		}
		s.events(durableAt(0, 0))
	})
	c := dial(t, []string{p.addr()}, WithPools(Pools{PendingEventStreams: bound}))
	// The stream of the subscription itself may find the pending ones full:
	// it is the answer to a claim that came first, or refused and asked for
	// again.
	sub, err := c.Subscribe(testContext(t), "s")
	if err == nil {
		defer sub.Close()
	}
	eventually(t, "the streams beyond the bound are refused", func() bool {
		mu.Lock()
		defer mu.Unlock()
		refused := 0
		for _, st := range extra {
			if st.Context().Err() != nil {
				refused++
			}
		}
		return refused >= 2*bound
	})
	if n := pending(c); n > bound {
		t.Errorf("%d streams pending, the bound is %d", n, bound)
	}
}
