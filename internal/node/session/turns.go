package session

import (
	"context"

	"github.com/felixlog/felix/wire"
)

// Requests other than publishes are answered in request order (wire 8.1): an
// `error` names no request and is taken for the answer to the oldest. While
// nothing is owed, an answer is appended where it is made; behind a write that
// waits for its commit it takes its place in the ledger.

// maxTurns is how many answers may be owed in request order; further requests
// wait unread.
const maxTurns = 1024

// owe opens an answer among those in request order; nil means that the stream
// has ended.
func (s *control) owe(f form, requestID wire.Optional[uint64]) *owed {
	if s.turns == nil {
		s.turns = newLedger(s.out, true, maxTurns, s.c.srv.cfg.AckWait, s.c.srv.clock, s.shaper())
	}
	p := s.oweIn(s.turns, f, requestID.Value)
	if p != nil {
		p.hasID = requestID.Set
	}
	return p
}

// awaitTurn waits until everything asked before is answered. The requests
// whose answers are made at once, and are not cache requests, come after it.
func (s *control) awaitTurn(ctx context.Context) {
	if s.turns.idle() {
		return
	}
	if s.out.flush() != nil {
		return
	}
	s.turns.settle(ctx, s.c.conn.Context().Done())
	s.out.beginRound()
}

// awaitKey waits for a write of the same key that came before on this stream:
// a client reads what it has written.
func (s *control) awaitKey(ctx context.Context, key []byte) {
	if s.turns.idle() {
		return
	}
	hash := s.hashOf(key)
	if !s.turns.writes(hash) {
		return
	}
	if s.out.flush() != nil {
		return
	}
	s.turns.waitFor(ctx, s.c.conn.Context().Done(), func() bool { return s.turns.keys[hash] == 0 })
	s.out.beginRound()
}

// refuseRequest answers a request of its turn with `error` and says whether
// the stream goes on.
func (s *control) refuseRequest(r *refusal) verdict {
	s.refuse(r)
	return verdictOf(r)
}

// ends says that a refusal ends the stream of a request (wire 8.1): a foreign
// tenant, a missing right, rights that have ended.
func (r *refusal) ends() bool {
	return r.Code == wire.CodeForbidden || r.Code == wire.CodeUnauthenticated
}

func verdictOf(r *refusal) verdict {
	if r.ends() {
		return finish
	}
	return goOn
}
