package session

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/felixlog/felix/broker/queue"
	"github.com/felixlog/felix/wire"
)

// groupSettle serves the requests of workers about a record they were given
// (wire 12.2). They are answered in their turn: an ack perhaps later, by
// whoever commits the cursor.
func (s *control) groupSettle(ctx context.Context, m wire.Message) error {
	groups := s.c.srv.broker.Groups()
	switch m := m.(type) {
	case *wire.GroupAck:
		r, p, err := s.settling(ctx, &m.GroupRef, formSettled, m.RequestID)
		if err != nil {
			return err
		}
		groups.Ack(r.ref, m.Offset, p)
		s.turns.left(p, s.c.srv.clock.Now())
	case *wire.GroupAckBatch:
		r, p, err := s.settling(ctx, &m.GroupRef, formAcked, m.RequestID)
		if err != nil {
			return err
		}
		if n := len(m.Offsets); n == 0 || n > wire.MaxAckBatch {
			p.Settled(invalidRequest(fmt.Sprintf("%d offsets: a batch of acks has 1 to %d", n, wire.MaxAckBatch)))
			return nil
		}
		groups.AckAll(r.ref, m.Offsets, p)
		s.turns.left(p, s.c.srv.clock.Now())
	case *wire.GroupNack:
		r, p, err := s.settling(ctx, &m.GroupRef, formSettled, m.RequestID)
		if err != nil {
			return err
		}
		p.Settled(groups.Nack(r.ref, m.Offset, m.Attempts, fromMillis(m.DelayMS)))
	case *wire.GroupExtend:
		r, p, err := s.settling(ctx, &m.GroupRef, formExtended, m.RequestID)
		if err != nil {
			return err
		}
		if m.ExtendMS == 0 {
			p.Settled(invalidRequest("extend_ms must be at least 1; to give the record back, nack it"))
			return nil
		}
		p.extended(groups.Extend(r.ref, m.Offset, m.Attempts, fromMillis(m.ExtendMS)))
	}
	return nil
}

// settling finds the group of a request about a record, and opens its answer.
func (s *control) settling(ctx context.Context, name *wire.GroupRef, f form, requestID uint64) (*groupRoute, *owed, error) {
	r, err := s.group(ctx, name, mayConsume)
	if err != nil {
		return nil, nil, err
	}
	p := s.owe(f, wire.Some(requestID))
	if p == nil {
		return nil, nil, errEnded
	}
	return r, p, nil
}

// fromMillis is a time a client names; what no clock could hold is the longest
// there is, which the core cuts to what it grants.
func fromMillis(ms uint64) time.Duration {
	return time.Duration(min(ms, math.MaxInt64/uint64(time.Millisecond))) * time.Millisecond
}

// Settled settles an ack or a nack: it implements [queue.Done].
func (p *owed) Settled(err error) {
	p.ledger.answers.count(p, err)
	p.ledger.out.mu.Lock()
	p.err = err
	p.ledger.settleLocked(p)
	p.ledger.out.mu.Unlock()
}

// SettledAll settles a batch of acks: it implements [queue.BatchDone]. The
// answer is one, and so is its latency; each failure counts.
func (p *owed) SettledAll(failed []queue.Failure) {
	p.ledger.answers.count(p, nil)
	p.ledger.answers.metrics.Groups.Errors.Add(float64(len(failed)))
	p.ledger.out.mu.Lock()
	p.failed = failed
	p.ledger.settleLocked(p)
	p.ledger.out.mu.Unlock()
}

// extended settles the prolonging of a claim.
func (p *owed) extended(granted time.Duration, err error) {
	p.ledger.answers.count(p, err)
	p.ledger.out.mu.Lock()
	p.granted, p.err = granted, err
	p.ledger.settleLocked(p)
	p.ledger.out.mu.Unlock()
}
