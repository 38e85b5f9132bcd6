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

// maxCalls bounds the requests under way on one stream; more wait.
const maxCalls = 1024

// A call is the part of a request that its stream handles.
type call struct {
	req   callRequest // what it is part of
	id    uint64
	frame []byte

	// Guarded by the stream's mutex.
	number    uint64 // of its frame on the stream, from 1
	abandoned bool   // nobody waits for it; result and error stay as they are
	answered  bool
	sent      bool
	err       error
}

// A callRequest is what a [call] is part of.
type callRequest interface {
	// name says in errors what the request is, such as "cache get".
	name() string
	// fill takes an answer other than error and unsupported, unless the call
	// was abandoned. It says whether the answer fits the request, and the id
	// of the request it names, if any. The stream's mutex is held.
	fill(m wire.Message) (fits bool, id wire.Optional[uint64])
	// done says that the stream has let go of the call. The stream's mutex
	// is held.
	done()
}

// A callStream is one long-lived stream of requests of one kind: about
// caches, or about claims. Many are under way at a time; the broker answers
// in the order of requests and echoes their ids (wire 8.1, 8.2).
type callStream struct {
	c    *Client
	b    *broker
	sess *session

	mu      sync.Mutex
	out     frameWriter
	room    waitList
	ring    idRing[call]
	watch   watchdog
	err     error
	notRead bool // the last answer was one after which a broker reads no more

	closed atomic.Bool  // retired or ended
	load   atomic.Int32 // calls under way
}

func newCallStream(b *broker, sess *session) *callStream {
	c := b.c
	s := &callStream{c: c, b: b, sess: sess}
	s.room.mu = &s.mu
	s.out.init(sess.st, &s.mu, &c.bufs, s.room.wakeAll)
	s.watch.init(&s.mu, c.cfg.ackTimeout,
		func() (uint64, bool) { return s.ring.oldest, s.ring.span() > 0 },
		func() { s.fail(fmt.Errorf("no answer within %v", c.cfg.ackTimeout)) })
	if !c.spawn(s.write) || !c.spawn(s.read) {
		s.end(ErrClosed)
		return nil
	}
	return s
}

// do sends a call and waits until the stream lets go of it, with its result
// or error inside. The error of do is errStreamGone, of which nothing was
// sent, or the end of ctx.
func (s *callStream) do(ctx context.Context, call *call, ready <-chan struct{}) error {
	s.load.Add(1)
	defer s.load.Add(-1)
	s.mu.Lock()
	if err := s.admit(ctx, call.req); err != nil {
		s.mu.Unlock()
		return err
	}
	s.push(call)
	call.number = s.out.put + 1
	if err := s.out.send(call.frame, nil, true); err != nil {
		s.mute()
	}
	s.mu.Unlock()

	select {
	case <-ready:
		return nil
	case <-ctx.Done():
		return s.abandon(ctx, call, ready)
	}
}

// push puts a call under way. mu is held.
func (s *callStream) push(call *call) {
	call.err, call.answered, call.sent = nil, false, true
	s.ring.push(call)
	s.watch.busy()
}

// admit waits for room. mu is held.
func (s *callStream) admit(ctx context.Context, req callRequest) error {
	for {
		switch {
		case s.closed.Load():
			return errStreamGone
		case s.ring.span() < maxCalls && !s.out.full():
			return nil
		}
		if err := s.room.wait(ctx); err != nil {
			return ctxError(req.name(), ctx, RetryNow)
		}
	}
}

// abandon leaves a call to the stream because ctx ended, unless the answer
// came at the same moment.
func (s *callStream) abandon(ctx context.Context, call *call, ready <-chan struct{}) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-ready:
		return nil
	default:
	}
	call.abandoned = true
	return ctxError(call.req.name(), ctx, RetryUnknown)
}

func (s *callStream) write() {
	if err := s.out.run(); err != nil {
		s.mu.Lock()
		s.mute()
		s.mu.Unlock()
	}
}

// mute handles a broker that takes no more bytes, or a lost connection: see
// [publishStream.mute]. mu is held.
func (s *callStream) mute() {
	s.closed.Store(true)
	s.out.stop()
	s.room.wakeAll()
	s.sess.st.SetReadDeadline(time.Now().Add(s.c.cfg.ackTimeout))
}

// read reads answers until the stream ends.
func (s *callStream) read() {
	var decoder wire.Decoder
	for {
		h, payload, err := s.sess.in.Next()
		if err == nil && h.Flags != 0 {
			err = fmt.Errorf("unexpected frame with flags %#04x", uint16(h.Flags))
		}
		var m wire.Message
		if err == nil {
			m, err = decoder.Decode(payload)
		}
		if err == nil {
			err = s.answer(m)
		}
		if err != nil {
			s.end(err)
			return
		}
	}
}

// answer gives m to the oldest call.
func (s *callStream) answer(m wire.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	call := s.ring.first()
	if call == nil {
		return fmt.Errorf("%s without a request", m.MessageType())
	}
	if err := s.fill(call, m); err != nil {
		return err
	}
	s.ring.take(s.ring.oldest)
	if !call.abandoned {
		call.answered = true
	}
	call.req.done()
	s.room.wake(1)
	return nil
}

// fill puts an answer into its call. The error is that of a peer which
// breaks the protocol.
func (s *callStream) fill(call *call, m wire.Message) error {
	switch m := m.(type) {
	case *wire.Unsupported:
		s.notRead = false
		call.fail(&UnsupportedError{Feature: call.req.name(), Broker: s.b.addr})
		return nil
	case *wire.Error:
		s.refuse(call, m)
		return nil
	}
	fits, id := call.req.fill(m)
	switch {
	case !fits:
		return fmt.Errorf("%s in answer to a %s", m.MessageType(), call.req.name())
	case id.Set && id.Value != call.id:
		return fmt.Errorf("answer to request %d, expected %d", id.Value, call.id)
	}
	s.notRead = !id.Set
	return nil
}

// fail notes how the call ended. The stream's mutex is held.
func (call *call) fail(err error) {
	if !call.abandoned {
		call.err = err
	}
}

// refuse handles an error message. It names no request and answers the
// oldest; the broker may end the stream behind it, and then has not read
// what followed. A stream that refused without a code is not used again, nor
// one whose token has expired (wire 8.3).
func (s *callStream) refuse(call *call, m *wire.Error) {
	e := refused(call.req.name(), s.b.addr, m.Failure())
	e.RequestID = call.id
	call.fail(e)
	s.notRead = true
	if e.Code == "" || e.Code == CodeUnauthenticated {
		s.retire()
	}
}

// retire stops new calls; the stream ends when those under way are answered.
// mu is held.
func (s *callStream) retire() {
	if s.closed.Load() {
		return
	}
	s.closed.Store(true)
	s.out.end()
	s.room.wakeAll()
}

// end fails the stream and everything under way on it.
func (s *callStream) end(err error) {
	s.mu.Lock()
	s.fail(err)
	s.mu.Unlock()
}

// fail is end with mu held.
func (s *callStream) fail(err error) {
	if s.err != nil {
		return
	}
	s.err = err
	s.closed.Store(true)
	unread := s.notRead && errors.Is(err, io.EOF)
	for _, call := range s.ring.takeAll() {
		class := RetryUnknown
		if unread || call.number > s.out.taken {
			class = RetryNow // nothing of it was applied
		}
		call.fail(lost(call.req.name(), s.b.addr, class, s.c.cause(err)))
		call.req.done()
	}
	s.out.stop()
	s.watch.stop()
	s.room.wakeAll()
	s.sess.cancel()
}
