package session

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/broker/queue"
	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/transport"
	"github.com/felixlog/felix/wire"
)

// A valve is a stream's writing half that has room or not, as a test likes.
type valve struct {
	mu      sync.Mutex
	open    bool
	broken  error
	changed sync.Cond
	blocked chan struct{} // closed when a write waits
	wrote   []byte
}

func newValve(open bool) *valve {
	v := &valve{open: open, blocked: make(chan struct{})}
	v.changed.L = &v.mu
	return v
}

func (v *valve) set(open bool, broken error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.open, v.broken = open, broken
	v.changed.Broadcast()
}

func (v *valve) Write(p []byte) (int, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.open && v.broken == nil {
		close(v.blocked)
	}
	for !v.open && v.broken == nil {
		v.changed.Wait()
	}
	if v.broken != nil {
		return 0, v.broken
	}
	v.wrote = append(v.wrote, p...)
	return len(p), nil
}

func (v *valve) TryWrite(p []byte) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case v.broken != nil:
		return v.broken
	case !v.open:
		return transport.ErrWouldBlock
	}
	v.wrote = append(v.wrote, p...)
	return nil
}

func (v *valve) CloseWrite() error                { return nil }
func (v *valve) CancelWrite(uint64)               {}
func (v *valve) SetWriteDeadline(time.Time) error { return nil }
func (v *valve) Context() context.Context         { return context.Background() }
func (v *valve) StreamID() uint64                 { return 0 }

var errBroken = errors.New("broken")

// An answer counts as delivered when the carrier has it, whoever wrote it, and
// as not delivered when it has not.
func TestDeliver(t *testing.T) {
	answer := func(id uint64) *wire.GroupRecords { return &wire.GroupRecords{RequestID: id} }
	t.Run("with room", func(t *testing.T) {
		v := newValve(true)
		r := newReplies(v, time.Minute)
		if err := r.deliver(answer(1)); err != nil || len(v.wrote) == 0 {
			t.Fatalf("%v, %d bytes", err, len(v.wrote))
		}
		r.finish()
		if err := r.deliver(answer(2)); !errors.Is(err, errFinished) {
			t.Fatalf("after the end: %v", err)
		}
	})
	t.Run("without room, then broken", func(t *testing.T) {
		v := newValve(false)
		r := newReplies(v, time.Minute)
		errs := make(chan error, 2)
		go func() { errs <- r.deliver(answer(1)) }()
		<-v.blocked
		go func() { errs <- r.deliver(answer(2)) }()
		v.set(false, errBroken)
		for range 2 {
			if err := <-errs; !errors.Is(err, errBroken) {
				t.Fatalf("delivered through a broken stream: %v", err)
			}
		}
		if err := r.deliver(answer(3)); !errors.Is(err, errBroken) {
			t.Fatalf("after it broke: %v", err)
		}
	})
	t.Run("without room, then with", func(t *testing.T) {
		v := newValve(false)
		r := newReplies(v, time.Minute)
		errs := make(chan error, 2)
		go func() { errs <- r.deliver(answer(1)) }()
		<-v.blocked
		go func() { errs <- r.deliver(answer(2)) }()
		v.set(true, nil)
		for range 2 {
			if err := <-errs; err != nil {
				t.Fatal(err)
			}
		}
	})
	t.Run("in the reader's round", func(t *testing.T) {
		v := newValve(true)
		r := newReplies(v, time.Minute)
		r.beginRound()
		errs := make(chan error, 1)
		go func() { errs <- r.deliver(answer(1)) }()
		for r.idleBytes() == 0 {
			time.Sleep(time.Millisecond)
		}
		select {
		case err := <-errs:
			t.Fatalf("delivered before the reader's flush: %v", err)
		default:
		}
		if err := r.flush(); err != nil {
			t.Fatal(err)
		}
		if err := <-errs; err != nil || len(v.wrote) == 0 {
			t.Fatalf("%v, %d bytes", err, len(v.wrote))
		}
	})
}

// idleBytes is what waits to be written.
func (r *replies) idleBytes() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.pending)
}

// What a record tells beside its payload is for the clients that read it
// (wire 5.2).
func TestPollAnswerIsNegotiated(t *testing.T) {
	records := []queue.Record{{Record: stream.Record{Offset: 7, Payload: []byte("p"), Publisher: "ada", TimestampMicros: 9}, Attempts: 2, SkippedBefore: 3}}
	for _, tc := range []struct {
		features wire.Features
		want     string
	}{
		{0, `{"type":"group_records","records":[{"offset":7,"payload":"cA==","attempts":2}],"request_id":1}`},
		{wire.FeatureGroupSkipped, `{"type":"group_records","records":[{"offset":7,"payload":"cA==","attempts":2,"skipped_before":3}],"request_id":1}`},
		{wire.FeatureGroupPublisher, `{"type":"group_records","records":[{"offset":7,"payload":"cA==","attempts":2,"publisher":"ada"}],"request_id":1}`},
		{wire.FeatureRecordTimestamps, `{"type":"group_records","records":[{"offset":7,"payload":"cA==","attempts":2,"timestamp_micros":9}],"request_id":1}`},
	} {
		s := &control{c: &connection{srv: &Server{cfg: Config{MaxFrameBytes: wire.MaxFramePayload}}}, offer: wire.Offer{Features: tc.features, HasFlags: true}}
		answer, tooLarge := s.pollAnswer(1, records)
		if got := string(wire.AppendMessage(nil, answer)[wire.HeaderSize:]); got != tc.want || tooLarge != nil {
			t.Errorf("features %#x:\n%s\nwant\n%s", tc.features, got, tc.want)
		}
	}
}
