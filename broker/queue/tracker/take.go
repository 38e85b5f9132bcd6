package tracker

import (
	"cmp"
	"slices"
)

// Claim is one record handed out to one worker.
type Claim struct {
	Offset   uint64
	Attempts uint32 // deliveries including this one
	// Fresh: new, neither owed nor reserved before.
	Fresh bool
	// Persist: Attempts must be durable before the hand-out. They are 2 or
	// more, or those of a redriven record, which no position tells of.
	Persist bool
	// Suspect: a handed mark above Offset (Handed is one) must be durable before
	// the hand-out. That is so for first deliveries until the caller says Marked,
	// and in a rebuilt tracker for those below its first tail: they may have been
	// delivered once already without a trace.
	Suspect bool
}

// Take hands out up to limit records to h, claimed until the given time: those
// reserved for h, then those owed, then new ones below readable; each the lowest
// first (broker 10.4). New ones only while fewer than MaxInFlight are unsettled;
// capped says that this stopped it. The claims are appended to dst, in the order
// of their offsets. A record that was handed out as often as it may be is not:
// its dead letter begins, and it is appended to bury.
func (t *Tracker) Take(dst []Claim, bury []uint64, h Holder, limit int, now, until Time, readable uint64) (claims []Claim, burying []uint64, capped bool) {
	if limit <= 0 {
		return dst, bury, false
	}
	first := len(dst)
	hand := handing{t: t, claims: dst, bury: bury, want: first + limit, now: now, until: until, holder: t.holders.hold(h)}
	hand.reserved(h)
	hand.owed()
	capped = hand.fresh(readable)
	t.holders.release(hand.holder)
	slices.SortFunc(hand.claims[first:], func(a, b Claim) int { return cmp.Compare(a.Offset, b.Offset) })
	return hand.claims, hand.bury, capped
}

// handing is one Take.
type handing struct {
	t          *Tracker
	claims     []Claim
	bury       []uint64
	want       int // length of claims to reach
	now, until Time
	holder     holderID
}

func (x *handing) full() bool { return len(x.claims) >= x.want }

func (x *handing) reserved(h Holder) {
	if h.Consumer == "" {
		return
	}
	r := x.t.members[h.member()]
	if r == nil || r.newest != h.Connection {
		return
	}
	for len(r.reserved) > 0 && !x.full() {
		offset := r.reserved[0]
		r.reserved = r.reserved[1:]
		if e, ok := x.t.reservedFor(offset, h.member(), r); ok {
			x.give(offset, e, e, false)
		}
	}
}

func (x *handing) owed() {
	for !x.full() {
		p, ok := x.t.owed.min()
		if !ok {
			return
		}
		x.t.owed.pop()
		if e, ok := x.t.entries[uint64(p)]; ok && e.open() {
			x.give(uint64(p), e, e, false)
		}
	}
}

// fresh hands out new records, and says whether the room for them ran out.
func (x *handing) fresh(readable uint64) (capped bool) {
	t := x.t
	for !x.full() && t.highWater < readable {
		if len(t.entries) >= t.o.MaxInFlight {
			return true
		}
		offset := t.highWater
		x.give(offset, entry{}, t.meet(offset), true)
		t.highWater++
		t.advance()
	}
	return false
}

// give hands out e, whose entry in the map is old, or begins its dead letter.
func (x *handing) give(offset uint64, old, e entry, fresh bool) {
	t := x.t
	if t.exhausted(e.attempts) {
		t.set(offset, old, e.bury(Owed))
		x.bury = append(x.bury, offset)
		return
	}
	e = e.owe()
	e.state, e.holder, e.until, e.since = Claimed, x.holder, x.until, x.now
	e.attempts++
	persist := e.attempts >= 2 || e.is(redriven)
	if persist {
		e.flags |= counted
	}
	t.set(offset, old, e)
	x.claims = append(x.claims, Claim{
		Offset:   offset,
		Attempts: e.attempts,
		Fresh:    fresh,
		Persist:  persist,
		Suspect:  e.attempts == 1 && !e.is(redriven) && (!t.marks || offset < t.firstTail),
	})
}

// meet is the entry of a record that comes into play, with what the life before
// knew of it.
func (t *Tracker) meet(offset uint64) entry {
	if hasKey, ok := t.marked[offset]; ok {
		delete(t.marked, offset)
		e := entry{flags: redriven}
		if hasKey {
			e.flags |= counted
		}
		return e
	}
	if attempts, ok := t.recovered[offset]; ok {
		delete(t.recovered, offset)
		return entry{attempts: attempts, flags: counted}
	}
	if offset < t.handed {
		return entry{attempts: 1}
	}
	return entry{}
}

// unmeet takes a record out of play that has not had its turn.
func (t *Tracker) unmeet(offset uint64, e entry) {
	t.remove(offset, e)
	switch {
	case e.is(redriven):
		t.mark(offset, e.is(counted))
	case e.is(counted):
		t.recovered[offset] = e.attempts
	}
}

// Available tells whether Take could hand out something to a holder for whom
// nothing is reserved, or would begin the dead letter of a new record. A record
// whose dead letter failed is not counted: it waits for a Take, and must not
// cause one.
func (t *Tracker) Available(readable uint64) bool {
	return t.tally.takeable > 0 || t.highWater < readable && len(t.entries) < t.o.MaxInFlight
}

// Untake takes back a hand-out that did not happen: the record is owed to
// everybody, and was not delivered that time. It does nothing if the record was
// handed out again since, is being buried or is not in play, and says so.
func (t *Tracker) Untake(c Claim) (took bool) {
	e, ok := t.entries[c.Offset]
	if !ok || e.state == Burying || e.attempts != c.Attempts || e.attempts == 0 {
		return false
	}
	next := e
	if e.state == Claimed {
		next = e.owe()
	}
	next.attempts--
	t.set(c.Offset, e, next)
	return true
}
