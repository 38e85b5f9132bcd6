package client

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/wire"
)

// holding is a peer script that collects publishes and answers them only
// when told.
type holding struct {
	got     atomic.Int64
	records atomic.Int64
	release chan struct{}
}

func (h *holding) serve(s *peerStream) {
	var ids []uint64
	arrived := make(chan uint64, 4096)
	go func() {
		defer close(arrived)
		for {
			m, ok := s.publish()
			if !ok {
				return
			}
			h.got.Add(1)
			h.records.Add(int64(m.Block.Count()))
			arrived <- m.RequestID
		}
	}()
	released, release := false, h.release
	for {
		select {
		case id, ok := <-arrived:
			if !ok {
				s.CloseWrite()
				return
			}
			if released {
				s.ack(wire.Ack{RequestID: id})
			} else {
				ids = append(ids, id)
			}
		case <-release:
			released, release = true, nil
			for _, id := range ids {
				s.ack(wire.Ack{RequestID: id})
			}
		}
	}
}

// sendUntilItWaits sends batches until a Send is held up, and tells how many
// were let through.
func sendUntilItWaits(t *testing.T, pub *Publisher, h *holding, most int, payload []byte) int {
	t.Helper()
	for n := range most {
		ctx, cancel := context.WithTimeout(testContext(t), patience)
		done := make(chan error, 1)
		go func() { done <- pub.SendFunc(ctx, func(Ack, error) {}, payload) }()
		var held bool
		select {
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
		case <-time.After(200 * time.Millisecond):
			held = true
		}
		if held {
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Fatalf("held send ended with %v", err)
			}
			return n
		}
		cancel()
	}
	return most
}

func TestPublishWindowIsKept(t *testing.T) {
	const window = 8
	for _, perStream := range []bool{true, false} {
		t.Run(fmt.Sprintf("per stream %v", perStream), func(t *testing.T) {
			h := &holding{release: make(chan struct{})}
			p := newPeer(t, h.serve)
			features := wire.FeaturePublishPipeline
			if perStream {
				features |= wire.FeatureStreamPublishWindow
			}
			p.setAnswer(func(*wire.Auth) wire.Message {
				return &wire.AuthOK{ServerFlags: wire.KnownFlags, ServerFeatures: wire.Some(features), PublishWindow: wire.Some[uint32](window)}
			})
			c := dial(t, []string{p.addr()})
			pub := c.Publisher("s")
			if n := sendUntilItWaits(t, pub, h, 3*window, []byte("x")); n != window {
				t.Errorf("%d batches were let through, want %d", n, window)
			}
			if !perStream {
				// Another stream of the connection shares the window.
				if n := sendUntilItWaits(t, c.Publisher("other"), h, window, []byte("x")); n != 0 {
					t.Errorf("%d batches of another stream were let through, want 0", n)
				}
			}
			eventually(t, "the window is full at the broker", func() bool { return h.got.Load() == window })
			close(h.release)
			for range 5 * window {
				if err := pub.SendFunc(testContext(t), func(_ Ack, err error) {
					if err != nil {
						t.Error(err)
					}
				}, []byte("x")); err != nil {
					t.Fatal(err)
				}
			}
			if err := pub.Close(); err != nil {
				t.Fatal(err)
			}
			if got := h.got.Load(); got != 6*window {
				t.Errorf("the broker got %d batches, want %d", got, 6*window)
			}
		})
	}
}

func TestUnansweredBytesAreBounded(t *testing.T) {
	h := &holding{release: make(chan struct{})}
	p := newPeer(t, h.serve)
	c := dial(t, []string{p.addr()})
	pub := c.Publisher("s")
	payload := make([]byte, 256<<10)
	// Each frame is a little more than its payload.
	if n := sendUntilItWaits(t, pub, h, 32, payload); n != 15 {
		t.Errorf("%d batches of 256 KiB were let through, want 15 of 4 MiB", n)
	}
	if used := c.inflight.usedNow(); used > wire.MaxClientUnackedBytes {
		t.Errorf("%d bytes unanswered, the bound is %d", used, wire.MaxClientUnackedBytes)
	}
	close(h.release)
	if err := pub.Flush(testContext(t)); err != nil {
		t.Fatal(err)
	}
	// A batch larger than the bound goes alone.
	if err := pub.SendFunc(testContext(t), func(_ Ack, err error) {
		if err != nil {
			t.Error(err)
		}
	}, make([]byte, 5<<20)); err != nil {
		t.Fatal(err)
	}
	if err := pub.Close(); err != nil {
		t.Fatal(err)
	}
	if n := c.inflight.usedNow(); n != 0 {
		t.Errorf("%d bytes of the budget are lost", n)
	}
}

