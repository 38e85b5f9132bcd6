package session

import (
	"context"

	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/wire"
)

// subscribe opens a subscription (wire 10). The order is the protocol's:
// register, open the event stream and write its hello, answer `subscribed`,
// and only then deliver history. The stream that asked ends afterwards.
func (s *control) subscribe(ctx context.Context, m *wire.Subscribe) verdict {
	s.awaitTurn(ctx)
	if err := s.openSubscription(ctx, m); err != nil {
		s.refuseRead(err)
	}
	return finished
}

func (s *control) openSubscription(ctx context.Context, m *wire.Subscribe) error {
	sh, err := s.readableShard(ctx, m.Tenant, m.Namespace, m.Stream, m.Shard.Or(0))
	if err != nil {
		return err
	}
	if !s.c.reserveSubscription(s.identity) {
		return refuse(wire.CodeLimitExceeded, "max subscriptions per connection exceeded")
	}
	sub, err := sh.Subscribe(ctx, stream.SubscribeOptions{
		Start: startOf(m.Start), Capacity: int(m.QueueCapacity.Or(0)), EndOnDrop: s.toldOfLag(sh),
	})
	if err != nil {
		s.c.releaseSubscription(s.identity)
		return err
	}
	id := s.eventID(m.SubscriptionID)
	e, err := s.c.openEvents(ctx, s, id)
	if err != nil {
		sub.Close()
		s.c.releaseSubscription(s.identity)
		return err
	}
	s.answer(s.subscribed(m, id, sub))
	_ = s.out.flush() // before any history: the client reads the events only after it
	newFeeder(e, s, sub).run()
	return nil
}

// toldOfLag says whether a subscription ends at its first loss: on a durable
// stream, where it can go on from there, for a client that reads the message
// and offsets (wire 10).
func (s *control) toldOfLag(sh *stream.Shard) bool {
	return sh.Durable() && s.offer.Has(wire.FeatureSubscriptionLagged) && s.offer.HasFlag(wire.FlagEventOffsets)
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

func cursorError(e *stream.CursorError) *wire.SubscribeCursorError {
	reason := wire.CursorInFuture
	if e.Reason == stream.TooOld {
		reason = wire.CursorTooOld
	}
	return &wire.SubscribeCursorError{Reason: reason, Requested: e.Requested, Available: e.Available}
}
