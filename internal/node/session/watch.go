package session

import (
	"context"
	"errors"

	"github.com/felixlog/felix/broker/cache"
	"github.com/felixlog/felix/broker/placed"
	"github.com/felixlog/felix/wire"
)

// cacheWatch opens a watch (wire 11). The order is that of a subscription:
// register, open the event stream and write its hello, answer, and only then
// deliver what came before. The stream that asked ends afterwards.
func (s *control) cacheWatch(ctx context.Context, m *wire.CacheWatch) verdict {
	s.awaitTurn(ctx)
	if err := s.openWatch(ctx, m); err != nil {
		s.c.srv.metrics.Cache.Errors.Inc()
		s.refuseWatch(err)
	}
	return finished
}

func (s *control) openWatch(ctx context.Context, m *wire.CacheWatch) error {
	c, opts, err := s.watchable(m)
	if err != nil {
		return err
	}
	if err := s.awaitReady(ctx, func(ctx context.Context) error { return c.Ready(ctx, opts.Shard) }); err != nil {
		return err
	}
	if !s.c.reserveSubscription(s.identity) {
		return refuse(wire.CodeLimitExceeded, "max subscriptions per connection exceeded")
	}
	w, err := c.Watch(ctx, opts)
	if err != nil {
		s.c.releaseSubscription(s.identity)
		return err
	}
	id := s.eventID(m.SubscriptionID)
	e, err := s.c.openEvents(ctx, s, id)
	if err != nil {
		w.Close()
		s.c.releaseSubscription(s.identity)
		return err
	}
	answer := &wire.CacheWatchStarted{SubscriptionID: id, ResumeOffset: w.ResumeOffset(), Resnapshot: w.Resnapshot()}
	if m.Retained {
		answer.RetainedCount = wire.Some(uint64(w.RetainedCount()))
	}
	s.answer(answer)
	_ = s.out.flush() // before any history: the client reads the events only after it
	(&watcher{eventStream: e, watch: w}).run()
	return nil
}

// watchable checks the request in the order its refusals are to be worded,
// and turns it into options.
func (s *control) watchable(m *wire.CacheWatch) (*cache.Cache, cache.WatchOptions, error) {
	opts := cache.WatchOptions{
		From: m.FromOffset.Value, HasFrom: m.FromOffset.Set, Retained: m.Retained, Capacity: s.c.srv.cfg.WatchQueue,
	}
	if ended := s.rights.ended(); ended != nil {
		return nil, opts, ended
	}
	r, err := s.cacheRoute(m.Tenant, m.Namespace, m.Cache)
	if err != nil {
		return nil, opts, err
	}
	switch {
	case m.Key.Set == m.Prefix.Set:
		return nil, opts, invalidRequest("cache_watch takes exactly one of key or prefix")
	case m.Retained && m.FromOffset.Set:
		return nil, opts, invalidRequest("cache_watch takes retained or from_offset, not both")
	}
	shards := r.cache.Shards()
	if key, ok := m.Key.Get(); ok {
		if err := validCacheKey(key); err != nil {
			return nil, opts, err
		}
		if !s.mayRead(r, key) {
			return nil, opts, errForbidden
		}
		opts.Key, opts.Shard = key, r.shardOf(key)
		return r.cache, opts, nil
	}
	prefix := m.Prefix.Value
	if !s.principal.Grants.CanWatchPrefix(r.namespace, r.name, string(prefix)) {
		return nil, opts, errForbidden
	}
	shard, named := m.Shard.Get()
	switch {
	case !named && shards > 1:
		return nil, opts, invalidRequest("a prefix watch of a cache with several shards names one")
	case shard >= shards:
		return nil, opts, &cache.ShardError{Cache: r.cache.Name(), Shard: shard, Shards: shards}
	}
	opts.Prefix, opts.Shard = prefix, shard
	return r.cache, opts, nil
}

