package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/wire"
)

// openTimeout bounds the wait for a client's credit for one more event stream.
const openTimeout = 5 * time.Second

// subscribe opens a subscription (wire 10). The order is the protocol's:
// register, open the event stream and write its hello, answer `subscribed`,
// and only then deliver history. The stream that asked ends afterwards.
func (s *control) subscribe(ctx context.Context, m *wire.Subscribe) verdict {
	r := s.openSubscription(ctx, m)
	if r != nil {
		s.refuseSubscribe(r)
	}
	return finished
}

func (s *control) openSubscription(ctx context.Context, m *wire.Subscribe) error {
	sh, err := s.subscribable(m)
	if err != nil {
		return err
	}
	if !s.c.reserveSubscription(s.identity) {
		return refuse(wire.CodeLimitExceeded, "max subscriptions per connection exceeded")
	}
	opts := stream.SubscribeOptions{Start: startOf(m.Start), Capacity: int(m.QueueCapacity.Or(0))}
	sub, err := sh.Subscribe(opts)
	if err != nil {
		s.c.releaseSubscription(s.identity)
		return err
	}
	id := m.SubscriptionID.Or(0)
	if !m.SubscriptionID.Set {
		id = s.c.srv.nextSubscription.Add(1)
	}
	f, err := s.c.openFeeder(ctx, s, sub, id)
	if err != nil {
		sub.Close()
		s.c.releaseSubscription(s.identity)
		return err
	}
	s.answer(s.subscribed(m, id, sub))
	_ = s.out.flush() // before any history: the client reads the events only after it
	f.start()
	return nil
}

// subscribable checks the request in the order its refusals are to be worded.
func (s *control) subscribable(m *wire.Subscribe) (*stream.Shard, error) {
	switch {
	case s.expired.Load():
		return nil, errExpired
	case m.Tenant != s.principal.Tenant:
		return nil, errTenant
	}
	if err := validNames("stream", m.Namespace, m.Stream); err != nil {
		return nil, err
	}
	if !s.principal.Grants.CanSubscribe(m.Namespace, m.Stream) {
		return nil, errForbidden
	}
	st, err := s.c.srv.stream(m.Tenant, m.Namespace, m.Stream)
	if err != nil {
		return nil, err
	}
	shard := m.Shard.Or(0)
	if shard >= st.Shards() {
		return nil, invalidRequest(fmt.Sprintf("shard %d does not exist: the stream has %d", shard, st.Shards()))
	}
	return st.Shard(shard), nil
}

func startOf(s wire.Optional[wire.Start]) stream.Start {
	at, ok := s.Get()
	switch {
	case ok && at.Kind == wire.StartEarliest:
		return stream.Earliest()
	case ok && at.Kind == wire.StartOffset:
		return stream.FromOffset(at.Offset)
	default:
		return stream.Latest()
	}
}

// subscribed tells a client that reads offsets where it starts and where
// live events begin (wire 10.7).
func (s *control) subscribed(m *wire.Subscribe, id uint64, sub *stream.Subscription) *wire.Subscribed {
	answer := &wire.Subscribed{SubscriptionID: id}
	if s.offer.HasFlag(wire.FlagEventOffsets) {
		answer.StartOffset = wire.Some(sub.StartOffset())
		answer.LiveOffset = wire.Some(sub.LiveOffset())
	}
	if m.QueueCapacity.Set {
		answer.QueueCapacity = wire.Some(uint32(sub.Capacity()))
	}
	return answer
}

// refuseSubscribe answers a cursor that cannot be served with its own message
// and everything else with `error`.
func (s *control) refuseSubscribe(err error) {
	var cursor *stream.CursorError
	if !errors.As(err, &cursor) {
		s.refuse(asRefusal(err))
		return
	}
	s.answer(&wire.SubscribeCursorError{
		Reason:    cursorReason(cursor.Reason),
		Requested: cursor.Requested,
		Available: cursor.Available,
	})
}

func cursorReason(r stream.CursorReason) wire.CursorReason {
	if r == stream.TooOld {
		return wire.CursorTooOld
	}
	return wire.CursorInFuture
}