// TestFramesArriveInOrderAndWhole sends batches of all sizes around the
// writer's thresholds, with the payload telling its place.
func TestFramesArriveInOrderAndWhole(t *testing.T) {
	sizes := []int{0, 1, 200, 1400, largeFrame - 200, largeFrame, largeFrame + 1, directFrame, gatherBytes, 100 << 10, 300 << 10}
	var got atomic.Int64
	p := newPeer(t, func(s *peerStream) {
		for i := 0; ; i++ {
			m, ok := s.publish()
			if !ok {
				return
			}
			want := bytes.Repeat([]byte{byte(i)}, sizes[i%len(sizes)])
			for _, payload := range m.Block.All() {
				if !bytes.Equal(payload, want) {
					t.Errorf("batch %d: %d bytes that differ", i, len(payload))
				}
			}
			got.Add(1)
			s.ack(wire.Ack{RequestID: m.RequestID})
		}
	})
	c := dial(t, []string{p.addr()})
	pub := c.Publisher("s")
	const n = 500
	var answered atomic.Int64
	payload := make([]byte, 0, 300<<10)
	for i := range n {
		payload = append(payload[:0], bytes.Repeat([]byte{byte(i)}, sizes[i%len(sizes)])...)
		err := pub.SendFunc(testContext(t), func(_ Ack, err error) {
			if err != nil {
				t.Error(err)
			}
			answered.Add(1)
		}, payload)
		if err != nil {
			t.Fatal(err)
		}
		clear(payload) // the payload may be reused at once
	}
	if err := pub.Close(); err != nil {
		t.Fatal(err)
	}
	if got.Load() != n || answered.Load() != n {
		t.Errorf("broker got %d, answered %d, want %d", got.Load(), answered.Load(), n)
	}
	if _, err := pub.Send(testContext(t), nil); !errors.Is(err, ErrClosed) {
		t.Errorf("send after close: %v", err)
	}
}

