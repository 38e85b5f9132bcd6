package tracker

import (
	"maps"
	"slices"
)

// model is the group as the rules describe it, with one map entry for each
// offset that is not simply below the cursor or above everything.
type model struct {
	o                                          Options
	committed, high, handed, firstTail, seeked uint64
	rebuilt, marks                             bool
	done                                       map[uint64]bool // finished at or above committed
	play                                       map[uint64]*rec
	old                                        map[uint64]uint32 // attempts of the life before
	marked                                     map[uint64]bool
	newest                                     map[member]uint64
	lapsed                                     uint64
}

type rec struct {
	state, before           State
	attempts                uint32
	holder                  Holder
	since, until            Time
	reserved, redriven, key bool
	acked, written, voided  bool
	writes                  int
}

func newModel(o Options, s Start) *model {
	m := &model{o: o, committed: s.Committed, high: s.Committed, handed: s.Handed, rebuilt: s.Rebuilt, marks: s.Rebuilt,
		done: map[uint64]bool{}, play: map[uint64]*rec{}, old: maps.Clone(s.Attempts), marked: map[uint64]bool{}, newest: map[member]uint64{}}
	if s.Rebuilt {
		m.firstTail = s.Tail
	}
	for _, x := range s.Redriven {
		m.play[x] = &rec{state: Owed, attempts: s.Attempts[x], key: s.Attempts[x] > 0, redriven: true}
		delete(m.old, x)
	}
	m.settleDown()
	return m
}

// settleDown moves the cursor and the high water over what they may pass.
func (m *model) settleDown() {
	for m.done[m.committed] {
		delete(m.done, m.committed)
		m.committed++
	}
	for m.high = max(m.high, m.committed); m.done[m.high] || m.play[m.high] != nil; m.high++ {
	}
}

func (m *model) spent(r *rec) bool { return m.o.MaxAttempts > 0 && r.attempts >= m.o.MaxAttempts }

func (m *model) sorted(keep func(x uint64, r *rec) bool) (xs []uint64) {
	for x, r := range m.play {
		if keep(x, r) {
			xs = append(xs, x)
		}
	}
	slices.Sort(xs)
	return xs
}

func (r *rec) owe() { r.state, r.reserved, r.holder, r.until = Owed, false, Holder{}, 0 }

func (r *rec) bury(before State) {
	r.before, r.writes, r.acked, r.written, r.voided = before, 1, false, false, false
	if r.reserved {
		r.owe()
	}
	r.state = Burying
}

// first is a record that comes into play, as the life before left it.
func (m *model) first(x uint64) *rec {
	r := &rec{}
	if key, ok := m.marked[x]; ok {
		r.redriven, r.key = true, key
	} else if n, ok := m.old[x]; ok {
		r.attempts, r.key = n, true
	} else if x < m.handed {
		r.attempts = 1
	}
	delete(m.marked, x)
	delete(m.old, x)
	return r
}

func (m *model) take(h Holder, limit int, now, until Time, readable uint64) (claims []Claim, bury []uint64, capped bool) {
	give := func(x uint64, r *rec, fresh bool) {
		if m.spent(r) {
			r.bury(Owed)
			bury = append(bury, x)
			return
		}
		r.state, r.reserved, r.holder, r.since, r.until = Claimed, false, h, now, until
		r.attempts++
		persist := r.attempts > 1 || r.redriven
		r.key = r.key || persist
		suspect := r.attempts == 1 && !r.redriven && (!m.marks || x >= m.handed && x < m.firstTail)
		claims = append(claims, Claim{x, r.attempts, fresh, persist, suspect})
	}
	for _, x := range m.sorted(func(_ uint64, r *rec) bool { return r.reserved && r.holder == h }) {
		if len(claims) < limit {
			give(x, m.play[x], false)
		}
	}
	for _, x := range m.sorted(func(_ uint64, r *rec) bool { return r.state == Owed && !r.reserved }) {
		if len(claims) < limit {
			give(x, m.play[x], false)
		}
	}
	for len(claims) < limit && m.high < readable {
		if len(m.play) >= m.o.MaxInFlight {
			capped = true
			break
		}
		x := m.high
		m.play[x] = m.first(x)
		give(x, m.play[x], true)
		m.settleDown()
	}
	slices.SortFunc(claims, func(a, b Claim) int { return int(a.Offset) - int(b.Offset) })
	return claims, bury, capped
}

func (m *model) lapse(now Time) (bury []uint64) {
	for _, x := range m.sorted(func(_ uint64, r *rec) bool { return m.timed(r) && r.until <= now }) {
		r := m.play[x]
		if r.state != Delayed {
			m.lapsed++
		}
		r.owe()
		if m.spent(r) {
			r.bury(Owed)
			bury = append(bury, x)
		}
	}
	return bury
}

func (m *model) timed(r *rec) bool { return r.state == Claimed || r.state == Delayed || r.reserved }

func (m *model) reclaim(h Holder) {
	if h.Consumer == "" || h.Connection <= m.newest[h.member()] {
		return
	}
	m.newest[h.member()] = h.Connection
	for _, r := range m.play {
		if (r.state == Claimed || r.reserved) && r.holder.member() == h.member() && r.holder.Connection < h.Connection {
			r.state, r.reserved, r.holder = Owed, true, h
		}
	}
}

