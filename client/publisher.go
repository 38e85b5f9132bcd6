package client

import (
	"context"
	"sync"
)

// A Publisher sends batches to one stream without waiting for each answer.
// It is safe for concurrent use; batches that one goroutine sends to one
// shard keep their order.
//
// What is under way is bounded: by the publish window that the broker grants
// each stream of the connection, and by [WithPublishInflight] bytes over the
// whole client. Sends wait at the bound. Batches are written as soon as the
// connection takes them, together with their neighbours under load; there is
// no timer.
//
// With [AckNone] nothing is answered. Such batches travel on a stream of
// their own, so there is no order between them and acknowledged ones.
type Publisher struct {
	c    *Client
	name string
	opts publishOptions
	mode AckMode

	mu          sync.Mutex
	route       *route
	changed     waitList
	outstanding int
	firstErr    error // since the last Flush
	closed      bool
}

// Publisher gives a pipelined publisher for a stream. Nothing is sent; a
// name that cannot be is reported by the first Send. The key of [WithKey],
// if given, is that of batches sent without their own.
func (c *Client) Publisher(stream string, opts ...PublishOption) *Publisher {
	p := &Publisher{c: c, name: stream, mode: AckPerBatch}
	for _, opt := range opts {
		p.opts = opt.applyPublish(p.opts)
	}
	if p.opts.ackSet {
		p.mode = p.opts.ack
	}
	p.changed.mu = &p.mu
	return p
}

// Send hands over one batch and returns once it is queued. The payloads may
// be reused at once. An error says that the batch was not sent; what becomes
// of it afterwards is what the [Pending] tells.
func (p *Publisher) Send(ctx context.Context, payloads ...[]byte) (*Pending, error) {
	return p.sendPending(ctx, p.opts.key, p.opts.keyed, payloads)
}

// SendKeyed is [Publisher.Send] with a key for this batch.
func (p *Publisher) SendKeyed(ctx context.Context, key []byte, payloads ...[]byte) (*Pending, error) {
	return p.sendPending(ctx, key, true, payloads)
}

// SendFunc is [Publisher.Send] with a callback instead of a [Pending]; it
// does not allocate. The callback is called once, unless SendFunc returns an
// error. It runs on the goroutine that reads the answers: it must not block,
// nor call the client.
func (p *Publisher) SendFunc(ctx context.Context, done func(Ack, error), payloads ...[]byte) error {
	return p.send(ctx, p.opts.key, p.opts.keyed, payloads, done, nil)
}

// SendKeyedFunc is [Publisher.SendFunc] with a key for this batch.
func (p *Publisher) SendKeyedFunc(ctx context.Context, key []byte, done func(Ack, error), payloads ...[]byte) error {
	return p.send(ctx, key, true, payloads, done, nil)
}

func (p *Publisher) sendPending(ctx context.Context, key []byte, keyed bool, payloads [][]byte) (*Pending, error) {
	pending := new(Pending)
	if err := p.send(ctx, key, keyed, payloads, nil, pending); err != nil {
		return nil, err
	}
	return pending, nil
}

func (p *Publisher) send(ctx context.Context, key []byte, keyed bool, payloads [][]byte, done func(Ack, error), pending *Pending) error {
	rt, err := p.begin()
	if err != nil {
		return err
	}
	r, err := rt.prepare(ctx, key, keyed, p.mode, payloads)
	if err != nil {
		p.settled(nil)
		return err
	}
	if p.mode == AckNone {
		err := p.c.sendUnacked(ctx, r)
		p.settled(nil)
		if err != nil {
			return err
		}
		if pending != nil {
			pending.resolve(Ack{}, nil)
		}
		if done != nil {
			done(Ack{}, nil)
		}
		return nil
	}
	r.atLeastOnce = p.opts.atLeastOnce
	r.pub, r.done, r.pending = p, done, pending
	if err := p.c.dispatch(ctx, r, false); err != nil {
		p.settled(nil)
		return err
	}
	return nil
}

// begin counts one more batch under way.
func (p *Publisher) begin() (*route, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	if p.route == nil {
		rt, err := p.c.route(p.opts.namespace, p.name)
		if err != nil {
			return nil, err
		}
		p.route = rt
	}
	p.outstanding++
	return p.route, nil
}

// settled counts one batch less.
func (p *Publisher) settled(err error) {
	p.mu.Lock()
	p.outstanding--
	if err != nil && p.firstErr == nil {
		p.firstErr = err
	}
	if p.outstanding == 0 {
		p.changed.wakeAll()
	}
	p.mu.Unlock()
}

// Flush waits until everything sent before was answered, and returns the
// first failure since the last Flush. With [AckNone] it waits until the
// broker has read everything that was sent; that it was then stored is more
// than this mode tells.
func (p *Publisher) Flush(ctx context.Context) error {
	p.mu.Lock()
	for p.outstanding > 0 {
		if err := p.changed.wait(ctx); err != nil {
			p.mu.Unlock()
			return err
		}
	}
	err := p.firstErr
	p.firstErr = nil
	rt := p.route
	p.mu.Unlock()
	if p.mode == AckNone && rt != nil {
		return rt.drainUnacked(ctx)
	}
	return err
}

// Close flushes, waiting as long as that takes (the client's ack timeout is
// the bound for a broker that does not answer), and refuses further sends.
func (p *Publisher) Close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	return p.Flush(context.Background())
}

// drainUnacked makes sure that the broker has read what the route's
// unacknowledged lanes sent.
func (r *route) drainUnacked(ctx context.Context) error {
	r.mu.Lock()
	lanes := append([]*lane(nil), r.lanes[0]...)
	r.mu.Unlock()
	for _, l := range lanes {
		if l == nil {
			continue
		}
		if err := l.drain(ctx); err != nil {
			return err
		}
	}
	return nil
}

// drain makes sure that the broker has read what an unacknowledged lane
// sent. It reports, once, a stream that the broker ended early since the
// last time.
func (l *lane) drain(ctx context.Context) error {
	l.mu.Lock()
	streams, err := l.earlier, l.broken
	if l.current != nil {
		streams = append(streams, l.current)
	}
	l.current, l.earlier, l.broken = nil, nil, nil
	l.mu.Unlock()
	for _, s := range streams {
		if drained := s.drain(ctx); err == nil {
			err = drained
		}
	}
	return err
}
