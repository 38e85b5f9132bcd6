package tracker

type flags uint8

const (
	reserved flags = 1 << iota // owed to its holder alone, until the claim it was would have lapsed
	redriven                   // its dead-letter key says that it is still owed
	counted                    // it may have an attempts key
	acked                      // burying: finished by an ack meanwhile
	listed                     // burying: one of the writes succeeded
	voided                     // burying: handed out before a seek
)

// entry is one unsettled record. There may be very many: it has no pointers, and
// its size is watched by a test.
type entry struct {
	until    Time // end of the claim, of the delay or of the reservation
	since    Time // last hand-out
	attempts uint32
	holder   holderID
	state    State
	before   State // burying: where a failed write leads back; NotHandedOut: out of play
	writes   uint8 // burying: dead letters under way
	flags    flags
}

func (e *entry) is(f flags) bool { return e.flags&f != 0 }

// timed: it moves by itself when its time has come.
func (e *entry) timed() bool {
	return e.state == Claimed || e.state == Delayed || e.is(reserved)
}

// open: owed to whoever comes.
func (e *entry) open() bool { return e.state == Owed && !e.is(reserved) }

// owe is e, owed to whoever comes.
func (e entry) owe() entry {
	e.state, e.holder, e.until = Owed, 0, 0
	e.flags &^= reserved
	return e
}

// bury is e with its first dead letter under way. It comes back as before if that
// fails.
func (e entry) bury(before State) entry {
	if before == Owed || before == NotHandedOut {
		e = e.owe()
	}
	e.state, e.before, e.writes = Burying, before, 1
	e.flags &^= acked | listed | voided
	return e
}

// tally counts entries.
type tally struct {
	state    [states]int
	timed    int
	open     int
	takeable int // open, and not at the limit of attempts
}

func (t *Tracker) count(e *entry, by int) {
	t.tally.state[e.state] += by
	if e.timed() {
		t.tally.timed += by
	}
	if e.open() {
		t.tally.open += by
		if !t.exhausted(e.attempts) {
			t.tally.takeable += by
		}
	}
}

// add puts a record in play.
func (t *Tracker) add(offset uint64, e entry) {
	t.set(offset, entry{}, e)
}

// set replaces the entry of a record in play.
func (t *Tracker) set(offset uint64, old, e entry) {
	if e.holder != 0 && e.holder != old.holder {
		t.holders.again(e.holder)
	}
	if old.state != NotHandedOut {
		t.leave(&old, &e)
	}
	t.count(&e, +1)
	t.entries[offset] = e
	if e.timed() && (!old.timed() || old.until != e.until) {
		t.deadlines.push(deadline{e.until, offset})
		if t.deadlines.len() > slack(t.tally.timed) {
			t.deadlines.compact(t.due)
		}
	}
	if e.open() && !old.open() {
		t.owed.push(place(offset))
		if t.owed.len() > slack(t.tally.open) {
			t.owed.compact(t.isOpen)
		}
	}
}

// remove takes a record out of play.
func (t *Tracker) remove(offset uint64, e entry) {
	t.leave(&e, &entry{})
	delete(t.entries, offset)
}

func (t *Tracker) leave(old, next *entry) {
	t.count(old, -1)
	if old.is(reserved) && !(next.is(reserved) && next.holder == old.holder) {
		t.unreserve(old.holder)
	}
	if old.holder != next.holder {
		t.holders.release(old.holder)
	}
}

func (t *Tracker) due(d deadline) bool {
	e, ok := t.entries[d.offset]
	return ok && e.timed() && e.until == d.at
}

func (t *Tracker) isOpen(p place) bool {
	e, ok := t.entries[uint64(p)]
	return ok && e.open()
}
