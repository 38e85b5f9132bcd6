package client

import (
	"context"
	"time"

	"github.com/felixlog/felix/wire"
)

// attempt subscribes once, following redirects.
func (r *shardReader) attempt(ctx context.Context, start wire.Start) error {
	b, err := r.c.movedTo(ctx, r.loss.moved)
	if err != nil {
		return err
	}
	return r.c.atOwner("subscribe", b, func(b *broker) (*redirect, error) {
		return r.subscribeAt(ctx, b, start)
	})
}

// subscribeAt asks one broker.
func (r *shardReader) subscribeAt(ctx context.Context, b *broker, start wire.Start) (*redirect, error) {
	_, caps, err := b.connect(ctx)
	if err != nil {
		return nil, err
	}
	request, err := r.request(caps, b.addr, start)
	if err != nil {
		return nil, err
	}
	cn, err := b.eventConn(ctx)
	if err != nil {
		return nil, err
	}
	to, err := r.subscribeOn(ctx, cn, request)
	if err != nil || to != nil {
		cn.releaseSubscription()
	}
	return to, err
}

// request is the subscribe message, or an [*UnsupportedError] when the
// broker would misunderstand it.
func (r *shardReader) request(caps *capabilities, addr string, start wire.Start) (*wire.Subscribe, error) {
	m := &wire.Subscribe{
		Tenant:    r.c.cfg.tenant,
		Namespace: r.name.namespace,
		Stream:    r.name.stream,
	}
	if start.Kind != wire.StartLatest || caps.HasFlag(wire.FlagEventOffsets) {
		m.Start = wire.Some(start)
	}
	if start.Kind != wire.StartLatest && !caps.HasFlag(wire.FlagEventOffsets) {
		// A broker without offsets would ignore the start and deliver from
		// the tail.
		return nil, &UnsupportedError{Feature: "EVENT_BATCH_OFFSETS", Broker: addr}
	}
	if r.shard != 0 {
		if err := caps.require(wire.FeatureStreamShards, "STREAM_SHARDS", addr); err != nil {
			return nil, err
		}
		m.Shard = wire.Some(r.shard)
	}
	if r.o.capacity > 0 {
		if err := caps.require(wire.FeatureSubscribeQueue, "SUBSCRIBE_QUEUE", addr); err != nil {
			return nil, err
		}
		m.QueueCapacity = wire.Some(r.o.capacity)
	}
	return m, nil
}

func (r *shardReader) subscribeOn(ctx context.Context, cn *conn, request *wire.Subscribe) (*redirect, error) {
	cn.router.run()
	m, err := cn.exchange(ctx, "subscribe", "SUBSCRIBE", request, RetryNow)
	if err != nil {
		return nil, err
	}
	switch m := m.(type) {
	case *wire.Subscribed:
		r.confirmed(m)
		es, err := cn.router.claim(ctx, m.SubscriptionID)
		if err != nil {
			return nil, err
		}
		return nil, r.opened(cn, es)
	case *wire.NotLeader:
		return redirected(m), nil
	case *wire.SubscribeCursorError:
		return nil, &CursorError{Reason: m.Reason.String(), Requested: m.Requested, Available: m.Available}
	default:
		return nil, unexpectedAnswer("subscribe", cn.b.addr, m)
	}
}

// confirmed notes where the broker says the subscription stands. That counts
// even if its event stream is lost before the first event.
func (r *shardReader) confirmed(m *wire.Subscribed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.began {
		r.startOffset = m.StartOffset
	}
	r.liveOffset = m.LiveOffset
	if offset, ok := m.StartOffset.Get(); ok {
		r.durable = true
		if !r.hasNext {
			r.next, r.hasNext = offset, true
		}
	}
}

// opened takes over a new event stream.
func (r *shardReader) opened(cn *conn, es *eventStream) error {
	if err := r.adopt(cn, es); err != nil {
		return err
	}
	r.openedAt = time.Now()
	r.loss = loss{}
	r.began = true
	return nil
}
