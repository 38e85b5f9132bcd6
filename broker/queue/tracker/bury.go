package tracker

import "math"

// Bury begins the dead letter of a record, whoever holds it: the caller writes it
// and then says Buried (wire 12.2). It may be called again meanwhile; the record
// is buried when each of the writes has ended. Errors: *StaleError, *InvalidError.
func (t *Tracker) Bury(offset, tail uint64) error {
	if offset >= tail {
		return &InvalidError{Offset: offset, Detail: pastTail}
	}
	e, ok := t.entries[offset]
	switch {
	case ok && e.is(voided):
		return &StaleError{Offset: offset, Detail: beforeSeek}
	case ok && e.is(acked), !ok && t.finished(offset):
		return &InvalidError{Offset: offset, Detail: alreadyEnded}
	case ok && e.state == Burying:
		if e.writes == math.MaxUint8 {
			return &StaleError{Offset: offset, Retry: true, Detail: "its dead letter is being written"}
		}
		next := e
		next.writes++
		t.set(offset, e, next)
		return nil
	case ok:
		t.set(offset, e, e.bury(e.state))
		return nil
	}
	if err := t.unseen(offset); err != nil {
		return err
	}
	if !t.room(offset) || len(t.entries) >= t.o.MaxInFlight {
		return &StaleError{Offset: offset, Retry: true, Detail: noRoom}
	}
	t.add(offset, t.meet(offset).bury(NotHandedOut))
	t.advance()
	return nil
}

// Buried ends a dead letter that Bury, Lapse, Take or Nack began: it was written,
// or not, which leads back to the state before. retract says that an ack came
// meanwhile, so that the dead letter has to be deleted again.
func (t *Tracker) Buried(offset uint64, ok bool) (s Settled, retract bool) {
	e, in := t.entries[offset]
	if !in || e.state != Burying {
		return Settled{}, false
	}
	next := e
	if ok {
		next.flags |= listed
	}
	if next.writes--; next.writes > 0 {
		t.set(offset, e, next)
		return Settled{}, false
	}
	ok = next.is(listed)
	retract = ok && e.is(acked)
	next.flags &^= acked | listed | voided
	switch {
	case e.is(voided) && offset >= t.committed:
		s = t.buriedBeforeSeek(offset, e, next, ok)
	case ok || e.is(acked):
		t.remove(offset, e)
		s = t.finish(offset, e)
		s.Redriven = s.Redriven && e.is(acked)
	case offset < t.committed && !e.is(redriven):
		t.remove(offset, e)
		s.Counted = e.is(counted)
	case e.before == NotHandedOut && offset >= t.highWater:
		t.unmeet(offset, e)
	case e.before == NotHandedOut || e.before == Owed:
		t.set(offset, e, next.owe())
	default:
		next.state = e.before
		t.set(offset, e, next)
	}
	return s, retract
}

// buriedBeforeSeek: the group went back behind the record while its dead letter
// was written, so that it is to be handed out again, dead letter or not.
func (t *Tracker) buriedBeforeSeek(offset uint64, e, next entry, ok bool) (s Settled) {
	if e.is(redriven) && !ok && !e.is(acked) {
		t.set(offset, e, next.owe())
		return s
	}
	s.Redriven = e.is(redriven) && e.is(acked)
	s.Counted = e.is(counted)
	if offset >= t.highWater {
		t.remove(offset, e)
		return s
	}
	t.set(offset, e, entry{state: Owed})
	return s
}
