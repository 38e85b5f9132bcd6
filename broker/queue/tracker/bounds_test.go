package tracker

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// What is outdated in the heaps is dropped before it is more than the rest.
func TestHeapsAreBounded(t *testing.T) {
	g := newGroup(t, Options{}, Start{Tail: 50})
	g.take(alice, 50, 0)
	for i := range 20000 {
		x := uint64(i % 50)
		if err := g.Extend(x, 1, Time(10+i)); err != nil {
			t.Fatal(err)
		}
		if n := g.deadlines.len(); n > slack(50) {
			t.Fatalf("%d deadlines of 50", n)
		}
	}
	if at, ok := g.Next(); !ok || at != 10+19950 {
		t.Fatal(at, ok)
	}
	g.lapses(10 + 19979)
	g.counts(20, 30)

	// Owed and not taken, over and over.
	g = newGroup(t, Options{}, Start{Tail: 3})
	g.gets(alice, 3, 0, 0, 1, 2)
	g.nack(0)
	for now := range Time(20000) {
		if _, err := g.Nack(2, 0, now, g.tail); err != nil {
			t.Fatal(err)
		}
		g.lapses(now)
		if n := g.owed.len(); n > slack(3) {
			t.Fatalf("%d owed of 3", n)
		}
	}
	g.gets(bob, 3, 20000, 0, 1, 2)
	g.counts(3, 0)
}

// A rebuilt group takes settles ahead of their delivery as far as they fit.
func TestSettlesAheadAreBounded(t *testing.T) {
	g := newGroup(t, Options{MaxInFlight: 3}, Start{Rebuilt: true, Tail: 100})
	g.ack(10, 20, 30)
	g.answers("a fourth gap", ackOf(g, 40), retry)
	g.answers("a fourth gap", g.Bury(40, 100), retry)
	g.ack(11, 19, 21, 9, 0, 1) // these make none
	if n := len(g.ahead.live()); n != 3 {
		t.Fatalf("%d ranges", n)
	}
	g.gets(alice, 3, 0, 2, 3, 4)
	g.answers("no room in flight", g.Bury(12, 100), retry)
	g.ack(3, 2, 4)
	g.gets(alice, 3, 0, 5, 6, 7)
	g.ack(5, 7, 6)
	g.gets(alice, 3, 0, 8, 12, 13)
	g.ack(12, 40) // the one below the high water does not count
	g.answers("a fourth gap", ackOf(g, 50), retry)
	g.answers("a fourth gap", g.Bury(50, 100), retry)
	g.bury(29)
	if claims, _, capped := g.Take(nil, nil, bob, 9, 0, 10, 100); len(claims) != 0 || !capped {
		t.Fatal(claims, capped)
	}
	g.Buried(29, true)
	g.gets(bob, 9, 0, 14)
}

func TestSpansAgainstASet(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var s spans
		set := map[uint64]bool{}
		cursor := uint64(0)
		for range 400 {
			x := cursor + 1 + rng.Uint64N(60)
			switch rng.IntN(8) {
			case 0: // the cursor is finished, or moved
				if cursor++; rng.IntN(4) == 0 {
					cursor += rng.Uint64N(20)
				}
				want := cursor
				for set[want] {
					want++
				}
				below := 0
				for y := range set {
					if y < cursor {
						below++
					}
				}
				if got := s.below(cursor); got != uint64(below) {
					t.Fatalf("below %d: %d, want %d", cursor, got, below)
				}
				if got := s.pass(cursor); got != want {
					t.Fatalf("pass %d: %d, want %d", cursor, got, want)
				}
				cursor = want
				for y := range set {
					if y < cursor {
						delete(set, y)
					}
				}
			default:
				if joins := set[x-1] || set[x] || set[x+1]; s.joins(x) != joins {
					t.Fatalf("joins %d: %v", x, !joins)
				}
				s.add(x)
				set[x] = true
			}
			var want []span
			for y := cursor; y < cursor+100; y++ {
				if n := len(want); !set[y] {
				} else if n > 0 && want[n-1].to == y {
					want[n-1].to++
				} else {
					want = append(want, span{y, y + 1})
				}
			}
			if !slices.Equal(s.live(), want) {
				t.Fatalf("%v, want %v", s.live(), want)
			}
			at := 0
			for _, w := range want {
				if w.from >= x {
					at++
				}
			}
			if got := s.from(x); got != at {
				t.Fatalf("from %d: %d, want %d", x, got, at)
			}
			end, ok := s.end(x)
			if ok != set[x] || ok && set[end] {
				t.Fatalf("end of %d: %d, %v", x, end, ok)
			}
		}
	}
}

// A heap that was compacted is in order still, and has each item once.
func TestCompactedHeapsAgainstASet(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 8))
		var h heap[deadline]
		set := map[deadline]bool{}
		for range 300 {
			d := deadline{Time(rng.IntN(20)), rng.Uint64N(6)}
			h.push(d)
			set[d] = true
		}
		odd := func(d deadline) bool { return (uint64(d.at)+d.offset+seed)%3 > 0 }
		h.compact(odd)
		var want []deadline
		for d := range set {
			if odd(d) {
				want = append(want, d)
			}
		}
		slices.SortFunc(want, func(a, b deadline) int {
			if a.before(b) {
				return -1
			}
			return 1
		})
		var got []deadline
		for h.len() > 0 {
			d, _ := h.min()
			h.pop()
			got = append(got, d)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	}
}
