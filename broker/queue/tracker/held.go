package tracker

import "slices"

// Held is one unsettled record, for a person to read.
type Held struct {
	Offset   uint64
	State    State
	Attempts uint32 // how often it was handed out
	// Holder is who holds it (Claimed), or for whom it is Reserved.
	Holder Holder
	// Since is when it was last handed out, 0 if not since the claims were built.
	Since Time
	// Until is the end of the claim, of the delay or of the reservation, or 0.
	Until Time
	// Reserved: owed to Holder alone until Until (Reclaim).
	Reserved bool
	// Redriven: put back in play from the dead letters.
	Redriven bool
}

// Held appends the unsettled records at and above from to dst, ascending, at most
// limit; more says that there are others. It sorts all of them: it is for people.
func (t *Tracker) Held(dst []Held, from uint64, limit int) (held []Held, more bool) {
	offsets := make([]uint64, 0, len(t.entries))
	for offset := range t.entries {
		if offset >= from {
			offsets = append(offsets, offset)
		}
	}
	slices.Sort(offsets)
	if limit = max(limit, 0); len(offsets) > limit {
		offsets, more = offsets[:limit], true
	}
	for _, offset := range offsets {
		dst = append(dst, t.describe(offset, t.entries[offset]))
	}
	return dst, more
}

// First is the record that holds the cursor, and its state. At the tail nothing
// does: State is AtTail and ok false.
func (t *Tracker) First(tail uint64) (h Held, ok bool) {
	if t.committed >= tail {
		return Held{Offset: t.committed, State: AtTail}, false
	}
	if e, in := t.entries[t.committed]; in {
		return t.describe(t.committed, e), true
	}
	return Held{Offset: t.committed, State: NotHandedOut}, true
}

func (t *Tracker) describe(offset uint64, e entry) Held {
	h := Held{
		Offset:   offset,
		State:    e.state,
		Attempts: e.attempts,
		Since:    e.since,
		Reserved: e.is(reserved),
		Redriven: e.is(redriven),
	}
	if e.timed() {
		h.Until = e.until
		h.Holder = t.holders.get(e.holder)
	}
	return h
}
