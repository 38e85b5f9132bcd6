package tracker

import (
	"maps"
	"slices"
)

func (m *model) trim(base uint64) (trimmed uint64, keys []uint64) {
	for x, r := range m.play {
		if x < base && r.state != Burying {
			if r.redriven {
				keys = append(keys, x)
			}
			delete(m.play, x)
		}
	}
	for x := range m.marked {
		if x < base {
			keys = append(keys, x)
			delete(m.marked, x)
		}
	}
	for ; m.committed < base; m.committed++ {
		if !m.done[m.committed] {
			trimmed++
		}
		delete(m.done, m.committed)
	}
	maps.DeleteFunc(m.old, func(x uint64, _ uint32) bool { return x < base })
	m.settleDown()
	slices.Sort(keys)
	return trimmed, keys
}

func (m *model) redrive(x uint64) {
	if r := m.play[x]; r != nil {
		r.redriven, r.written = true, false
	} else if x < m.high || m.done[x] {
		m.play[x] = &rec{state: Owed, redriven: true}
	} else {
		m.marked[x] = m.marked[x] || m.old[x] > 0
		delete(m.old, x)
	}
}

func (m *model) seek(to uint64) {
	m.seeked = max(m.seeked, m.high, m.firstTail)
	m.firstTail, m.handed, m.committed, m.high = 0, 0, to, to
	m.done, m.old = map[uint64]bool{}, map[uint64]uint32{}
	for x, r := range m.play {
		switch {
		case r.state == Burying:
			if r.before != NotHandedOut {
				r.before = Owed
			}
			r.voided = r.voided || x >= to
		case r.redriven:
			r.owe()
		default:
			delete(m.play, x)
		}
	}
	for x, key := range m.marked {
		if x < to {
			m.play[x] = &rec{state: Owed, redriven: true, key: key}
			delete(m.marked, x)
		}
	}
	m.settleDown()
}

func (m *model) counts() (c Counts) {
	for _, r := range m.play {
		switch r.state {
		case Claimed:
			c.Claimed++
		case Delayed:
			c.Delayed++
		case Burying:
			c.Burying++
		case Owed:
			c.Owed++
		}
	}
	c.InFlight = c.Claimed + c.Delayed + c.Burying
	return c
}

func (m *model) next() (at Time, ok bool) {
	for _, r := range m.play {
		if m.timed(r) && (!ok || r.until < at) {
			at, ok = r.until, true
		}
	}
	return at, ok
}

func (m *model) available(readable uint64) bool {
	return m.high < readable && len(m.play) < m.o.MaxInFlight ||
		len(m.sorted(func(_ uint64, r *rec) bool { return r.state == Owed && !r.reserved && !m.spent(r) })) > 0
}

func (m *model) held() (all []Held) {
	for _, x := range m.sorted(func(uint64, *rec) bool { return true }) {
		r := m.play[x]
		h := Held{Offset: x, State: r.state, Attempts: r.attempts, Since: r.since, Reserved: r.reserved, Redriven: r.redriven}
		if m.timed(r) {
			h.Until, h.Holder = r.until, r.holder
		}
		all = append(all, h)
	}
	return all
}
