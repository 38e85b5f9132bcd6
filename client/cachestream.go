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

// maxCalls bounds the cache requests under way on one stream; more wait.
const maxCalls = 1024

// A cacheStream is one long-lived stream of cache requests. Many are under
// way at a time; the broker answers in the order of requests and echoes
// their ids (wire 8.1, 8.2).
type cacheStream struct {
	c    *Client
	b    *broker
	sess *session

	mu      sync.Mutex
	out     frameWriter
	room    waitList
	ring    idRing[cacheCall]
	watch   watchdog
	err     error
	notRead bool // the last answer was one after which a broker reads no more

	closed atomic.Bool  // retired or ended
	load   atomic.Int32 // calls under way
}

func newCacheStream(b *broker, sess *session) *cacheStream {
	c := b.c
	s := &cacheStream{c: c, b: b, sess: sess}
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

// do sends call and waits until the stream lets go of it, with its result or
// error inside. The error of do is errStreamGone, of which nothing was sent,
// or the end of ctx.
func (s *cacheStream) do(ctx context.Context, call *cacheCall) error {
	s.load.Add(1)
	defer s.load.Add(-1)
	s.mu.Lock()
	if err := s.admit(ctx, call.op); err != nil {
		s.mu.Unlock()
		return err
	}
	call.err, call.answered, call.sent = nil, false, true
	s.ring.push(call)
	call.number = s.out.put + 1
	s.watch.busy()
	if err := s.out.send(call.frame, nil, true); err != nil {
		s.mute()
	}
	s.mu.Unlock()

	select {
	case <-call.ready:
		return nil
	case <-ctx.Done():
		return s.abandon(ctx, call)
	}
}

// admit waits for room. mu is held.
func (s *cacheStream) admit(ctx context.Context, op cacheOp) error {
	for {
		switch {
		case s.closed.Load():
			return errStreamGone
		case s.ring.span() < maxCalls && !s.out.full():
			return nil
		}
		if err := s.room.wait(ctx); err != nil {
			return ctxError(op.String(), ctx, RetryNow)
		}
	}
}

// abandon leaves call to the stream because ctx ended, unless the answer
// came at the same moment.
func (s *cacheStream) abandon(ctx context.Context, call *cacheCall) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-call.ready:
		return nil
	default:
	}
	call.abandoned = true
	call.value = nil
	return ctxError(call.op.String(), ctx, RetryUnknown)
}

func (s *cacheStream) write() {
	if err := s.out.run(); err != nil {
		s.mu.Lock()
		s.mute()
		s.mu.Unlock()
	}
}

// mute handles a broker that takes no more bytes, or a lost connection: see
// [publishStream.mute]. mu is held.
func (s *cacheStream) mute() {
	s.closed.Store(true)
	s.out.stop()
	s.room.wakeAll()
	s.sess.st.SetReadDeadline(time.Now().Add(s.c.cfg.ackTimeout))
}

// read reads answers until the stream ends.
func (s *cacheStream) read() {
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
func (s *cacheStream) answer(m wire.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	call := s.ring.first()
	if call == nil {
		return fmt.Errorf("%s without a request", m.MessageType())
	}
	s.notRead = false
	if err := s.fill(call, m); err != nil {
		return err
	}
	s.ring.take(s.ring.oldest)
	call.answered = true
	call.ready <- struct{}{}
	s.room.wake(1)
	return nil
}

// fill puts an answer into its call. The error is that of a peer which
// breaks the protocol.
func (s *cacheStream) fill(call *cacheCall, m wire.Message) error {
	fits, id := false, wire.Some(call.id)
	switch m := m.(type) {
	case *wire.CacheValue:
		fits, id = call.op.reads() || call.op == opDelete, m.RequestID
		if fits && !call.abandoned {
			call.setValue(m)
		}
		s.notRead = !id.Set
	case *wire.CacheOK:
		fits, id.Value = call.op == opPut, m.RequestID
	case *wire.OK:
		fits = call.op == opPut
		s.notRead = true
	case *wire.CacheConditionResult:
		fits, id.Value = call.op == opPutIf || call.op == opDeleteIf, m.RequestID
		call.ok = m.Applied
		call.version, call.hasVersion = m.Version.Get()
	case *wire.CounterValue:
		fits, id.Value = call.op == opCounterAdd || call.op == opCounterGet, m.RequestID
		call.counter, call.ok = m.Value.Get()
	case *wire.Unsupported:
		fits = true
		call.err = &UnsupportedError{Feature: call.op.String(), Broker: s.b.addr}
	case *wire.Error:
		fits = true
		s.refuse(call, m)
	}
	switch {
	case !fits:
		return fmt.Errorf("%s in answer to a %v", m.MessageType(), call.op)
	case id.Set && id.Value != call.id:
		return fmt.Errorf("answer to request %d, expected %d", id.Value, call.id)
	}
	return nil
}

// setValue copies a value out of a message, once.
func (call *cacheCall) setValue(m *wire.CacheValue) {
	if call.ok = m.Value.Set; !call.ok {
		return
	}
	call.value = append(call.value, m.Value.Value...)
	if call.value == nil {
		call.value = []byte{}
	}
	call.version, call.hasVersion = m.Version.Get()
}

// refuse handles an error message. It names no request and answers the
// oldest; the broker may end the stream behind it, and then has not read
// what followed. A stream that refused without a code is not used again, nor
// one whose token has expired (wire 8.3).
func (s *cacheStream) refuse(call *cacheCall, m *wire.Error) {
	e := refused(call.op.String(), s.b.addr, m.Failure())
	e.RequestID = call.id
	call.err = e
	s.notRead = true
	if e.Code == "" || e.Code == CodeUnauthenticated {
		s.retire()
	}
}

// retire stops new calls; the stream ends when those under way are answered.
// mu is held.
func (s *cacheStream) retire() {
	if s.closed.Load() {
		return
	}
	s.closed.Store(true)
	s.out.end()
	s.room.wakeAll()
}

// end fails the stream and everything under way on it.
func (s *cacheStream) end(err error) {
	s.mu.Lock()
	s.fail(err)
	s.mu.Unlock()
}

// fail is end with mu held.
func (s *cacheStream) fail(err error) {
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
		call.err = lost(call.op.String(), s.b.addr, class, s.c.cause(err))
		call.ready <- struct{}{}
	}
	s.out.stop()
	s.watch.stop()
	s.room.wakeAll()
	s.sess.cancel()
}
