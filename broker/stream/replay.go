package stream

import (
	"fmt"
	"time"

	"github.com/felixlog/felix/storage/segment"
	"github.com/felixlog/felix/storage/shardlog"
)

// lenientPasses is how often a subscription under [Block] that catches up may
// fall behind again before its full queue holds publishers: each pass of a
// reader that is faster than they are is shorter than the one before.
const lenientPasses = 8

// A pager reads a closed range of a log page by page, as envelopes.
type pager struct {
	hub       *Hub
	log       *shardlog.Log
	next, end uint64
	// skipped is how many offsets just before next hold no record that is
	// ever delivered, as far as it has read.
	skipped uint64
	// publisher is that of the last batch: most have the same as the one
	// before, and share the string.
	publisher string
}

// page appends to pieces the batches of the next page, each with a reference
// of its own; none if the page held no record to deliver.
func (p *pager) page(pieces []Piece) ([]Piece, error) {
	page, err := p.log.Read(p.next, p.hub.cfg.PageBytes, 0)
	if err != nil {
		return pieces, err
	}
	defer page.Release()
	before := p.next
	for i := range page.Batches {
		b := &page.Batches[i]
		if p.skip(b.BaseOffset); p.next == p.end {
			break
		}
		if string(b.Publisher) != p.publisher {
			p.publisher = string(b.Publisher)
		}
		e := p.hub.storedEnvelope(b, p.publisher, p.skipped)
		first := 0
		if p.next > b.BaseOffset {
			first = int(p.next - b.BaseOffset)
		}
		pieces = append(pieces, Piece{Envelope: e, First: first, generation: e.generation()})
		p.next, p.skipped = b.End(), 0
	}
	p.skip(page.Next)
	if p.next == before {
		// The log ends before what was committed to it: it was cut, or it
		// failed and serves only what is durable.
		if err := p.log.Err(); err != nil {
			return pieces, err
		}
		return pieces, fmt.Errorf("log ends at offset %d, expected records up to %d", p.log.Tail(), p.end)
	}
	return pieces, nil
}

// skip steps over offsets that hold no record.
func (p *pager) skip(to uint64) {
	if to = min(to, p.end); to > p.next {
		p.skipped += to - p.next
		p.next = to
	}
}

// storedEnvelope is the envelope of a batch read from a log.
func (h *Hub) storedEnvelope(b *segment.Batch, publisher string, skipped uint64) *Envelope {
	e := h.NewEnvelope(b.Block, Meta{
		BaseOffset:      b.BaseOffset,
		Count:           int(b.Count),
		PayloadBytes:    len(b.Block) - 4 - 4*int(b.Count),
		Skipped:         skipped,
		Publisher:       publisher,
		TimestampMicros: b.TimestampMicros,
	})
	e.made = time.Time{} // its age says nothing about delivery
	return e
}

// A replay brings a subscription from its start to the live batches: the
// closed range of the log before the ring's batches, those, and then whatever
// holes a full queue left meanwhile (broker 7.3). The consumer's goroutine
// owns it.
type replay struct {
	pager
	passes int
	pieces []Piece
}

// startReplay prepares s, which nobody else has seen yet and whose history is
// set, to catch up if it does not start at the tail; the shard's lock is held.
func (s *Subscription) startReplay(log *shardlog.Log) {
	tail := s.shard.tail
	if s.start == tail {
		return
	}
	r := &replay{pager: pager{hub: s.shard.hub, log: log, next: s.start, end: tail}}
	if len(s.history) > 0 {
		r.end = s.history[0].Offset()
	}
	s.replay = r
	s.catching, s.lenient = true, s.policy == Block
}

// catchUp is Poll while the subscription catches up. No pieces and no error
// mean that it has.
func (s *Subscription) catchUp() ([]Piece, error) {
	r := s.replay
	for {
		if r.next < r.end {
			if err := s.ended(); err != nil {
				return nil, s.abandon(err)
			}
			clear(r.pieces)
			pieces, err := r.page(r.pieces[:0])
			r.pieces = pieces
			if err != nil {
				for _, p := range pieces {
					p.Release()
				}
				return nil, s.abandon(s.shard.readError(r.next, err))
			}
			if len(pieces) > 0 {
				return pieces, nil
			}
			continue
		}
		if pieces, more := s.following(r); !more {
			return pieces, nil
		}
	}
}

// following returns what comes after r.next of what is in memory, or sets
// r.end because the log has to fill a hole first. With neither, the
// subscription has caught up.
func (s *Subscription) following(r *replay) (pieces []Piece, hole bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if history := s.history; len(history) > 0 {
		s.history = nil
		r.passed(history)
		return history, false
	}
	n := 0
	for next := r.next; n < len(s.queue); n++ {
		e := s.queue[n].Envelope
		if e.meta.BaseOffset-e.meta.Skipped > next {
			break
		}
		next = e.end()
	}
	switch {
	case n > 0:
		clear(s.taken)
		s.taken = append(s.taken[:0], s.queue[:n]...)
		rest := copy(s.queue, s.queue[n:])
		clear(s.queue[rest:])
		s.queue = s.queue[:rest]
		s.shard.hub.counters.dequeued.Add(uint64(n))
		r.passed(s.taken)
		return s.taken, false
	case len(s.queue) > 0:
		r.end = s.queue[0].Envelope.meta.BaseOffset
	case s.missedTo > r.next:
		r.end = s.missedTo
	default:
		s.catching, s.lenient = false, false
		s.replay = nil
		return nil, false
	}
	r.passes++
	if r.passes > lenientPasses {
		s.lenient = false
	}
	return nil, true
}

// passed moves on behind pieces.
func (r *replay) passed(pieces []Piece) {
	r.next = pieces[len(pieces)-1].Envelope.end()
	r.end, r.skipped = r.next, 0
}

// ended is why no batch is accepted any more.
func (s *Subscription) ended() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end
}

// abandon ends the subscription because what comes next cannot be read; what
// is queued behind it is let go.
func (s *Subscription) abandon(err error) error {
	if end := s.ended(); end != nil {
		err = end
	}
	s.close(err)
	s.replay = nil
	return err
}
