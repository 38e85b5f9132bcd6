package client

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/felixlog/felix/wire"
)

// sequenceAt is where an idempotent publish frame holds its number: behind
// header, request id, ack mode and producer id (wire 4.3).
const sequenceAt = requestIDAt + 8 + 1 + 8

// A producerShard numbers the batches of a producer for one shard and keeps
// them within what the broker remembers. It has a lane of its own.
type producerShard struct {
	p    *Producer
	lane *lane
	turn chan struct{} // one token: numbers are given in the order of sending

	mu       sync.Mutex
	room     waitList
	underway idRing[request] // by number
}

func newProducerShard(p *Producer, shard uint32) *producerShard {
	s := &producerShard{p: p, turn: make(chan struct{}, 1)}
	s.lane = newLane(p.route, shard, true, int(p.c.routes.lanes.Add(1)-1))
	s.lane.producer = s
	s.room.mu = &s.mu
	return s
}

// send gives r its number and hands it to the lane. On an error nothing was
// sent, and the number goes to the next.
func (s *producerShard) send(ctx context.Context, r *request) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := s.number(ctx, r); err != nil {
		return err
	}
	if err := s.lane.send(ctx, r, false); err != nil {
		s.mu.Lock()
		s.underway.pop()
		s.mu.Unlock()
		return err
	}
	return nil
}

// number waits until the broker will remember the oldest batch under way
// beside this one, and gives it the next number.
func (s *producerShard) number(ctx context.Context, r *request) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.underway.span() >= wire.MaxProducerBatches {
		if err := s.room.wait(ctx); err != nil {
			return err
		}
	}
	if s.p.failed() {
		return s.p.Err()
	}
	r.number = s.underway.next
	s.underway.push(r)
	binary.BigEndian.PutUint64(r.frame[sequenceAt:], r.number)
	return nil
}

// answered takes the final outcome of batch n, before anybody hears of it.
func (s *producerShard) answered(n uint64, err error) {
	if err != nil {
		s.p.stop(err)
	}
	s.mu.Lock()
	s.underway.take(n)
	s.room.wakeAll()
	s.mu.Unlock()
}

// oldest is the lowest number under way.
func (s *producerShard) oldest() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.underway.oldest
}

// again decides whether a batch that failed is sent again: always under its
// number, so whatever became of it is no concern, but not behind one that
// failed for good. The lane's mu is held.
func (s *producerShard) again(l *lane, r *request, e *Error) bool {
	var refusal *RefusedError
	refused := errors.As(e, &refusal)
	if refused {
		refusal.Sequence = r.number
	}
	switch {
	case s.p.failed(), !s.inTime(r):
		return false
	case refused:
		return s.againRefused(l, r, refusal)
	}
	if !e.Retryable() && !e.OutcomeUnknown() || e.Code == CodeNotFound && time.Since(r.failedAt) > notFoundFor {
		return false
	}
	r.attempts++
	return true
}

// againRefused is again for a batch refused by its number.
func (s *producerShard) againRefused(l *lane, r *request, refusal *RefusedError) bool {
	switch refusal.Reason {
	case RefusedNotLeader:
		if refusal.Addr != "" {
			l.owner = refusal.Addr
			r.hasty = r.attempts == 0
		}
		r.attempts++
		return true
	case SequenceGap, UnknownProducer:
		// The one missing is under way: it failed too and goes first. While
		// that is the very first the broker does not know the producer.
		oldest := s.oldest()
		r.hasty = oldest < r.number && (refusal.Reason == UnknownProducer && oldest == 0 ||
			refusal.Reason == SequenceGap && refusal.Expected >= oldest && refusal.Expected < r.number)
		return r.hasty
	}
	return false
}

// inTime says that there is time left to deliver a batch that failed. The
// oldest under way decides: those behind it wait for it.
func (s *producerShard) inTime(r *request) bool {
	return r.number != s.oldest() || time.Since(r.failedAt) < s.p.patience
}