func TestUnacknowledgedFlushWaitsUntilRead(t *testing.T) {
	var got atomic.Int64
	p := newPeer(t, func(s *peerStream) {
		for {
			m, ok := s.publish()
			if !ok {
				s.CloseWrite()
				return
			}
			if m.Acked {
				t.Error("an acked frame on a stream of unacknowledged publishes")
			}
			got.Add(1)
		}
	})
	c := dial(t, []string{p.addr()})
	ctx := testContext(t)
	pub := c.Publisher("s", WithAck(AckNone))
	for round := int64(1); round <= 3; round++ {
		for range 100 {
			f, err := pub.Send(ctx, []byte("x"))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Wait(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if err := pub.Flush(ctx); err != nil {
			t.Fatal(err)
		}
		if got.Load() != 100*round {
			t.Fatalf("after flush %d the broker has read %d", round, got.Load())
		}
	}
	if _, err := c.Publish(ctx, "s", []byte("x"), WithAck(AckNone)); err != nil {
		t.Fatal(err)
	}
	if err := c.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	if got.Load() != 301 {
		t.Errorf("after the client's flush the broker has read %d, want 301", got.Load())
	}
	if err := c.Drain(ctx); err != nil {
		t.Fatal(err)
	}
	if got.Load() != 301 {
		t.Errorf("after drain the broker has read %d, want 301", got.Load())
	}
	if err := c.Drain(ctx); err != nil {
		t.Errorf("second drain: %v", err)
	}
}

func TestUnacknowledgedRefusalShowsAtFlush(t *testing.T) {
	ended := make(chan struct{})
	first := true
	p := newPeer(t, nil)
	p.setServe(func(s *peerStream) {
		p.mu.Lock()
		refuse := first
		first = false
		p.mu.Unlock()
		for {
			if _, ok := s.publish(); !ok {
				s.CloseWrite()
				return
			}
			if refuse {
				s.CancelRead(0)
				s.CloseWrite()
				close(ended)
				return
			}
		}
	})
	c := dial(t, []string{p.addr()})
	ctx := testContext(t)
	pub := c.Publisher("s", WithAck(AckNone))
	if _, err := pub.Send(ctx, []byte("x")); err != nil {
		t.Fatal(err)
	}
	<-ended
	eventually(t, "another stream is used", func() bool {
		if _, err := pub.Send(ctx, []byte("x")); err != nil {
			t.Fatal(err)
		}
		return p.authCount() == 2
	})
	if err := pub.Flush(ctx); !IsOutcomeUnknown(err) {
		t.Errorf("flush: %v, want that records may be lost", err)
	}
	if err := pub.Flush(ctx); err != nil {
		t.Errorf("second flush: %v", err)
	}
}

func TestStreamIsGivenUp(t *testing.T) {
	cases := []struct {
		name string
		do   func(s *peerStream, m *wire.Publish)
		want string
		opts []Option
	}{
		{"ack of an unknown request", func(s *peerStream, m *wire.Publish) { s.ack(wire.Ack{RequestID: 999}) }, "999", nil},
		{"ack given twice", func(s *peerStream, m *wire.Publish) {
			if m.RequestID == 1 {
				return
			}
			s.ack(wire.Ack{RequestID: 2})
			s.ack(wire.Ack{RequestID: 2})
		}, "request 2", nil},
		{"event frame", func(s *peerStream, m *wire.Publish) {
			e := wire.EventBatch{Shared: true}
			s.Write(e.Append(nil))
		}, "unexpected frame", nil},
		{"message of another kind", func(s *peerStream, m *wire.Publish) { s.send(&wire.NotLeader{NodeID: "n"}) }, "not_leader", nil},
		{"not a frame", func(s *peerStream, m *wire.Publish) { s.Write([]byte("HTTP/1.1 400 Bad Request\r\n")) }, "magic", nil},
		{"end inside a frame", func(s *peerStream, m *wire.Publish) {
			a := wire.Ack{RequestID: m.RequestID}
			s.Write(a.Append(nil)[:20])
			s.CloseWrite()
		}, "ended the stream", nil},
		{"reset", func(s *peerStream, m *wire.Publish) { s.CancelWrite(3); s.CancelRead(3) }, "reset", nil},
		{"silence", func(s *peerStream, m *wire.Publish) {}, "no answer within", []Option{WithAckTimeout(200 * time.Millisecond)}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
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
					tc.do(s, m)
				}
			})
			c := dial(t, []string{p.addr()}, tc.opts...)
			ctx := testContext(t)
			pub := c.Publisher("s")
			var pending []*Pending
			for range 2 {
				f, err := pub.Send(ctx, nil)
				if err != nil {
					t.Fatal(err)
				}
				pending = append(pending, f)
			}
			_, err := pending[0].Wait(ctx)
			if !IsOutcomeUnknown(err) || !strings.Contains(fmt.Sprint(err), tc.want) {
				t.Errorf("error %v, want an unknown outcome and %q", err, tc.want)
			}
			if _, err := c.Publish(ctx, "fine", nil); err != nil {
				t.Errorf("afterwards: %v", err)
			}
			if n := p.connCount(); n != 1 {
				t.Errorf("%d connections, want 1: a bad stream is no bad connection", n)
			}
		})
	}
}

func TestCloseUnblocksEverything(t *testing.T) {
	h := &holding{release: make(chan struct{})}
	p := newPeer(t, h.serve)
	c := dial(t, []string{p.addr()}, WithPublishInflight(1<<10))
	pub := c.Publisher("s")
	ctx := context.Background()
	errs := make(chan error, 3)
	go func() {
		_, err := c.Publish(ctx, "s", make([]byte, 800))
		errs <- err
	}()
	eventually(t, "the publish has arrived", func() bool { return h.got.Load() == 1 })
	go func() {
		_, err := pub.Send(ctx, make([]byte, 800)) // waits for the budget
		errs <- err
	}()
	go func() { errs <- pub.Flush(ctx) }()
	time.Sleep(10 * time.Millisecond) // whichever of them has begun: all must end
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		select {
		case err := <-errs:
			if err != nil && !errors.Is(err, ErrClosed) {
				t.Errorf("ended with %v", err)
			}
		case <-time.After(patience):
			t.Fatal("a call survived Close")
		}
	}
	if err := c.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	if _, err := c.Publish(ctx, "s", nil); !errors.Is(err, ErrClosed) {
		t.Errorf("publish after close: %v", err)
	}
	if _, _, err := c.Cache("k").Get(ctx, "x"); !errors.Is(err, ErrClosed) {
		t.Errorf("get after close: %v", err)
	}
	if _, err := c.Subscribe(ctx, "s"); !errors.Is(err, ErrClosed) {
		t.Errorf("subscribe after close: %v", err)
	}
}
