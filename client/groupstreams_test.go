package client

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/wire"
)

// TestPollStreams: a poll has a stream for itself, and the next one uses it
// again; one that is idle for long is ended.
func TestPollStreams(t *testing.T) {
	g := newGroupPeer(t, 1)
	ended := make(chan struct{}, 8)
	serve := g.serve
	g.setServe(func(s *peerStream) { serve(s); ended <- struct{}{} })
	c := dial(t, []string{g.addr()})
	q := c.Group("s", "g")
	ctx := testContext(t)
	for range 5 {
		if _, err := q.Poll(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if n := g.authCount(); n != 1 {
		t.Errorf("%d streams for polls one after the other", n)
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if d, err := q.Poll(ctx, PollWait(time.Minute), PollMax(1)); err != nil || len(d) != 1 {
				t.Errorf("waiting poll: %v, %v", d, err)
			}
		})
	}
	eventually(t, "three polls wait", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.shards[0].polls == 3
	})
	if n := g.authCount(); n != 3 {
		t.Errorf("%d streams for three polls at a time", n)
	}
	g.publishNumbered(0, 3)
	wg.Wait()

	polls := c.entry.Load().polls
	eventually(t, "three streams idle", func() bool {
		polls.mu.Lock()
		defer polls.mu.Unlock()
		return len(polls.idle) == 3
	})
	polls.mu.Lock()
	for _, s := range polls.idle[:2] {
		s.since = s.since.Add(-time.Hour)
	}
	polls.mu.Unlock()
	polls.sweep()
	for range 2 {
		<-ended
	}
	polls.mu.Lock()
	defer polls.mu.Unlock()
	if len(polls.idle) != 1 || len(polls.room) != 0 {
		t.Errorf("%d idle streams, %d in use", len(polls.idle), len(polls.room))
	}
}

// TestCancelledPollTellsTheBroker: its stream is reset, so that nothing is
// claimed for it.
func TestCancelledPollTellsTheBroker(t *testing.T) {
	g := newGroupPeer(t, 1)
	q := dial(t, []string{g.addr()}).Group("s", "g")
	ctx, cancel := context.WithCancel(testContext(t))
	waiting := func(n int) func() bool {
		return func() bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			return g.shards[0].polls == n
		}
	}
	done := make(chan error)
	go func() { _, err := q.Poll(ctx, PollWait(time.Minute)); done <- err }()
	eventually(t, "the poll waits", waiting(1))
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	eventually(t, "the broker gives the poll up", waiting(0))
	g.publish(0, "a")
	if d, err := q.Poll(testContext(t)); err != nil || len(d) != 1 || d[0].Attempts != 1 {
		t.Errorf("next poll: %+v, %v", d, err)
	}
}

// TestAcksShareOneWrite: claims settled together leave together.
func TestAcksShareOneWrite(t *testing.T) {
	c := loopClient(t)
	b := c.entry.Load()
	var d wire.Decoder
	st := &countingStream{loopStream: newLoopStream(func(dst []byte, h wire.Header, payload []byte) []byte {
		m, err := d.Decode(payload)
		if err != nil {
			return dst
		}
		return wire.AppendMessage(dst, &wire.CacheOK{RequestID: m.(*wire.GroupAck).RequestID})
	})}
	caps := capabilitiesOf(fullOffer(nil).(*wire.AuthOK))
	b.groups.slots[0].stream.Store(newCallStream(b, &session{st: st, in: wire.NewFrameReader(st, wire.MaxFramePayload), caps: caps}))
	defer st.close()
	var all []Claim
	for i := range uint64(100) {
		all = append(all, Claim{Offset: i})
	}
	if err := c.Group("s", "g").Ack(testContext(t), all...); err != nil {
		t.Fatal(err)
	}
	if st.writes != 1 {
		t.Errorf("%d writes for 100 claims", st.writes)
	}
}

type countingStream struct {
	*loopStream
	writes int
}

func (s *countingStream) TryWrite(p []byte) error { s.writes++; return s.loopStream.TryWrite(p) }
