package session

import (
	"context"

	"github.com/felixlog/felix/wire"
)

// counterAdd answers the sum once it is on the log (wire 11). A counter and a
// value of the same key are unrelated, but share the wait for a key.
func (s *control) counterAdd(ctx context.Context, m *wire.CounterAdd) error {
	r, err := s.writable(ctx, m.Tenant, m.Namespace, m.Cache, m.Key)
	if err != nil {
		return err
	}
	p := s.owe(formCounter, wire.Some(m.RequestID))
	if p == nil {
		return errEnded
	}
	s.turns.enterKey(p, s.hashOf(m.Key))
	r.cache.CounterAdd(r.shard, m.Key, m.Delta, p)
	s.turns.left(p, s.c.srv.clock.Now())
	return nil
}

// counterGet answers the sum, or none for a counter that was never written.
func (s *control) counterGet(ctx context.Context, m *wire.CounterGet) error {
	r, err := s.readable(ctx, m.Tenant, m.Namespace, m.Cache, m.Key)
	if err != nil {
		return err
	}
	s.awaitKey(ctx, m.Key)
	sum, written, err := r.cache.CounterGet(r.shard, m.Key)
	if err != nil {
		return err
	}
	p := s.owe(formCounter, wire.Some(m.RequestID))
	if p == nil {
		return errEnded
	}
	p.counted(sum, written)
	return nil
}

// counted settles a read of a counter.
func (p *owed) counted(sum int64, written bool) {
	p.ledger.answers.count(p, nil)
	p.ledger.out.mu.Lock()
	defer p.ledger.out.mu.Unlock()
	p.sum, p.hasSum = sum, written
	p.ledger.settleLocked(p)
}
