package tracker

import (
	"maps"
	"slices"
	"testing"
)

// sim plays a string of bytes as the life of a group, against the tracker and
// against the model, and keeps the disk as a caller would.
type sim struct {
	t       testing.TB
	ops     []byte
	at      int
	log     []line
	o       Options
	tr      *Tracker
	m       *model
	now     Time
	base    uint64
	tail    uint64
	workers []Holder
	last    uint64 // connection
	out     []Claim
	burying []uint64

	// the disk
	keys map[uint64]uint32
	dead map[uint64]string

	// acked is what was acked and must not come again.
	acked map[uint64]bool
}

func (s *sim) byte() int {
	if s.at >= len(s.ops) {
		return 0
	}
	s.at++
	return int(s.ops[s.at-1])
}

// line is what happened; it is put into words if that is of interest.
type line struct {
	format string
	args   []any
}

func (s *sim) note(format string, args ...any) { s.log = append(s.log, line{format, args}) }

func (s *sim) fail(format string, args ...any) {
	s.t.Helper()
	for _, l := range s.log {
		s.t.Logf(l.format, l.args...)
	}
	s.t.Fatalf(format, args...)
}

func same[T comparable](s *sim, what string, got, want T) {
	if got != want {
		s.t.Helper()
		s.fail("%s: got %+v, model %+v", what, got, want)
	}
}

func sameAll[T comparable](s *sim, what string, got, want []T) {
	if !slices.Equal(got, want) {
		s.t.Helper()
		s.fail("%s: got %+v, model %+v", what, got, want)
	}
}

func runSim(t testing.TB, ops []byte) {
	s := &sim{t: t, ops: ops, keys: map[uint64]uint32{}, dead: map[uint64]string{}, acked: map[uint64]bool{}, now: 1}
	s.o = Options{MaxInFlight: []int{1, 3, 8, 40}[s.byte()%4], MaxAttempts: uint32(s.byte() % 5)}
	s.workers = []Holder{{"", "p", 1}, {"a", "p", 2}, {"a", "p", 3}, {"b", "p", 4}, {"a", "q", 5}}
	s.last = 5
	s.tail = uint64(s.byte() % 30)
	s.start(Start{Tail: s.tail})
	for s.at < len(s.ops) {
		s.step()
		s.check()
	}
	s.drain()
}

func (s *sim) start(start Start) {
	s.tr, s.m = New(s.o, start), newModel(s.o, start)
	s.out, s.burying = nil, nil
	s.acked = map[uint64]bool{}
}

// offset picks one in play, or any.
func (s *sim) offset() uint64 {
	b := s.byte()
	if held := s.m.held(); b%4 > 0 && len(held) > 0 {
		return held[s.byte()%len(held)].Offset
	}
	return s.base + uint64(s.byte())%(s.tail-s.base+3)
}

func (s *sim) step() {
	switch op := s.byte() % 40; op {
	case 0, 1, 2, 3, 4, 5:
		h, limit, vis := s.workers[s.byte()%len(s.workers)], s.byte()%7, Time(s.byte())
		s.take(h, limit, vis, s.tail-min(s.tail-s.base, uint64(s.byte()%3)))
	case 6, 7, 8, 9, 10, 11, 12:
		s.ack(s.offset())
	case 13, 14, 15:
		s.nack()
	case 16:
		x, attempts, until := s.offset(), uint32(s.byte()%4), s.now+Time(s.byte())
		s.note("extend %d attempts %d until %d", x, attempts, until)
		same(s, "extend", answer(s.tr.Extend(x, attempts, until)), s.m.extend(x, attempts, until))
	case 17, 18:
		x := s.offset()
		s.note("bury %d", x)
		err := s.tr.Bury(x, s.tail)
		same(s, "bury", answer(err), s.m.bury(x, s.tail))
		if err == nil {
			s.burying = append(s.burying, x)
		}
	case 19, 20, 21:
		if len(s.burying) > 0 {
			s.buried(s.byte()%len(s.burying), s.byte()%4 > 0)
		}
	case 22, 23, 24:
		s.lapse(Time(s.byte()))
	case 25:
		s.lapse(Time(s.byte()) * 1e12)
	case 26:
		s.reclaim()
	case 27:
		if listed := s.listed(""); len(listed) > 0 {
			x := listed[s.byte()%len(listed)]
			s.note("redrive %d", x)
			s.dead[x] = "redriven"
			s.tr.Redrive(x)
			s.m.redrive(x)
			delete(s.acked, x)
		}
	case 28:
		s.seek(s.base + uint64(s.byte())%(s.tail-s.base+1))
	case 29:
		s.trim()
	case 30, 31:
		if len(s.out) > 0 {
			i := s.byte() % len(s.out)
			s.note("untake %+v", s.out[i])
			same(s, "untake", s.tr.Untake(s.out[i]), s.m.untake(s.out[i]))
			s.out = slices.Delete(s.out, i, i+1)
		}
	case 32:
		x := s.offset()
		s.note("skip %d", x)
		settled, want := s.tr.Skip(x), s.m.skip(x)
		same(s, "skip", settled, want)
		s.settled(x, settled)
	case 33, 34, 35, 36:
		s.tail += uint64(s.byte() % 8)
		s.note("tail %d", s.tail)
	case 37:
		s.crash()
	case 38:
		s.note("marked")
		s.tr.Marked()
		s.m.marks = true
	case 39:
		s.last++
		i := s.byte() % len(s.workers)
		s.workers[i].Connection = s.last
		s.note("worker %d connects as %d", i, s.last)
	}
}

