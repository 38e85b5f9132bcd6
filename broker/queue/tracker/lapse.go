package tracker

// Lapse moves what is due at now: claims, reservations and delayed nacks become
// owed to everybody; at the limit of attempts their dead letter begins, and they
// are appended to bury, the earliest deadline first (broker 10.4).
func (t *Tracker) Lapse(now Time, bury []uint64) []uint64 {
	for {
		d, ok := t.deadlines.min()
		if !ok || d.at > now {
			return bury
		}
		t.deadlines.pop()
		if !t.due(d) {
			continue
		}
		e := t.entries[d.offset]
		if e.state != Delayed {
			t.lapsed++
		}
		if t.exhausted(e.attempts) {
			t.set(d.offset, e, e.bury(Owed))
			bury = append(bury, d.offset)
		} else {
			t.set(d.offset, e, e.owe())
		}
	}
}

// Next is when Lapse next has something to do; not ok: nothing ends by itself.
func (t *Tracker) Next() (at Time, ok bool) {
	for {
		d, ok := t.deadlines.min()
		if !ok || t.due(d) {
			return d.at, ok
		}
		t.deadlines.pop()
	}
}
