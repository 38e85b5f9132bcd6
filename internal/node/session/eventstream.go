package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/felixlog/felix/transport"
	"github.com/felixlog/felix/wire"
)

// openTimeout bounds the wait for a client's credit for one more event stream.
const openTimeout = 5 * time.Second

// An eventStream is what a subscription and a watch have in common: a
// unidirectional stream of the broker, the rights it lives by, and the ways it
// can end (wire 2.4, 10).
type eventStream struct {
	c        *connection
	id       uint64
	identity *identity
	out      transport.SendStream
	offer    wire.Offer
	ctx      context.Context
	end      context.CancelCauseFunc
	unwatch  func() // stops the expiry timer
	done     chan struct{}
}

// errDrained ends event streams and polls when the node stops. A *refusal does
// when the rights they live by end.
var errDrained = errors.New("broker shutting down")

// openEvents opens an event stream and writes its hello at once: a client
// reads the hello of one new stream before it looks at the next (wire 10.4).
func (c *connection) openEvents(ctx context.Context, s *control, id uint64) (*eventStream, error) {
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	out, err := c.conn.OpenUniStream(ctx)
	if err != nil {
		return nil, refuse(wire.CodeLimitExceeded, fmt.Sprintf("no event stream could be opened: %v", err))
	}
	hello := wire.AppendMessage(nil, &wire.EventStreamHello{SubscriptionID: id})
	if _, err := out.Write(hello); err != nil {
		return nil, fmt.Errorf("write hello: %w", err)
	}
	e := &eventStream{c: c, id: id, identity: s.identity, out: out, offer: s.offer, done: make(chan struct{})}
	e.ctx, e.end = context.WithCancelCause(out.Context())
	e.unwatch = c.srv.onRightsEnd(s.principal, func(why *refusal) { e.end(why) })
	if !c.addEvents(e) {
		e.end(errDrained)
	}
	return e, nil
}

// start runs deliver until the stream ends, and finish with what it returned.
func (e *eventStream) start(deliver func() error, finish func(error)) {
	e.c.streams.Add(1)
	go func() {
		defer e.c.streams.Done()
		defer close(e.done)
		err := deliver()
		e.unwatch()
		finish(err)
		e.end(nil)
		e.c.removeEvents(e)
		e.c.releaseSubscription(e.identity)
	}()
}

// last writes a final message and ends the stream cleanly. A message that does
// not get through leaves no clean end behind half of it.
func (e *eventStream) last(m wire.Message) { e.lastFrame(wire.AppendMessage(nil, m)) }

func (e *eventStream) lastFrame(frame []byte) {
	if _, err := e.out.Write(frame); err == nil {
		_ = e.out.CloseWrite()
	}
}

// streamDeleted is the last frame of a subscription whose stream was deleted
// (docs/interop.md). Published clients take it without having asked for it; to
// one that does not know it, the FIN behind it says that the subscription is
// over.
func streamDeleted(id uint64) []byte {
	payload := fmt.Appendf(nil, `{"type":"stream_deleted","subscription_id":%d}`, id)
	return append(wire.AppendHeader(nil, 0, len(payload)), payload...)
}

// abort ends the stream in a way that no client takes for its end.
func (e *eventStream) abort() {
	e.c.srv.metrics.Subscribe.Disconnects.Inc()
	e.out.CancelWrite(codeStopped)
}

// stop asks the stream to deliver what is queued by the given time and end.
func (e *eventStream) stop(until time.Time) {
	e.end(errDrained)
	// A stream that has ended already fails its writes anyway.
	_ = e.out.SetWriteDeadline(until)
}

// eventID is the id of a subscription or watch: the client's, if it names one.
func (s *control) eventID(asked wire.Optional[uint64]) uint64 {
	if asked.Set {
		return asked.Value
	}
	return s.c.srv.nextSubscription.Add(1)
}
