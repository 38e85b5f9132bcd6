package queue

import (
	"context"
	"sync"

	"github.com/felixlog/felix/broker/keyed"
)

// A Failure is why one record of a batch is not acknowledged.
type Failure struct {
	Offset uint64
	Err    error
}

// A BatchDone hears once how a batch of acks ended: what is not in failed is
// finished. It must not block, and may be a [keyed.Flusher] as a [Done] may.
type BatchDone interface {
	SettledAll(failed []Failure)
}

// AckAll is [Store.Ack] for many records: they are finished in one step, their
// cursor is written once, and done hears of all together. Errors of a failure
// are those of Ack.
func (s *Store) AckAll(r Ref, offsets []uint64, done BatchDone) {
	b := &ackBatch{done: done, left: 1}
	g, err := s.use(r)
	if err == nil {
		defer g.release()
		err = g.enter(context.Background())
	}
	if err != nil {
		for _, offset := range offsets {
			b.failed = append(b.failed, Failure{offset, err})
		}
		done.SettledAll(b.failed)
		return
	}
	_, tail := r.Shard.Bounds()
	moved := false
	for _, offset := range offsets {
		settled, err := g.tracker.Ack(offset, tail)
		if err != nil {
			b.failed = append(b.failed, Failure{offset, err})
			continue
		}
		moved = moved || settled.Moved
		settled.Moved = false // the mark is written once, for all
		if settled.Redriven || settled.Duplicate && g.letters.owesRemoval(offset) {
			b.left++
			g.finishRedriven(offset, func(err error) { g.outbox.answer(letterStep{b, offset}, err) })
		}
		g.finished(offset, settled)
		b.acked = append(b.acked, offset)
	}
	if moved {
		g.mark()
	}
	step := cursorStep{b}
	if b.below = below(b.acked, g.tracker.Committed()); b.below > 0 {
		g.await(need{committed: b.below, done: step})
	} else {
		g.outbox.answer(step, nil)
	}
	g.wake(tail)
	g.leave(teller{own: step})
}

// below is the position that a cursor at committed must have on disk so that
// every one of the offsets before it is passed; 0 for none. What lies behind a
// gap is finished in memory, as a single ack has it.
func below(offsets []uint64, committed uint64) (position uint64) {
	for _, offset := range offsets {
		if offset < committed {
			position = max(position, offset+1)
		}
	}
	return position
}

// An ackBatch is a batch of acks under way.
type ackBatch struct {
	done  BatchDone
	acked []uint64 // finished in memory
	below uint64   // those below wait for the cursor

	mu     sync.Mutex
	left   int // steps the answer waits for: the cursor, and letters to be removed
	failed []Failure
}

// step ends one of them.
func (b *ackBatch) step(failed ...Failure) {
	b.mu.Lock()
	b.failed = append(b.failed, failed...)
	b.left--
	last := b.left == 0
	b.mu.Unlock()
	if last {
		b.done.SettledAll(b.failed)
	}
}

// Flush implements [keyed.Flusher] for a receiver that does.
func (b *ackBatch) Flush() {
	if f, ok := b.done.(keyed.Flusher); ok {
		f.Flush()
	}
}

// A cursorStep waits until the cursor on disk has passed the batch.
type cursorStep struct{ *ackBatch }

func (s cursorStep) Settled(err error) {
	if err == nil {
		s.step()
		return
	}
	var failed []Failure
	for _, offset := range s.acked {
		if offset < s.below {
			failed = append(failed, Failure{offset, err})
		}
	}
	s.step(failed...)
}

// A letterStep waits until the letter of a redriven record is gone.
type letterStep struct {
	*ackBatch
	offset uint64
}

func (s letterStep) Settled(err error) {
	if err != nil {
		s.step(Failure{s.offset, err})
		return
	}
	s.step()
}
