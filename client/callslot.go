package client

import (
	"context"
	"sync/atomic"
)

// spreadCalls is the number of calls under way on a stream from which
// another stream is opened beside it, up to the configured number.
const spreadCalls = 16

// A callPool holds a broker's long-lived streams of one kind, each on one of
// the connections of its role.
type callPool struct {
	b     *broker
	role  role
	slots []*callSlot
}

// A callSlot holds one of them.
type callSlot struct {
	opening chan struct{} // one token: held by whoever opens
	stream  atomic.Pointer[callStream]
}

func newCallPool(b *broker, r role, streams int) *callPool {
	p := &callPool{b: b, role: r}
	for range streams {
		p.slots = append(p.slots, &callSlot{opening: make(chan struct{}, 1)})
	}
	return p
}

func (slot *callSlot) live() *callStream {
	if s := slot.stream.Load(); s != nil && !s.closed.Load() {
		return s
	}
	return nil
}

// cacheStream gives a stream for one call at a broker, nil being the one that
// everything goes to.
func (c *Client) cacheStream(ctx context.Context, at *broker) (*callStream, error) {
	b := at
	if b == nil {
		b = c.entry.Load()
	}
	if b != nil {
		if s := b.caches.leastLoaded(); s != nil {
			return s, nil
		}
	}
	if at == nil {
		var err error
		if b, err = c.broker(ctx); err != nil {
			return nil, err
		}
	}
	return b.caches.open(ctx, 0)
}

// leastLoaded picks the open stream with the fewest calls under way; nil
// when none is open. When even that one has many, another is opened for the
// calls to come.
func (p *callPool) leastLoaded() *callStream {
	var (
		best  *callStream
		least int32
		free  = -1
	)
	for i, slot := range p.slots {
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
		p.openMore(free)
	}
	return best
}

// openMore opens one more stream behind the callers' backs, unless that is
// happening already.
func (p *callPool) openMore(i int) {
	slot := p.slots[i]
	select {
	case slot.opening <- struct{}{}:
	default:
		return
	}
	started := p.b.c.spawn(func() {
		defer func() { <-slot.opening }()
		if slot.live() != nil {
			return
		}
		if _, err := p.renew(p.b.c.ctx, i); err != nil {
			p.b.c.cfg.logger.Debug("no further stream for calls", "broker", p.b.addr, "error", err)
		}
	})
	if !started {
		<-slot.opening
	}
}

// open gives the i-th stream, opening it if need be.
func (p *callPool) open(ctx context.Context, i int) (*callStream, error) {
	slot := p.slots[i]
	select {
	case slot.opening <- struct{}{}:
		defer func() { <-slot.opening }()
	case <-ctx.Done():
		return nil, ctxError("connect", ctx, RetryNow)
	}
	if s := slot.live(); s != nil {
		return s, nil
	}
	return p.renew(ctx, i)
}

// renew opens the i-th stream. Its token is held.
func (p *callPool) renew(ctx context.Context, i int) (*callStream, error) {
	b := p.b
	cn, err := b.conn(ctx, p.role, i%len(b.pools[p.role]))
	if err != nil {
		return nil, err
	}
	ctx, cancel := within(ctx, b.c.cfg.dialTimeout)
	defer cancel()
	sess, err := cn.session(ctx)
	if err != nil {
		return nil, err
	}
	s := newCallStream(b, sess)
	if s == nil {
		return nil, ErrClosed
	}
	p.slots[i].stream.Store(s)
	return s, nil
}
