package tracker

import "slices"

// Seek moves the cursor, either way. All claims end: what was handed out is as if
// it had not been, and settles of it are stale until it is handed out again. What
// is redriven stays owed. Dead letters under way end as they will; their records
// are handed out again where the group went back behind them (wire 12.2). The
// attempts keys at and above the new position are void too, but for those of
// redriven records.
func (t *Tracker) Seek(to uint64) {
	t.seekEnd = max(t.seekEnd, t.highWater, t.firstTail)
	t.firstTail, t.handed = 0, 0
	t.committed, t.highWater = to, to
	t.ahead.clear()
	t.recovered = nil
	t.deadlines.clear()
	for offset, e := range t.entries {
		switch {
		case e.state == Burying:
			next := e
			if e.before != NotHandedOut {
				next.before, next.holder = Owed, 0
			}
			if offset >= to {
				next.flags |= voided
			}
			t.set(offset, e, next)
		case e.is(redriven):
			t.set(offset, e, e.owe())
		default:
			t.remove(offset, e)
		}
	}
	for offset, hasKey := range t.marked {
		if offset < to {
			delete(t.marked, offset)
			t.add(offset, redrivenEntry(hasKey))
		}
	}
	t.advance()
}

// TrimBefore finishes everything below base: retention has taken the records.
// trimmed counts those of them that the cursor had not passed and nobody had
// finished; redriven are those of which the dead-letter key has to go, ascending.
// Dead letters under way end as they will.
func (t *Tracker) TrimBefore(base uint64) (trimmed uint64, redriven []uint64) {
	redriven = t.dropBelow(base)
	if base <= t.committed {
		return 0, redriven
	}
	trimmed = base - t.committed - t.ahead.below(base)
	t.committed = t.ahead.pass(base)
	t.advance()
	return trimmed, redriven
}

func (t *Tracker) dropBelow(base uint64) (dropped []uint64) {
	for offset, e := range t.entries {
		if offset >= base || e.state == Burying {
			continue
		}
		if e.is(redriven) {
			dropped = append(dropped, offset)
		}
		t.remove(offset, e)
	}
	for offset := range t.marked {
		if offset < base {
			dropped = append(dropped, offset)
			delete(t.marked, offset)
		}
	}
	for offset := range t.recovered {
		if offset < base {
			delete(t.recovered, offset)
		}
	}
	slices.Sort(dropped)
	return dropped
}

// Redrive puts back a record from the dead letters: owed, and as if never handed
// out. If it is in play it stays as it is; if its turn is still to come it waits
// for that (wire 12.2). Either way its dead-letter key goes when it is finished.
func (t *Tracker) Redrive(offset uint64) {
	if e, ok := t.entries[offset]; ok {
		next := e
		next.flags |= redriven
		next.flags &^= listed // as far as it was: a write still under way decides
		t.set(offset, e, next)
		return
	}
	if t.finished(offset) {
		t.add(offset, redrivenEntry(false))
		return
	}
	_, hasKey := t.recovered[offset]
	t.mark(offset, hasKey)
	delete(t.recovered, offset)
}

func redrivenEntry(hasKey bool) entry {
	e := entry{state: Owed, flags: redriven}
	if hasKey {
		e.flags |= counted
	}
	return e
}

// mark remembers that a record is redriven whose turn is still to come.
func (t *Tracker) mark(offset uint64, hasKey bool) {
	if t.marked == nil {
		t.marked = make(map[uint64]bool)
	}
	t.marked[offset] = t.marked[offset] || hasKey
}
