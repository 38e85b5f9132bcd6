package client

import (
	"context"
	"slices"
	"time"

	"github.com/felixlog/felix/wire"
)

// A redirect is an answer that names the broker to ask instead.
type redirect struct {
	nodeID string
	addr   string // empty when it is not published
}

// attempt subscribes once, following redirects: at most three, and never to
// the same broker twice (wire 15).
func (r *shardReader) attempt(ctx context.Context, start wire.Start) error {
	b, err := r.firstBroker(ctx)
	if err != nil {
		return err
	}
	asked := []string{b.addr}
	for {
		to, err := r.subscribeAt(ctx, b, start)
		if err != nil || to == nil {
			return err
		}
		refusal := &Error{
			Op: "subscribe", Code: CodeNotLeader, Retry: RetryElsewhere, Broker: b.addr,
			Message: "the shard is served by " + to.nodeID,
		}
		if to.addr == "" || slices.Contains(asked, to.addr) || len(asked) > maxHops {
			return refusal
		}
		if b = r.c.endpoints.add(r.c, to.addr); b == nil {
			return refusal
		}
		asked = append(asked, b.addr)
	}
}

// firstBroker is where to ask first: where the shard moved, if that was
// said and can be reached, else where everything goes.
func (r *shardReader) firstBroker(ctx context.Context) (*broker, error) {
	if m := r.loss.moved; m != nil && m.Addr.Or("") != "" {
		if b := r.c.endpoints.add(r.c, m.Addr.Value); b != nil {
			if _, _, err := b.connect(ctx); err == nil {
				return b, nil
			}
		}
	}
	return r.c.broker(ctx)
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
		return &redirect{nodeID: m.NodeID, addr: m.Addr.Or("")}, nil
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
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		es.st.CancelRead(0)
		return ErrClosed
	}
	r.es, r.cn = es, cn
	r.openedAt = time.Now()
	r.loss = loss{}
	r.began = true
	return nil
}
