package client

import (
	"context"
	"fmt"
)

// A publishSlot holds one of a broker's long-lived publish streams.
type publishSlot struct {
	opening chan struct{}  // one token: held by whoever opens
	stream  *publishStream // guarded by the broker's mu
}

// publishStream gives the stream that l shall use: at the shard's owner
// where it is known and reachable, else at the broker everything goes to.
func (c *Client) publishStream(ctx context.Context, l *lane) (*publishStream, error) {
	if s := c.ownerStream(ctx, l); s != nil {
		return s, nil
	}
	var s *publishStream
	err := c.retry(ctx, true, func(ctx context.Context) error {
		b, err := c.broker(ctx)
		if err != nil {
			return err
		}
		s, err = b.publishStream(ctx, l.acked, l.slot)
		return err
	})
	return s, err
}

// ownerStream is the stream at the owner that acks named; nil when there is
// none, and then the owner is forgotten.
func (c *Client) ownerStream(ctx context.Context, l *lane) *publishStream {
	l.mu.Lock()
	owner := l.owner
	l.mu.Unlock()
	if owner == "" {
		return nil
	}
	if b := c.endpoints.add(c, owner); b != nil {
		s, err := b.publishStream(ctx, l.acked, l.slot)
		if err == nil {
			return s
		}
		c.cfg.logger.Debug("shard owner not reachable, going through the entry broker", "broker", owner, "error", err)
	}
	l.mu.Lock()
	if l.owner == owner {
		l.owner = ""
	}
	l.mu.Unlock()
	return nil
}

// publishStream gives one of the broker's publish streams, opening it if
// need be.
func (b *broker) publishStream(ctx context.Context, acked bool, i int) (*publishStream, error) {
	slots := b.publishes[0]
	if acked {
		slots = b.publishes[1]
	}
	i %= len(slots)
	slot := slots[i]
	if s := b.current(slot); s != nil {
		return s, nil
	}
	select {
	case slot.opening <- struct{}{}:
		defer func() { <-slot.opening }()
	case <-ctx.Done():
		return nil, ctxError("publish", ctx, RetryNow)
	}
	if s := b.current(slot); s != nil {
		return s, nil
	}
	cn, err := b.conn(ctx, rolePublish, i%len(b.pools[rolePublish]))
	if err != nil {
		return nil, err
	}
	ctx, cancel := within(ctx, b.c.cfg.dialTimeout)
	defer cancel()
	sess, err := cn.session(ctx)
	if err != nil {
		return nil, err
	}
	s := newPublishStream(cn, sess, acked)
	if s == nil {
		return nil, ErrClosed
	}
	b.mu.Lock()
	slot.stream = s
	b.mu.Unlock()
	return s, nil
}

func (b *broker) current(slot *publishSlot) *publishStream {
	b.mu.Lock()
	defer b.mu.Unlock()
	if slot.stream == nil || slot.stream.gone() {
		return nil
	}
	return slot.stream
}

// publishWindow is the window that the connection's publish streams share
// at a broker that counts there; nil at others.
func (cn *conn) publishWindow(caps *capabilities) *budget {
	if caps.window == 0 || caps.windowPerStream {
		return nil
	}
	cn.mu.Lock()
	defer cn.mu.Unlock()
	if cn.publishes == nil {
		cn.publishes = newBudget(caps.window)
	}
	return cn.publishes
}

// drainUnacked ends the streams of unacknowledged publishes and waits until
// the broker has read them to their end.
func (b *broker) drainUnacked(ctx context.Context) error {
	for _, slot := range b.publishes[0] {
		b.mu.Lock()
		s := slot.stream
		b.mu.Unlock()
		if s == nil {
			continue
		}
		if err := s.drain(ctx); err != nil {
			return err
		}
	}
	return nil
}

// drain retires the stream and waits for its end. The error says that the
// broker may not have read everything.
func (s *publishStream) drain(ctx context.Context) error {
	s.retire()
	ctx, cancel := within(ctx, s.c.cfg.ackTimeout)
	defer cancel()
	select {
	case <-s.finished:
	case <-ctx.Done():
		return ctxError("publish", ctx, RetryUnknown)
	}
	_, err := s.unread()
	return err
}

// unread says whether the stream has ended, and then whether the broker may
// not have read all of it.
func (s *publishStream) unread() (ended bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err == nil:
		return false, nil
	case s.clean:
		return true, nil
	case s.refusal != nil:
		return true, s.refusal.about("publish", 0)
	}
	return true, lost("publish", s.b.addr, RetryUnknown, fmt.Errorf("unacknowledged records may be lost: %w", s.c.cause(s.err)))
}