func (m *model) untake(c Claim) bool {
	r := m.play[c.Offset]
	if r == nil || r.state == Burying || r.attempts != c.Attempts || r.attempts == 0 {
		return false
	}
	r.attempts--
	if r.state == Claimed {
		r.owe()
	}
	return true
}

// answers of a settle: "" is ok.
const (
	dup, invalid, stale, retry = "duplicate", "invalid", "stale", "retry"
)

// where says how an offset that is not in play is answered.
func (m *model) where(x, tail uint64) string {
	switch {
	case x >= tail:
		return invalid
	case m.play[x] != nil:
		return ""
	case x < m.high || m.done[x]:
		return dup
	case x < m.firstTail:
		return ""
	case x < m.seeked:
		return stale
	case m.rebuilt:
		return retry
	}
	return invalid
}

// crowded: one more finished offset ahead of the high water is one too many.
func (m *model) crowded(x uint64) bool {
	runs := 0
	for y := range m.done {
		if y >= m.high && (y == m.high || !m.done[y-1]) {
			runs++
		}
	}
	joins := m.done[x+1] || x > m.committed && m.done[x-1]
	return x != m.high && !joins && runs >= m.o.MaxInFlight
}

func (m *model) finish(x uint64, r *rec) (s Settled) {
	was := m.committed
	delete(m.play, x)
	if x >= m.committed {
		m.done[x] = true
	}
	m.settleDown()
	return Settled{Moved: m.committed > was, Redriven: r.redriven, Counted: r.key}
}

func (m *model) ack(x, tail uint64) (Settled, string) {
	answer := m.where(x, tail)
	r := m.play[x]
	switch {
	case answer == dup:
		return Settled{Duplicate: true}, ""
	case answer != "":
		return Settled{}, answer
	case r == nil && m.crowded(x):
		return Settled{}, retry
	case r == nil:
		return m.finish(x, m.first(x)), ""
	case r.voided:
		return Settled{}, stale
	case r.state == Burying:
		r.acked = true
		return Settled{Burying: true}, ""
	}
	return m.finish(x, r), ""
}

func (m *model) nack(x uint64, attempts uint32, due Time, tail uint64) (bool, string) {
	answer := m.where(x, tail)
	r := m.play[x]
	switch {
	case x >= tail:
		return false, invalid
	case attempts != 0 && (r == nil || r.state != Claimed || r.attempts != attempts):
		return false, stale
	case answer == dup:
		return false, ""
	case answer != "" || r == nil:
		return false, answer
	case r.voided:
		return false, stale
	case r.state == Burying:
		return false, ""
	}
	r.owe()
	if m.spent(r) {
		r.bury(Owed)
		return true, ""
	}
	if due != 0 {
		r.state, r.until = Delayed, due
	}
	return false, ""
}

func (m *model) extend(x uint64, attempts uint32, until Time) string {
	r := m.play[x]
	if r == nil || r.state != Claimed || r.attempts != attempts {
		return stale
	}
	r.until = until
	return ""
}

func (m *model) bury(x, tail uint64) string {
	answer := m.where(x, tail)
	r := m.play[x]
	switch {
	case answer == dup:
		return invalid
	case answer != "":
		return answer
	case r == nil:
		if m.crowded(x) || len(m.play) >= m.o.MaxInFlight {
			return retry
		}
		r = m.first(x)
		r.bury(NotHandedOut)
		m.play[x] = r
		m.settleDown()
	case r.voided:
		return stale
	case r.acked:
		return invalid
	case r.state == Burying && r.writes == 255:
		return retry
	case r.state == Burying:
		r.writes++
	default:
		r.bury(r.state)
	}
	return ""
}

func (m *model) buried(x uint64, ok bool) (s Settled, retract bool) {
	r := m.play[x]
	if r == nil || r.state != Burying {
		return
	}
	r.written = r.written || ok
	if r.writes--; r.writes > 0 {
		return
	}
	ok, retract = r.written, r.written && r.acked
	over := ok || r.acked
	switch {
	case r.voided && x >= m.committed && r.redriven && !over:
		r.owe()
	case r.voided && x >= m.committed:
		s = Settled{Redriven: r.redriven && r.acked, Counted: r.key}
		delete(m.play, x)
		if x < m.high {
			m.play[x] = &rec{state: Owed}
		}
	case over:
		s = m.finish(x, r)
		s.Redriven = s.Redriven && r.acked
	case x < m.committed && !r.redriven:
		s.Counted = r.key
		delete(m.play, x)
	case r.before == NotHandedOut && x >= m.high:
		delete(m.play, x)
		if r.redriven {
			m.marked[x] = r.key
		} else if r.key {
			m.old[x] = r.attempts
		}
	case r.before == Owed || r.before == NotHandedOut:
		r.owe()
	default:
		r.state = r.before
	}
	r.acked, r.voided = false, false
	return s, retract
}

func (m *model) skip(x uint64) Settled {
	r := m.play[x]
	if r == nil {
		return Settled{Duplicate: true}
	}
	if r.state == Burying {
		r.acked = true
		return Settled{Burying: true}
	}
	return m.finish(x, r)
}
