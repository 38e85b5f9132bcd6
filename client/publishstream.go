package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/felixlog/felix/wire"
)

// errStreamGone is what a stream answers that takes no more requests.
// Nothing of the request was sent.
var errStreamGone = errors.New("stream ended")

// defaultWindow bounds the unanswered publishes of a stream whose broker
// granted no window.
const defaultWindow = 1024

// A publishStream is one long-lived bidirectional stream of publishes to one
// broker (wire 8.3). Acknowledged publishes and the others never share one:
// a broker ends a stream on a refused unacknowledged publish without a word,
// and that must not take acknowledged ones along.
//
// One goroutine reads the answers and one writes what callers did not write
// themselves.
type publishStream struct {
	c      *Client
	b      *broker
	sess   *session
	acked  bool
	window int     // of this stream
	shared *budget // the window of its connection; nil when each stream has its own

	mu       sync.Mutex
	out      frameWriter
	room     waitList
	ring     idRing[request]
	watch    watchdog
	retired  bool   // takes no more requests; ends when all are answered
	muted    bool   // cannot be written to any longer
	err      error  // why it ended; nil while it lives
	clean    bool   // it ended because it was retired and the broker agreed
	refusal  *Error // the error frame that announced the end, if any
	rest     []*request
	restEnds []outcome   // of rest, which read settles when it ends
	closed   atomic.Bool // retired or ended
	finished chan struct{}
}

// newPublishStream takes over an authenticated stream.
func newPublishStream(cn *conn, sess *session, acked bool) *publishStream {
	c := cn.b.c
	s := &publishStream{
		c: c, b: cn.b, sess: sess, acked: acked,
		window:   defaultWindow,
		shared:   cn.publishWindow(sess.caps),
		finished: make(chan struct{}),
	}
	if w := sess.caps.window; w > 0 && sess.caps.windowPerStream {
		s.window = w
	}
	s.room.mu = &s.mu
	s.out.init(sess.st, &s.mu, &c.bufs, s.room.wakeAll)
	s.ring.oldest, s.ring.next = 1, 1
	s.watch.init(&s.mu, c.cfg.ackTimeout,
		func() (uint64, bool) { return s.ring.oldest, s.ring.span() > 0 },
		func() { s.fail(fmt.Errorf("no answer within %v", c.cfg.ackTimeout)) })
	if !c.spawn(s.write) || !c.spawn(s.read) {
		s.end(ErrClosed)
		return nil
	}
	return s
}

// gone says that the stream takes no more requests.
func (s *publishStream) gone() bool { return s.closed.Load() }

// enqueue sends r, waiting while the window or the queue is full. The error
// is ctx's, errStreamGone, or that of a frame which cannot be sent; with any
// of them nothing was sent and r is still the caller's.
func (s *publishStream) enqueue(ctx context.Context, r *request, direct bool) error {
	if s.acked && s.shared != nil {
		if err := s.shared.acquire(ctx, 1); err != nil {
			return err
		}
		r.counted = true
	}
	s.mu.Lock()
	err := s.admit(ctx)
	if err == nil {
		err = s.send(r, direct)
	}
	s.mu.Unlock()
	if err != nil && r.counted {
		s.shared.release(1)
		r.counted = false
	}
	return err
}

// admit waits for room in the window and the queue. mu is held.
func (s *publishStream) admit(ctx context.Context) error {
	for {
		switch {
		case s.closed.Load():
			return errStreamGone
		case s.ring.span() < s.window && !s.out.full():
			return nil
		}
		if err := s.room.wait(ctx); err != nil {
			return err
		}
	}
}

// send hands r to the writer. mu is held. Once r is in the ring, failures
// reach it by its completion.
func (s *publishStream) send(r *request, direct bool) error {
	if !s.acked {
		frame, err := s.encode(r, 0)
		if err != nil {
			return err
		}
		if err := s.out.send(frame, nil, direct); err != nil {
			s.mute()
			return errStreamGone
		}
		return nil
	}
	id := s.ring.next
	frame, err := s.encode(r, id)
	if err != nil {
		return err
	}
	direct = direct || s.ring.span() == 0
	s.ring.push(r)
	s.watch.busy()
	var busy *bool
	if len(frame) > 0 && &frame[0] == &r.frame[0] {
		busy = &r.busy
	}
	if err := s.out.send(frame, busy, direct); err != nil {
		s.ring.take(id)
		s.mute()
		return errStreamGone
	}
	return nil
}

// encode gives the bytes for this stream: the frame r holds, or its JSON
// form where the broker did not advertise the binary one (wire 20.2).
func (s *publishStream) encode(r *request, id uint64) ([]byte, error) {
	if s.acked {
		r.setID(id)
	}
	h, err := wire.ParseHeader(r.frame)
	if err != nil {
		return nil, err
	}
	if s.sess.caps.HasFlag(h.Flags) {
		return r.frame, nil
	}
	if h.Flags.Has(wire.FlagPublishIdempotent) {
		if err := s.sess.caps.require(wire.FeatureIdempotentProducer, "IDEMPOTENT_PRODUCER", s.b.addr); err != nil {
			return nil, err
		}
	}
	return publishJSON(h.Flags, r.frame[wire.HeaderSize:], s.c.cfg.maxFrame)
}

