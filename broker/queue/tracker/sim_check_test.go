package tracker

import (
	"errors"
	"slices"
)

// check compares everything there is to see.
func (s *sim) check() {
	same(s, "counts", s.tr.Counts(), s.m.counts())
	same(s, "committed", s.tr.Committed(), s.m.committed)
	same(s, "high water", s.tr.HighWater(), s.m.high)
	same(s, "handed", s.tr.Handed(), max(s.m.high, s.m.handed))
	same(s, "lapsed", s.tr.Lapsed(), s.m.lapsed)
	same(s, "available", s.tr.Available(s.tail), s.m.available(s.tail))
	at, ok := s.tr.Next()
	wantAt, wantOK := s.m.next()
	same(s, "next", at, wantAt)
	same(s, "next", ok, wantOK)
	all := s.m.held()
	held, more := s.tr.Held(nil, 0, 1000)
	sameAll(s, "held", held, all)
	same(s, "more", more, false)
	first, ok := s.tr.First(s.tail)
	if i := slices.IndexFunc(all, func(h Held) bool { return h.Offset == s.m.committed }); s.m.committed >= s.tail {
		same(s, "first", first, Held{Offset: s.m.committed, State: AtTail})
	} else if i >= 0 {
		same(s, "first", first, all[i])
	} else {
		same(s, "first", first, Held{Offset: s.m.committed})
	}
	same(s, "first holds the cursor", ok, s.m.committed < s.tail)
	same(s, "ahead", s.tr.Ahead(), len(s.m.done) > 0)
	same(s, "busy", s.tr.Busy(), s.m.counts().InFlight > 0)
	s.invariants()
}

// invariants are those of the memory.
func (s *sim) invariants() {
	t := s.tr
	refs := map[holderID]int{}
	var n tally
	reserving := map[member]int{}
	for _, e := range t.entries {
		n.state[e.state]++
		if e.timed() {
			n.timed++
		}
		if e.open() {
			n.open++
			if !t.exhausted(e.attempts) {
				n.takeable++
			}
		}
		if e.is(reserved) {
			reserving[t.holders.get(e.holder).member()]++
		}
		if e.holder != 0 {
			refs[e.holder]++
		}
	}
	same(s, "tally", t.tally, n)
	same(s, "holders", len(t.holders.ids), len(refs))
	for id, want := range refs {
		same(s, "holder references", t.holders.slots[id].refs, want)
	}
	for who, r := range t.members {
		same(s, "reserved", r.live, reserving[who])
		if len(r.reserved) > slack(r.live)+1 {
			s.fail("%d reserved listed of %d", len(r.reserved), r.live)
		}
	}
	high := max(t.tally.timed, t.o.MaxInFlight+len(s.dead)+255)
	if t.deadlines.len() > slack(high) || t.owed.len() > slack(high) {
		s.fail("%d deadlines, %d owed", t.deadlines.len(), t.owed.len())
	}
	at := t.committed
	for i, x := range t.ahead.live() {
		if x.from <= at || x.to <= x.from {
			s.fail("span %d of %v, cursor %d", i, t.ahead.live(), t.committed)
		}
		at = x.to
	}
	if n := len(t.ahead.live()); n > len(t.entries)+t.o.MaxInFlight+1 {
		s.fail("%d spans, %d unsettled", n, len(t.entries))
	}
}

// drain finishes everything and looks whether anything is left.
func (s *sim) drain() {
	s.note("drain")
	for rounds := 0; s.m.committed < s.tail || len(s.m.play) > 0; rounds++ {
		if rounds > 10000 {
			s.fail("stuck at %+v", s.tr.Counts())
		}
		s.lapse(1 << 40)
		s.check()
		for len(s.burying) > 0 {
			s.buried(0, true)
			s.check()
		}
		s.take(s.workers[0], 10, 5, s.tail)
		for _, h := range s.m.held() {
			if h.State == Claimed {
				s.ack(h.Offset)
				s.check()
			}
		}
	}
	same(s, "in the end", s.tr.Counts(), Counts{})
	same(s, "marked", len(s.tr.marked), len(s.m.marked))
	if at := s.tr.Committed(); at < s.tail {
		s.fail("cursor at %d of %d", at, s.tail)
	}
	if redriven := s.listed("redriven"); len(redriven) > len(s.m.marked) {
		s.fail("finished, and redriven still: %d", redriven)
	}
}

// answer is the class of a refusal, as the model names it.
func answer(err error) string {
	if err == nil {
		return ""
	}
	if st := (*StaleError)(nil); errors.As(err, &st) {
		if st.Retry {
			return retry
		}
		return stale
	}
	return invalid
}