func (s *sim) take(h Holder, limit int, vis Time, readable uint64) {
	s.note("take %d as %+v now %d for %d below %d", limit, h, s.now, vis, readable)
	before := map[uint64]State{}
	for _, x := range s.m.held() {
		before[x.Offset] = x.State
	}
	claims, bury, capped := s.tr.Take(nil, nil, h, limit, s.now, s.now+vis, readable)
	wantClaims, wantBury, wantCapped := s.m.take(h, limit, s.now, s.now+vis, readable)
	sameAll(s, "claims", claims, wantClaims)
	sameAll(s, "bury", bury, wantBury)
	same(s, "capped", capped, wantCapped)
	for _, c := range claims {
		if st := before[c.Offset]; st == Claimed || st == Delayed || st == Burying {
			s.fail("handed out %d, which is %v", c.Offset, st)
		}
		if s.acked[c.Offset] {
			s.fail("handed out %d, which was acked", c.Offset)
		}
		if c.Suspect && s.tr.Handed() <= c.Offset {
			s.fail("%d waits for a mark above it; the mark is %d", c.Offset, s.tr.Handed())
		}
		if c.Persist {
			s.keys[c.Offset] = c.Attempts
		}
	}
	s.out = append(s.out, claims...)
	s.burying = append(s.burying, bury...)
}

func (s *sim) ack(x uint64) {
	s.note("ack %d", x)
	settled, err := s.tr.Ack(x, s.tail)
	want, answered := s.m.ack(x, s.tail)
	same(s, "ack", answer(err), answered)
	same(s, "ack", settled, want)
	s.settled(x, settled)
	if err == nil {
		s.acked[x] = true
	}
}

func (s *sim) nack() {
	x, attempts, due := s.offset(), uint32(s.byte()%4), Time(0)
	if s.byte()%2 > 0 {
		due = s.now + Time(s.byte())
	}
	s.note("nack %d attempts %d due %d", x, attempts, due)
	bury, err := s.tr.Nack(x, attempts, due, s.tail)
	want, answered := s.m.nack(x, attempts, due, s.tail)
	same(s, "nack", answer(err), answered)
	same(s, "nack buries", bury, want)
	if bury {
		s.burying = append(s.burying, x)
	}
}

func (s *sim) settled(x uint64, r Settled) {
	if r.Counted {
		delete(s.keys, x)
	}
	if r.Redriven {
		delete(s.dead, x)
	}
}

func (s *sim) buried(i int, ok bool) {
	x := s.burying[i]
	s.burying = slices.Delete(s.burying, i, i+1)
	s.note("buried %d %v", x, ok)
	if ok {
		s.dead[x] = ""
	}
	settled, retract := s.tr.Buried(x, ok)
	want, wantRetract := s.m.buried(x, ok)
	same(s, "buried", settled, want)
	same(s, "retract", retract, wantRetract)
	s.settled(x, settled)
	if retract {
		delete(s.dead, x)
	}
}

func (s *sim) lapse(by Time) {
	s.now += by
	s.note("lapse at %d", s.now)
	bury, want := s.tr.Lapse(s.now, nil), s.m.lapse(s.now)
	slices.Sort(bury)
	sameAll(s, "lapse buries", bury, want)
	s.burying = append(s.burying, bury...)
}

func (s *sim) reclaim() {
	i := s.byte() % len(s.workers)
	if s.byte()%2 > 0 {
		s.last++
		s.workers[i].Connection = s.last
	}
	s.note("reclaim %+v", s.workers[i])
	s.tr.Reclaim(s.workers[i])
	s.m.reclaim(s.workers[i])
}

func (s *sim) seek(to uint64) {
	s.note("seek %d", to)
	s.tr.Seek(to)
	s.m.seek(to)
	s.acked = map[uint64]bool{}
	s.out = nil
	maps.DeleteFunc(s.keys, func(x uint64, _ uint32) bool { return s.dead[x] != "redriven" })
}

func (s *sim) trim() {
	s.base += uint64(s.byte()) % (s.tail - s.base + 1)
	s.note("trim %d", s.base)
	trimmed, redriven := s.tr.TrimBefore(s.base)
	wantTrimmed, wantRedriven := s.m.trim(s.base)
	same(s, "trimmed", trimmed, wantTrimmed)
	sameAll(s, "redriven and trimmed", redriven, wantRedriven)
	for _, x := range redriven {
		delete(s.dead, x)
	}
}

// crash loses what is in memory. Some of the writes under way are on disk.
func (s *sim) crash() {
	s.note("crash")
	for _, x := range s.burying {
		if s.byte()%2 > 0 {
			s.dead[x] = ""
		}
	}
	s.start(Start{
		Committed: s.tr.Committed(),
		Handed:    s.tr.Handed(),
		Rebuilt:   true,
		Tail:      s.tail,
		Attempts:  maps.Clone(s.keys),
		Redriven:  s.listed("redriven"),
	})
}

func (s *sim) listed(value string) (xs []uint64) {
	for x, v := range s.dead {
		if v == value {
			xs = append(xs, x)
		}
	}
	slices.Sort(xs)
	return xs
}
