package client

import (
	"bytes"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/wire"
)

// TestASlowReaderIsBoundedByItsWindow: what a subscription does not read
// stays at the broker, and nothing is lost.
func TestASlowReaderIsBoundedByItsWindow(t *testing.T) {
	const frames, size, window = 512, 16 << 10, 256 << 10
	var sent atomic.Int64
	p := subscriber(t, func(n int, s *peerStream, m *wire.Subscribe) {
		e := s.events(durableAt(0, 0))
		payload := string(bytes.Repeat([]byte("x"), size))
		for i := range uint64(frames) {
			e.batch(i, 0, payload)
			sent.Add(1)
		}
	})
	c := dial(t, []string{p.addr()}, WithWindows(Windows{EventStream: window, EventConn: 2 * window}))
	sub, err := c.Subscribe(testContext(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	last, still := int64(-1), 0
	eventually(t, "the broker is held up", func() bool {
		if now := sent.Load(); now != last {
			last, still = now, 0
		} else {
			still++
		}
		return still > 50
	})
	if held := last * size; held > 2*window {
		t.Errorf("%d bytes were taken in for a reader that does not read, the window is %d", held, window)
	}
	for i := range uint64(frames) {
		ev := next(t, sub)
		if ev.Offset != i || ev.Gap != 0 || len(ev.Payload) != size {
			t.Fatalf("event at %d gap %d, want %d", ev.Offset, ev.Gap, i)
		}
	}
}

func TestEventConnectionsAreFilledOneByOne(t *testing.T) {
	p := subscriber(t, func(n int, s *peerStream, m *wire.Subscribe) { s.events(durableAt(0, 0)) })
	c := dial(t, []string{p.addr()}, WithPools(Pools{EventConns: 2}))
	subscribe := func() error {
		sub, err := c.Subscribe(testContext(t), "s")
		if err == nil {
			t.Cleanup(func() { sub.Close() })
		}
		return err
	}
	fill := func(i int) {
		b := c.endpoints.all()[0]
		b.mu.Lock()
		defer b.mu.Unlock()
		cn := b.pools[roleEvent][i].conn
		cn.mu.Lock()
		cn.subscriptions = eventCapacity
		cn.mu.Unlock()
	}
	for range 5 {
		if err := subscribe(); err != nil {
			t.Fatal(err)
		}
	}
	if n := p.connCount(); n != 1 {
		t.Errorf("%d connections for 5 subscriptions", n)
	}
	fill(0)
	if err := subscribe(); err != nil || p.connCount() != 2 {
		t.Errorf("%d connections when one is full: %v", p.connCount(), err)
	}
	fill(1)
	if err := subscribe(); !errors.Is(err, ErrLimitExceeded) {
		t.Errorf("all full: %v", err)
	}
}

// TestLearningTheShardsKeepsOrder: a stream that comes into being with its
// first record is routed by the broker until its shards are known.
func TestLearningTheShardsKeepsOrder(t *testing.T) {
	var known atomic.Bool
	var asked atomic.Int64
	order := make(chan string, 64)
	p := newPeer(t, func(s *peerStream) {
		for {
			h, payload, ok := s.next()
			if !ok {
				s.CloseWrite()
				return
			}
			if h.Flags == 0 {
				m, err := wire.ParseMessage(payload)
				if err != nil {
					t.Error(err)
					return
				}
				view := &wire.StreamShardsView{RequestID: m.(*wire.StreamShards).RequestID}
				asked.Add(1)
				if known.Load() {
					view.Shards = 64
				}
				s.send(view)
				s.CloseWrite()
				return
			}
			var m wire.Publish
			if err := wire.ParsePublish(h.Flags, payload, &m); err != nil {
				t.Error(err)
				return
			}
			if !known.Load() {
				known.Store(true)
				time.Sleep(20 * time.Millisecond) // so that a second stream would overtake
			}
			order <- string(m.Block[8:])
			s.ack(wire.Ack{RequestID: m.RequestID})
		}
	})
	c := dial(t, []string{p.addr()})
	pub := c.Publisher("s", WithKey([]byte("some key")))
	for i := range 10 {
		if _, err := pub.Send(testContext(t), fmt.Append(nil, i)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the first has arrived", known.Load)
	}
	if err := pub.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range 10 {
		if got := <-order; got != fmt.Sprint(i) {
			t.Errorf("record %s at place %d", got, i)
		}
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("the shards were asked for %d times", n)
	}
}
