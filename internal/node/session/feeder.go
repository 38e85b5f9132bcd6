package session

import (
	"context"
	"errors"
	"time"

	"github.com/felixlog/felix/broker/placed"
	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/internal/telemetry"
	"github.com/felixlog/felix/wire"
)

// A feeder delivers one subscription to its own event stream (wire 10,
// broker 7.2). It takes whatever is queued, gathers small frames into writes
// of up to MaxBytesPerSend, writes large frames as they are, and holds its
// place in the queue until the bytes have been handed on, so that a client
// that does not read fills its own queue and nothing else.
type feeder struct {
	*eventStream
	sub   *stream.Subscription
	shape stream.Shape
	since time.Time // when the subscription began
	next  uint64    // the first offset not taken for delivery

	delivered *telemetry.TenantMetrics
	batch     merge
	pending   []byte         // frames not written yet
	held      []stream.Piece // pieces whose bytes are in pending
}

// newFeeder is the feeder of a subscription on its opened event stream.
func newFeeder(e *eventStream, s *control, sub *stream.Subscription) *feeder {
	srv := s.c.srv
	f := &feeder{eventStream: e, sub: sub, shape: shapeFor(s.offer), since: srv.clock.Now(), next: sub.StartOffset()}
	f.delivered = srv.metrics.Tenants.For(s.principal.Tenant)
	f.batch.limit(&srv.cfg)
	return f
}

func (f *feeder) run() { f.start(f.deliver, f.finish) }

// deliver moves pieces from the queue to the stream until one of them ends.
func (f *feeder) deliver() error {
	for {
		pieces, err := f.sub.Next(f.ctx)
		if err != nil {
			return err
		}
		if err := f.send(pieces); err != nil {
			return err
		}
	}
}

// send writes everything that is queued, then, under load, waits a moment for
// more before a batch that is not full goes out (broker 7.6).
func (f *feeder) send(pieces []stream.Piece) error {
	for {
		for i := range pieces {
			if err := f.add(pieces[i]); err != nil {
				release(pieces[i+1:])
				return err
			}
		}
		more, err := f.linger()
		if err != nil || len(more) == 0 {
			break
		}
		pieces = more
	}
	if err := f.closeBatch(); err != nil {
		return err
	}
	return f.flush()
}

func release(pieces []stream.Piece) {
	for _, p := range pieces {
		p.Release()
	}
}

// linger waits for further events of a batch in the making, at most until its
// deadline, and only if the batch before found events behind its first.
func (f *feeder) linger() ([]stream.Piece, error) {
	wait, ok := f.batch.wait(time.Now)
	if !ok {
		return nil, nil
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-f.sub.Wake():
		return f.sub.Poll()
	case <-t.C:
	case <-f.ctx.Done():
	}
	return nil, nil
}

// add puts one piece into the bytes to be written.
func (f *feeder) add(p stream.Piece) error {
	cfg := &f.c.srv.cfg
	f.next = p.Offset() + uint64(p.Count())
	if f.batch.takes(p) {
		if !f.batch.fits(p) {
			if err := f.closeBatch(); err != nil {
				p.Release()
				return err
			}
		}
		f.delivered.Delivered(1, p.Envelope.PayloadBytes())
		f.batch.add(p, time.Now)
		p.Release() // its record was copied
		return nil
	}
	if err := f.closeBatch(); err != nil {
		p.Release()
		return err
	}
	if !p.Whole() || !f.batch.within(p) {
		f.delivered.Delivered(p.Count(), len(p.Records())-4*p.Count())
		f.pending = f.appendSplit(f.pending, p)
		p.Release()
		return f.flushAt(cfg.MaxBytesPerSend)
	}
	f.delivered.Delivered(p.Count(), p.Envelope.PayloadBytes())
	frame := p.Envelope.Frame(f.shape)
	if len(frame) >= directWrite {
		if err := f.flush(); err != nil {
			p.Release()
			return err
		}
		_, err := f.out.Write(frame)
		f.observe(p.Envelope.Made())
		p.Release()
		return err
	}
	if err := f.flushAt(cfg.MaxBytesPerSend - len(frame)); err != nil {
		p.Release()
		return err
	}
	f.pending = append(f.pending, frame...)
	f.held = append(f.held, p)
	return nil
}

// directWrite is the size from which a frame is written as it is; smaller
// ones are worth a copy to share a write.
const directWrite = 16 << 10

// closeBatch turns the merged single events into one frame.
func (f *feeder) closeBatch() error {
	if f.batch.count == 0 {
		return nil
	}
	if err := f.flushAt(f.c.srv.cfg.MaxBytesPerSend - f.batch.size()); err != nil {
		return err
	}
	f.pending = f.batch.appendFrame(f.pending, f.shape)
	f.batch.reset()
	return nil
}

// flushAt writes what is pending if it is longer than limit.
func (f *feeder) flushAt(limit int) error {
	if len(f.pending) <= max(limit, 0) {
		return nil
	}
	return f.flush()
}

func (f *feeder) flush() error {
	if len(f.pending) == 0 {
		return nil
	}
	_, err := f.out.Write(f.pending)
	if len(f.held) > 0 {
		f.observe(f.held[0].Envelope.Made())
	} else if !f.batch.made.IsZero() {
		f.observe(f.batch.made)
		f.batch.made = time.Time{}
	}
	f.pending = f.pending[:0]
	if cap(f.pending) > keepReplyBuffer {
		f.pending = nil
	}
	release(f.held)
	clear(f.held)
	f.held = f.held[:0]
	return err
}

// observe records how long the oldest batch of a write was on its way. What
// was history when the subscription began says nothing about delivery.
func (f *feeder) observe(made time.Time) {
	if made.After(f.since) {
		f.c.srv.metrics.Subscribe.Latency.Observe(f.c.srv.clock.Now().Sub(made))
	}
}

// finish ends the event stream in the way its end is to be read (wire 2.4, 10):
// FIN, after an error frame when the rights ended, after the word that the
// stream was deleted, that the shard is served elsewhere, or that records were
// lost; RESET when delivery failed on the way; with the connection on a drain.
func (f *feeder) finish(err error) {
	defer f.sub.Close()
	release(f.held)
	f.held = nil
	var ended *refusal
	var lagged *stream.LaggedError
	var unserved *placed.NotServedError
	switch cause := context.Cause(f.ctx); {
	case errors.As(cause, &ended):
		f.last(f.offer.Error(ended.Failure))
	case errors.Is(cause, errDrained):
		// The stream stays open until the connection closes: a clean end
		// would tell the client that the subscription is complete, and it
		// would not come back after a restart.
		if pieces, pollErr := f.sub.Poll(); pollErr == nil {
			_ = f.send(pieces)
		}
	case errors.As(err, &lagged):
		f.last(&wire.SubscriptionLagged{SubscriptionID: f.id, ResumeFrom: lagged.ResumeFrom})
	case errors.As(err, &unserved):
		f.unserved(unserved, wire.Optional[uint64]{Value: f.next, Set: f.sub.Shard().Durable()})
	case errors.Is(err, stream.ErrRemoved):
		f.lastFrame(streamDeleted(f.id))
	default:
		f.abort()
	}
}
