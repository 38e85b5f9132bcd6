package stream

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// A Subscription is one reader of one shard: the history it asked for, then
// live batches through a bounded queue.
//
// Memory held for it is bounded by its queue (capacity in batches, bytes of
// buffers; pieces taken but not released included) plus its history. History
// in memory is fixed when it subscribes, at most what the shard's ring held
// then; what is older is read from the log, a page each time it is asked. It is
// never dropped, however slowly it is read, and never grows. A batch larger
// than the whole queue is taken by an empty one.
//
// On a durable stream it catches up first: batches that find the queue full
// while history is being read are read from the log in their turn. Only after
// that can a full queue cost it anything.
//
// One goroutine consumes: Next, Poll and Backlog are not for concurrent use.
// Everything else is.
type Subscription struct {
	id       uint64
	shard    *Shard
	slot     int // index in the shard's slots; the shard's lock guards it
	policy   QueuePolicy
	capacity int64
	maxBytes int64
	start    uint64
	live     uint64
	since    time.Time

	// depth and bytes are what occupies the queue: waiting, or taken and not
	// released. They grow under mu and shrink without it.
	depth, bytes                   atomic.Int64
	droppedBatches, droppedRecords atomic.Uint64
	// hasParked mirrors parked != nil for those who give room back.
	hasParked atomic.Bool

	mu      sync.Mutex
	history []Piece
	queue   []Piece
	taken   []Piece   // what the consumer took last, reused by the next take
	parked  *Envelope // under Block, the batch that waits for room
	end     error     // no batch is accepted any more
	// catching: what the queue has no room for is read from the log later, up
	// to missedTo. lenient: also under Block.
	catching, lenient bool
	missedTo          uint64

	endOnDrop bool
	replay    *replay // while catching; the consumer's

	wake chan struct{}
}

// ID is unique in this process, from 1.
func (s *Subscription) ID() uint64 { return s.id }

// Shard is the shard it reads.
func (s *Subscription) Shard() *Shard { return s.shard }

// StartOffset is the offset of the first record it is given, or would be.
func (s *Subscription) StartOffset() uint64 { return s.start }

// LiveOffset is the tail when it subscribed: history ends before it.
func (s *Subscription) LiveOffset() uint64 { return s.live }

// Capacity is the granted queue in batches.
func (s *Subscription) Capacity() int { return int(s.capacity) }

// Policy is what happens at a full queue.
func (s *Subscription) Policy() QueuePolicy { return s.policy }

// Dropped is what a full queue has cost it so far.
func (s *Subscription) Dropped() (batches, records uint64) {
	return s.droppedBatches.Load(), s.droppedRecords.Load()
}

// Wake receives after something was queued or the subscription ended, if Poll
// had found nothing before. It is for waiting on several things at once.
func (s *Subscription) Wake() <-chan struct{} { return s.wake }

// Backlog hands over the history, oldest first, unless it was handed over
// already. A caller that does not ask gets it from Next, where alone that of a
// durable stream comes from.
func (s *Subscription) Backlog() []Piece {
	if s.replay != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	history := s.history
	s.history = nil
	return history
}

// Next waits until there are pieces and returns all of them, in order: first
// the history, then what is queued. The slice is valid until the next call of
// Next or Poll; each piece is to be released.
//
// When nothing is left it returns why: [ErrSubscriptionClosed] after Close,
// [ErrRemoved] after the stream's removal, [*LaggedError] after a loss with
// EndOnDrop, [*CursorError] when retention removed what it was about to read,
// [*UnavailableError] when that cannot be read, or the cause of ctx.
func (s *Subscription) Next(ctx context.Context) ([]Piece, error) {
	for {
		pieces, err := s.Poll()
		if len(pieces) > 0 || err != nil {
			return pieces, err
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Poll is Next without waiting: no pieces and no error means nothing is queued.
// It may read from the log.
func (s *Subscription) Poll() ([]Piece, error) {
	if s.replay != nil {
		if pieces, err := s.catchUp(); len(pieces) > 0 || err != nil {
			return pieces, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if history := s.history; len(history) > 0 {
		s.history = nil
		return history, nil
	}
	if len(s.queue) == 0 {
		return nil, s.end
	}
	clear(s.taken)
	s.taken, s.queue = s.queue, s.taken[:0]
	if s.end == nil {
		select {
		case <-s.wake: // it told of what is taken now
		default:
		}
	}
	s.shard.hub.counters.dequeued.Add(uint64(len(s.taken)))
	return s.taken, nil
}

// Close ends the subscription and lets go of what it had queued. Pieces
// already taken stay the consumer's. Closing again does nothing.
func (s *Subscription) Close() { s.close(ErrSubscriptionClosed) }

func (s *Subscription) close(cause error) {
	s.mu.Lock()
	if s.end == ErrSubscriptionClosed {
		s.mu.Unlock()
		return
	}
	ended := s.end != nil
	s.end = cause
	history, queue, parked := s.history, s.queue, s.unpark()
	s.history, s.queue = nil, nil
	s.mu.Unlock()

	if !ended {
		s.shard.leave(s)
		s.shard.hub.counters.subscriptions.Add(-1)
	}
	for _, p := range history {
		p.Release()
	}
	for _, p := range queue {
		p.Release()
	}
	s.shard.hub.counters.dequeued.Add(uint64(len(queue)))
	s.drop(parked)
	s.signal()
}

// finish refuses further batches; what is queued can still be read, then err.
func (s *Subscription) finish(err error) {
	s.mu.Lock()
	if s.end != nil {
		s.mu.Unlock()
		return
	}
	s.end = err
	parked := s.unpark()
	s.mu.Unlock()
	s.shard.hub.counters.subscriptions.Add(-1)
	s.drop(parked)
	s.signal()
}

// drop lets go of a parked batch and tells the publish that waits for it.
func (s *Subscription) drop(parked *Envelope) {
	if parked != nil {
		parked.release()
		s.shard.settled()
	}
}

// signal wakes the consumer unless a wake is pending.
func (s *Subscription) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
