package tracker

// Settled is what the caller has to do for a record that was settled.
type Settled struct {
	Moved     bool // Committed rose
	Redriven  bool // its dead-letter key has to go
	Counted   bool // it has an attempts key to delete
	Duplicate bool // it was finished before
	// Burying: its dead letter is being written; it is finished when that has
	// ended (Buried).
	Burying bool
}

const (
	pastTail     = "past the tail of the log"
	beforeSeek   = "its claim ended with a seek of the group"
	notYet       = "not handed out since the claims were rebuilt"
	neverHanded  = "never handed out"
	noRoom       = "too many settled ahead of their delivery"
	notStanding  = "that delivery's claim does not stand"
	alreadyEnded = "already finished"
)

// Ack finishes a record, whoever holds it (wire 12.2). A record that is being
// buried is finished when its dead letter has ended, and Buried then says to
// retract that. Finished before is no error. Errors: *StaleError, *InvalidError.
func (t *Tracker) Ack(offset, tail uint64) (Settled, error) {
	if offset >= tail {
		return Settled{}, &InvalidError{Offset: offset, Detail: pastTail}
	}
	if e, ok := t.entries[offset]; ok {
		if e.is(voided) {
			return Settled{}, &StaleError{Offset: offset, Detail: beforeSeek}
		}
		return t.settle(offset, e), nil
	}
	if t.finished(offset) {
		return Settled{Duplicate: true}, nil
	}
	if err := t.unseen(offset); err != nil {
		return Settled{}, err
	}
	if !t.room(offset) {
		return Settled{}, &StaleError{Offset: offset, Retry: true, Detail: noRoom}
	}
	return t.finish(offset, t.meet(offset)), nil
}

// Skip finishes a record that was handed out and turned out not to be one
// (broker 10.4). What is not in play stays as it is.
func (t *Tracker) Skip(offset uint64) Settled {
	e, ok := t.entries[offset]
	if !ok {
		return Settled{Duplicate: true}
	}
	return t.settle(offset, e)
}

func (t *Tracker) settle(offset uint64, e entry) Settled {
	if e.state == Burying {
		next := e
		next.flags |= acked
		t.set(offset, e, next)
		return Settled{Burying: true}
	}
	t.remove(offset, e)
	return t.finish(offset, e)
}

// finish settles e, which is out of play by now.
func (t *Tracker) finish(offset uint64, e entry) Settled {
	s := Settled{Redriven: e.is(redriven), Counted: e.is(counted)}
	switch {
	case offset < t.committed:
		return s
	case offset == t.committed:
		t.committed = t.ahead.pass(offset + 1)
		s.Moved = true
	default:
		t.ahead.add(offset)
	}
	if t.committed > t.highWater || offset == t.highWater {
		t.advance()
	}
	return s
}

// unseen says what to answer about an offset that is neither finished nor in
// play; nil is that it may be settled all the same (wire 12.2).
func (t *Tracker) unseen(offset uint64) error {
	switch {
	case offset < t.firstTail:
		return nil
	case offset < t.seekEnd:
		return &StaleError{Offset: offset, Detail: beforeSeek}
	case t.rebuilt:
		return &StaleError{Offset: offset, Retry: true, Detail: notYet}
	}
	return &InvalidError{Offset: offset, Detail: neverHanded}
}

// room: one more may be finished ahead of the high water.
func (t *Tracker) room(offset uint64) bool {
	return offset == t.highWater || t.ahead.joins(offset) || t.ahead.from(t.highWater) < t.o.MaxInFlight
}

// Nack hands a record back: owed at once, or delayed until due. At the limit of
// attempts its dead letter begins instead: bury. With attempts it is refused
// unless that delivery's claim stands. Finished before is no error. Errors:
// *StaleError, *InvalidError (wire 12.2).
func (t *Tracker) Nack(offset uint64, attempts uint32, due Time, tail uint64) (bury bool, err error) {
	if offset >= tail {
		return false, &InvalidError{Offset: offset, Detail: pastTail}
	}
	e, ok := t.entries[offset]
	switch {
	case attempts != 0 && !(ok && e.state == Claimed && e.attempts == attempts):
		return false, &StaleError{Offset: offset, Detail: notStanding}
	case !ok && t.finished(offset):
		return false, nil
	case !ok:
		return false, t.unseen(offset)
	case e.is(voided):
		return false, &StaleError{Offset: offset, Detail: beforeSeek}
	case e.state == Burying:
		return false, nil
	}
	if t.exhausted(e.attempts) {
		t.set(offset, e, e.bury(Owed))
		return true, nil
	}
	next := e.owe()
	if due != 0 {
		next.state, next.until = Delayed, due
	}
	t.set(offset, e, next)
	return false, nil
}

// Extend moves the end of a delivery's claim, while it stands. Error: *StaleError
// (wire 12.2).
func (t *Tracker) Extend(offset uint64, attempts uint32, until Time) error {
	e, ok := t.entries[offset]
	if !ok || e.state != Claimed || e.attempts != attempts {
		return &StaleError{Offset: offset, Detail: notStanding}
	}
	next := e
	next.until = until
	t.set(offset, e, next)
	return nil
}