// publishJSON rewrites a binary publish as a JSON frame.
func publishJSON(flags wire.Flags, payload []byte, maxFrame int) ([]byte, error) {
	var p wire.Publish
	if err := wire.ParsePublish(flags, payload, &p); err != nil {
		return nil, err
	}
	m := &wire.JSONPublishBatch{
		Tenant:    string(p.Tenant),
		Namespace: string(p.Namespace),
		Stream:    string(p.Stream),
		Payloads:  p.Block,
		Ack:       wire.Some(wire.AckNone),
	}
	if p.Keyed {
		m.Key = wire.Some(p.Key)
	}
	if p.Acked {
		m.RequestID = wire.Some(p.RequestID)
		m.Ack = wire.Some(p.AckMode)
	}
	if p.Idempotent {
		return messageFrame(&wire.PublishIdempotent{
			Tenant: m.Tenant, Namespace: m.Namespace, Stream: m.Stream, Payloads: m.Payloads, Key: m.Key,
			RequestID: p.RequestID, ProducerID: p.ProducerID, Sequence: p.Sequence,
		}, maxFrame)
	}
	return messageFrame(m, maxFrame)
}

func messageFrame(m wire.Message, maxFrame int) ([]byte, error) {
	frame := wire.AppendMessage(nil, m)
	if len(frame)-wire.HeaderSize > maxFrame {
		return nil, frameTooLarge(len(frame)-wire.HeaderSize, maxFrame)
	}
	return frame, nil
}

func frameTooLarge(n, limit int) error {
	return fmt.Errorf("batch makes a frame of %d bytes, the most is %d", n, limit)
}

// write is the writer goroutine.
func (s *publishStream) write() {
	if err := s.out.run(); err != nil {
		s.mu.Lock()
		s.mute()
		s.mu.Unlock()
	}
}

// mute handles a broker that takes no more bytes, or a lost connection. What
// it took may still be answered, and why it stopped may be on its way: the
// reader decides when that is over. mu is held.
func (s *publishStream) mute() {
	s.closed.Store(true)
	s.muted = true
	s.out.stop()
	s.room.wakeAll()
	s.sess.st.SetReadDeadline(time.Now().Add(s.c.cfg.ackTimeout))
}

// retire stops new requests; the stream ends when everything sent is
// answered.
func (s *publishStream) retire() {
	s.mu.Lock()
	s.retireLocked()
	s.mu.Unlock()
}

func (s *publishStream) retireLocked() {
	if s.closed.Load() {
		return
	}
	s.retired = true
	s.closed.Store(true)
	s.out.end()
	s.room.wakeAll()
}

// end fails the stream and everything unanswered on it.
func (s *publishStream) end(err error) {
	s.mu.Lock()
	s.fail(err)
	s.mu.Unlock()
}

// fail is end with mu held. What is unanswered is settled by the reader when
// it ends, because lanes take their own mutex before a stream's.
func (s *publishStream) fail(err error) {
	if s.err != nil {
		return
	}
	s.err = err
	s.clean = s.retired && !s.muted && s.refusal == nil && errors.Is(err, io.EOF)
	s.closed.Store(true)
	first := s.ring.next - s.out.put // id of the first frame put
	for _, r := range s.ring.takeAll() {
		s.restEnds = append(s.restEnds, s.endOf(r.id, r.id-first >= s.out.taken, len(s.rest) == 0))
		s.rest = append(s.rest, r.detached())
	}
	s.out.stop()
	s.watch.stop()
	s.room.wakeAll()
	s.sess.cancel()
	close(s.finished)
}

// endOf is the outcome of an unanswered request when the stream has failed.
func (s *publishStream) endOf(id uint64, unsent, oldest bool) outcome {
	refusal := s.refusal
	switch {
	case unsent:
		return outcome{unsent: true, err: lost("publish", s.b.addr, RetryNow, s.c.cause(s.err))}
	case refusal != nil && (oldest || errors.Is(s.err, io.EOF) && refusal.endsAll()):
		return outcome{err: refusal.about("publish", id)}
	default:
		return outcome{err: lost("publish", s.b.addr, RetryUnknown, s.c.cause(s.err))}
	}
}

// endsAll says of an error frame that it refuses all that is unanswered when
// the stream then ends cleanly: a broker answers what it took before it ends
// a stream (wire 8.1), so the rest was not taken.
func (e *Error) endsAll() bool {
	return e.Code == CodeUnauthenticated || e.Code == CodeDraining
}

// settleRest tells the requests that the stream's end left unanswered.
func (s *publishStream) settleRest() {
	s.mu.Lock()
	rest, ends := s.rest, s.restEnds
	s.rest, s.restEnds = nil, nil
	s.mu.Unlock()
	for i, r := range rest {
		s.settle(r, ends[i])
	}
}

// settle passes an outcome to r's lane. No lock is held.
func (s *publishStream) settle(r *request, o outcome) {
	if r.counted {
		r.counted = false
		s.shared.release(1)
	}
	r.lane.settle(s, r, o)
}
