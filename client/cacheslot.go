package client

import (
	"context"
	"sync/atomic"
)

// spreadCalls is the number of calls under way on a stream from which
// another stream is opened beside it, up to the configured number.
const spreadCalls = 16

// A cacheSlot holds one of a broker's long-lived cache streams.
type cacheSlot struct {
	opening chan struct{} // one token: held by whoever opens
	stream  atomic.Pointer[cacheStream]
}

func (slot *cacheSlot) live() *cacheStream {
	if s := slot.stream.Load(); s != nil && !s.closed.Load() {
		return s
	}
	return nil
}

// cacheStream gives a stream for one call, at the broker everything goes to.
func (c *Client) cacheStream(ctx context.Context) (*cacheStream, error) {
	if b := c.entry.Load(); b != nil {
		if s := b.leastLoaded(); s != nil {
			return s, nil
		}
	}
	b, err := c.broker(ctx)
	if err != nil {
		return nil, err
	}
	return b.openCache(ctx, 0)
}

// leastLoaded picks the open stream with the fewest calls under way; nil
// when none is open. When even that one has many, another is opened for the
// calls to come.
func (b *broker) leastLoaded() *cacheStream {
	var (
		best  *cacheStream
		least int32
		free  = -1
	)
	for i, slot := range b.caches {
		s := slot.live()
		if s == nil {
			if free < 0 {
				free = i
			}
			continue
		}
		if load := s.load.Load(); best == nil || load < least {
			best, least = s, load
		}
	}
	if best != nil && least >= spreadCalls && free >= 0 {
		b.openMore(free)
	}
	return best
}

// openMore opens one more stream behind the callers' backs, unless that is
// happening already.
func (b *broker) openMore(i int) {
	slot := b.caches[i]
	select {
	case slot.opening <- struct{}{}:
	default:
		return
	}
	started := b.c.spawn(func() {
		defer func() { <-slot.opening }()
		if slot.live() != nil {
			return
		}
		if _, err := b.newCache(b.c.ctx, i); err != nil {
			b.c.cfg.logger.Debug("no further cache stream", "broker", b.addr, "error", err)
		}
	})
	if !started {
		<-slot.opening
	}
}

// openCache gives the i-th stream, opening it if need be.
func (b *broker) openCache(ctx context.Context, i int) (*cacheStream, error) {
	slot := b.caches[i]
	select {
	case slot.opening <- struct{}{}:
		defer func() { <-slot.opening }()
	case <-ctx.Done():
		return nil, ctxError("connect", ctx, RetryNow)
	}
	if s := slot.live(); s != nil {
		return s, nil
	}
	return b.newCache(ctx, i)
}

func (b *broker) newCache(ctx context.Context, i int) (*cacheStream, error) {
	cn, err := b.conn(ctx, roleCache, i%len(b.pools[roleCache]))
	if err != nil {
		return nil, err
	}
	ctx, cancel := within(ctx, b.c.cfg.dialTimeout)
	defer cancel()
	sess, err := cn.session(ctx)
	if err != nil {
		return nil, err
	}
	s := newCacheStream(b, sess)
	if s == nil {
		return nil, ErrClosed
	}
	b.caches[i].stream.Store(s)
	return s, nil
}
