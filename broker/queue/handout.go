package queue

import (
	"context"
	"time"
)

// A handOut is claims on their way to whoever asked for them: what could not be
// read goes back, and what has to be on disk before is written.
type handOut struct {
	fetched
	group *group
	era   uint64 // of the group when they were claimed
	// visibility is how long the claims stand.
	visibility time.Duration

	// Guarded by the group's lock while counts are written:
	counts  int // writes under way
	refused map[uint64]bool
	failure error
	counted chan struct{} // closed when the last of them has ended
}

// run returns the records to hand out, or why there are none. Neither means to
// look again.
func (h *handOut) run(ctx context.Context) ([]Record, error) {
	if err := h.enter(ctx); err != nil || h.moved() {
		return nil, err
	}
	h.settle()
	h.withhold()
	if len(h.records) == 0 {
		h.group.leave(teller{})
		return nil, h.err
	}
	marked := h.write()
	counted := h.counted
	h.group.leave(teller{})
	if counted == nil && marked == nil {
		return h.handed(), nil
	}
	unmarked := h.wait(ctx, counted, marked)
	if err := h.enter(ctx); err != nil || h.moved() {
		return nil, err
	}
	h.keepWritten(unmarked)
	h.group.leave(teller{})
	if len(h.records) == 0 {
		return nil, h.failure
	}
	return h.handed(), nil
}

// enter locks the group. When ctx has ended, everything goes back instead.
func (h *handOut) enter(ctx context.Context) error {
	g := h.group
	err := g.enter(ctx)
	if err == nil && ctx.Err() == nil {
		return nil
	}
	if err != nil {
		g.mu.Lock()
	}
	if g.era == h.era {
		for _, r := range h.records {
			g.untake(r)
		}
		for _, c := range h.back {
			g.tracker.Untake(c)
		}
		_, tail := g.shard.src.Bounds()
		g.wake(tail)
	}
	g.leave(teller{})
	if err == nil {
		err = context.Cause(ctx)
	}
	return err
}

// moved says that all claims are void since they were taken, and unlocks the
// group then.
func (h *handOut) moved() bool {
	if h.group.era == h.era {
		return false
	}
	h.group.leave(teller{})
	return true
}

// settle does what follows from reading: what holds no record is finished, what
// was not read goes back.
func (h *handOut) settle() {
	g := h.group
	g.trim(h.base)
	missing := h.missing
	for i := range h.records {
		r := &h.records[i]
		for len(missing) > 0 && missing[0] < r.Offset {
			g.skip(missing[0])
			missing = missing[1:]
		}
		r.Attempts, r.era = r.claim.Attempts, h.era
		r.SkippedBefore = g.skips.take(r.Offset)
	}
	for _, offset := range missing {
		g.skip(offset)
	}
	for _, c := range h.back {
		g.tracker.Untake(c)
	}
	if len(h.back) > 0 || len(h.missing) > 0 {
		_, tail := g.shard.src.Bounds()
		g.wake(tail)
	}
	h.back = nil
}

// skip finishes an offset that holds no record.
func (g *group) skip(offset uint64) {
	settled := g.tracker.Skip(offset)
	if settled.Duplicate {
		return
	}
	g.skips.add(1, offset+1)
	if settled.Redriven {
		g.finishRedriven(offset, nil)
	}
	g.finished(offset, settled)
}

// withhold leaves out the records that were settled, given up or handed on while
// they were read, of those whose count is to be written: it would stay on disk.
// Their claims stand from now on.
func (h *handOut) withhold() {
	g := h.group
	until := g.shard.store.now() + int64(h.visibility)
	kept := h.records[:0]
	for _, r := range h.records {
		if !r.claim.Persist || g.tracker.Extend(r.Offset, r.Attempts, until) == nil {
			kept = append(kept, r)
		}
	}
	clear(h.records[len(kept):])
	h.records = kept
}

// write makes durable what has to be before the hand-out; marked hears of the
// mark, and is nil where it need not move first.
func (h *handOut) write() (marked wait) {
	g := h.group
	suspect := need{}
	for i := range h.records {
		switch c := h.records[i].claim; {
		case c.Persist:
			if h.counted == nil {
				h.counted = make(chan struct{})
			}
			h.counts++
			g.putCount(c.Offset, c.Attempts, func(err error) { h.wroteCount(c.Offset, err) })
		case c.Suspect || c.Attempts == 1 && !g.cursor.exists:
			suspect.handed = max(suspect.handed, c.Offset+1)
		}
	}
	if suspect.handed > 0 && !(g.cursor.exists && suspect.met(g.cursor.durable)) {
		marked = make(wait, 1)
		suspect.done = marked
		g.await(suspect)
	}
	return marked
}

// wroteCount is the end of the write of a count; the group's lock is held.
func (h *handOut) wroteCount(offset uint64, err error) {
	if err != nil {
		if h.refused == nil {
			h.refused = make(map[uint64]bool)
		}
		h.refused[offset], h.failure = true, err
	}
	if h.counts--; h.counts == 0 {
		close(h.counted)
	}
}

// wait waits for the writes, or for the end of ctx. It returns why the mark was
// not written.
func (h *handOut) wait(ctx context.Context, counted <-chan struct{}, marked wait) (unmarked error) {
	if counted != nil {
		select {
		case <-counted:
		case <-ctx.Done():
			return nil
		}
	}
	if marked != nil {
		return marked.wait(ctx)
	}
	return nil
}

// keepWritten takes back the records whose count or mark is not on disk, and
// leaves out those that were settled, or lapsed, during the write. The claims of
// the others stand from now on.
func (h *handOut) keepWritten(unmarked error) {
	g := h.group
	until := g.shard.store.now() + int64(h.visibility)
	kept := h.records[:0]
	for _, r := range h.records {
		if h.refused[r.Offset] || unmarked != nil && !r.claim.Persist && !(g.cursor.exists && r.Offset < g.cursor.durable.handed) {
			g.tracker.Untake(r.claim)
			g.skips.restore(r.Offset, r.SkippedBefore)
			continue
		}
		if g.tracker.Extend(r.Offset, r.Attempts, until) == nil {
			kept = append(kept, r)
		}
	}
	clear(h.records[len(kept):])
	h.records = kept
	if unmarked != nil {
		h.failure = unmarked
	}
}

// handed counts what is handed out.
func (h *handOut) handed() []Record {
	count := &h.group.shard.store.count
	again := 0
	for i := range h.records {
		if h.records[i].Attempts > 1 {
			again++
		}
	}
	count.delivered.Add(uint64(len(h.records)))
	count.redelivered.Add(uint64(again))
	return h.records
}

// untake takes back a record that was to be handed out. Its count on disk goes
// back too.
func (g *group) untake(r Record) {
	if !g.tracker.Untake(r.claim) {
		return
	}
	g.skips.restore(r.Offset, r.SkippedBefore)
	if r.claim.Persist && g.exclusive == nil && g.ended == nil {
		g.correctCount(r.Offset, r.claim.Attempts)
	}
}

// Unclaim takes back records whose answer could not be sent: they are owed
// again, as if they had not been handed out. What was settled or handed out
// again meanwhile stays as it is.
func (s *Store) Unclaim(r Ref, records []Record) {
	g, err := s.use(r)
	if err != nil {
		return
	}
	defer g.release()
	if err := g.enter(context.Background()); err != nil {
		return
	}
	for _, record := range records {
		if record.era == g.era {
			g.untake(record)
		}
	}
	_, tail := r.Shard.Bounds()
	g.wake(tail)
	g.leave(teller{})
}