// refuseWatch answers an offset that does not exist yet with its own message
// and everything else with `error`.
func (s *control) refuseWatch(err error) {
	var cursor *cache.CursorError
	if errors.As(err, &cursor) {
		s.answer(&wire.SubscribeCursorError{Reason: wire.CursorInFuture, Requested: cursor.Requested, Available: cursor.Tail})
		return
	}
	s.refuse(asCacheRefusal(err))
}

// A watcher delivers the changes of one watch to its own event stream, as
// JSON: whatever is queued goes out in writes of up to MaxBytesPerSend.
type watcher struct {
	*eventStream
	watch   *cache.Watch
	event   wire.CacheEvent
	pending []byte
}

func (w *watcher) run() { w.start(w.deliver, w.finish) }

func (w *watcher) deliver() error {
	for {
		changes, err := w.watch.Next(w.ctx)
		if err != nil {
			return err
		}
		if err := w.send(changes); err != nil {
			return err
		}
	}
}

func (w *watcher) send(changes []cache.Change) error {
	for i := range changes {
		c := &changes[i]
		w.event = wire.CacheEvent{Key: c.Key, Offset: c.Offset, Expired: c.Op == cache.Expired}
		if c.Op == cache.Updated {
			w.event.Value = wire.Some(c.Value)
			w.event.ExpiresAtMillis = uint64(max(c.ExpiresAtMillis, 0))
		}
		w.pending = wire.AppendMessage(w.pending, &w.event)
		if len(w.pending) >= w.c.srv.cfg.MaxBytesPerSend {
			if err := w.flush(); err != nil {
				return err
			}
		}
	}
	return w.flush()
}

func (w *watcher) flush() error {
	if len(w.pending) == 0 {
		return nil
	}
	_, err := w.out.Write(w.pending)
	w.pending = w.pending[:0]
	if cap(w.pending) > keepReplyBuffer {
		w.pending = nil
	}
	return err
}

// finish ends the event stream as that of a subscription ends.
func (w *watcher) finish(err error) {
	defer w.watch.Close()
	var ended *refusal
	var lagged *cache.LaggedError
	var unserved *placed.NotServedError
	switch cause := context.Cause(w.ctx); {
	case errors.As(cause, &ended):
		w.last(w.offer.Error(ended.Failure))
	case errors.Is(cause, errDrained):
		w.drained()
	case errors.As(err, &lagged):
		w.last(&wire.CacheWatchLagged{ResumeFrom: lagged.ResumeFrom})
	case errors.As(err, &unserved):
		from, known := w.watch.Position()
		w.unserved(unserved, wire.Optional[uint64]{Value: from, Set: known})
	case errors.Is(err, cache.ErrRemoved):
		w.last(w.offer.Error(errCacheDeleted.Failure))
	default:
		w.abort()
	}
}

// errCacheDeleted ends a watch whose cache was deleted. A cache made anew under
// the name is another one, so coming again is no use.
var errCacheDeleted = &refusal{Failure: wire.Failure{Code: wire.CodeNotFound, Class: wire.Fatal, Message: "the cache was deleted"}}

// drained delivers what is queued when the node stops. To a client that reads
// it, it then says that the shard is served here no more, and where to go on
// (wire 7.4, 11): the loss of its connection alone tells the published client
// nothing, and its watch would be silent for ever. For others the stream stays
// open until the connection closes, like that of a subscription.
func (w *watcher) drained() {
	if changes, err := w.watch.Poll(); err == nil && w.send(changes) != nil {
		return // the peer does not read, or is gone
	}
	if !w.offer.Has(wire.FeatureShardMoved) {
		return
	}
	// No owner is named: who serves the shard next is this node, started again.
	moved := &wire.ShardMoved{SubscriptionID: w.id}
	if from, known := w.watch.Position(); known {
		moved.ResumeFrom = wire.Some(from)
	}
	w.last(moved)
}
