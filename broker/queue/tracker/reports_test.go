package tracker

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// BR-28: a late nack breaks the accounting.
func TestLateSettlesOfALapsedClaim(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(g *group) error
		want string
		// what it leaves of B's claim
		state State
		ended bool
	}{
		{"ack", func(g *group) error { return ackOf(g, 0) }, "", NotHandedOut, true},
		{"nack of its delivery", func(g *group) error { _, err := g.Nack(0, 1, 0, g.tail); return err }, stale, Claimed, false},
		{"delayed nack of its delivery", func(g *group) error { _, err := g.Nack(0, 1, 99, g.tail); return err }, stale, Claimed, false},
		{"nack", func(g *group) error { _, err := g.Nack(0, 0, 0, g.tail); return err }, "", Owed, false},
		{"extend", func(g *group) error { return g.Extend(0, 1, 99) }, stale, Claimed, false},
		{"dead letter", func(g *group) error { return g.Bury(0, g.tail) }, "", Burying, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			start := func() *group {
				g := newGroup(t, Options{MaxAttempts: 5}, Start{Tail: 1})
				g.gets(alice, 1, 0, 0)
				g.lapses(10)
				g.gets(bob, 1, 10, 0)
				return g
			}
			g := start()
			for range 2 {
				g.answers(c.name, c.do(g), c.want)
				if c.ended {
					g.gone(0)
					g.committed(1)
				} else if h := g.state(0, c.state); h.State == Claimed && (h.Holder != bob || h.Attempts != 2 || h.Until != 20) {
					t.Fatalf("%+v", h)
				}
			}
			g.ack(0)
			for range 2 {
				g.Buried(0, true)
			}
			g.counts(0, 0)
			g.committed(1)

			g = start()
			g.ack(0)
			want := c.want
			if c.name == "dead letter" {
				want = invalid
			}
			for range 2 {
				g.answers(c.name+" after B acked", c.do(g), want)
				g.counts(0, 0)
				g.committed(1)
			}
		})
	}
}

// BR-29: nobody acks, and the group is rebuilt many times meanwhile: each record
// is buried once.
func TestEachRecordIsBuriedOnce(t *testing.T) {
	const records = 1000
	rng := rand.New(rand.NewPCG(29, 0))
	o := Options{MaxInFlight: 200, MaxAttempts: 3}
	tr := New(o, Start{Tail: records})
	keys := map[uint64]uint32{}
	dead := map[uint64]int{}
	now := Time(0)
	for round := 0; tr.Committed() < records; round++ {
		if round > 10*records {
			t.Fatalf("stuck at %d, %+v", tr.Committed(), tr.Counts())
		}
		var claims []Claim
		var bury []uint64
		for i := range 3 {
			claims, bury, _ = tr.Take(claims, bury, Holder{"", "p", uint64(i)}, 40, now, now+100, records)
		}
		for _, c := range claims {
			if c.Persist {
				keys[c.Offset] = c.Attempts
			}
		}
		now += 60
		for _, x := range tr.Lapse(now, bury) {
			dead[x]++
			tr.Buried(x, true)
		}
		if round%30 == 29 && round/30 < 10 {
			tr = New(o, Start{Committed: tr.Committed(), Handed: tr.Handed(), Rebuilt: true, Tail: records, Attempts: keys})
			for x := range dead { // finished ahead of the cursor, which is not on disk
				if x >= tr.Committed() {
					delete(dead, x)
				}
			}
		}
		if rng.IntN(4) == 0 {
			now += 100
		}
	}
	if len(dead) != records {
		t.Fatalf("%d dead letters of %d", len(dead), records)
	}
	for x, n := range dead {
		if n != 1 {
			t.Errorf("%d was buried %d times", x, n)
		}
	}
	if tr.Counts() != (Counts{}) {
		t.Errorf("%+v", tr.Counts())
	}
}

// BR-31: claims that only lapse end in the dead letters without another poll.
func TestLapsesAloneReachTheDeadLetters(t *testing.T) {
	g := newGroup(t, Options{MaxAttempts: 5}, Start{Tail: 100})
	now := Time(0)
	for delivery := range uint32(5) {
		for _, c := range g.take(alice, 100, now) {
			if c.Attempts != delivery+1 {
				t.Fatalf("%+v", c)
			}
		}
		g.counts(100, 0)
		if at, ok := g.Next(); !ok || at != now+10 {
			t.Fatal(at, ok)
		}
		now += 10
		if delivery < 4 {
			g.lapses(now)
			g.counts(0, 100)
		}
	}
	bury := g.Lapse(now+60e9, nil)
	if len(bury) != 100 || g.Lapsed() != 500 {
		t.Fatal(len(bury), g.Lapsed())
	}
	g.counts(100, 0)
	if _, ok := g.Next(); ok {
		t.Fatal("something ends by itself")
	}
	for _, x := range bury {
		g.Buried(x, true)
	}
	g.counts(0, 0)
	g.committed(100)
}

// A dead letter that cannot be written is tried again by the next poll, and not
// by itself.
func TestFailedDeadLettersAreTriedByPolls(t *testing.T) {
	g := newGroup(t, Options{MaxAttempts: 1}, Start{Tail: 1})
	g.gets(alice, 1, 0, 0)
	g.lapses(10, 0)
	for range 3 {
		g.Buried(0, false)
		g.counts(0, 1)
		g.lapses(1000)
		if _, ok := g.Next(); ok || g.Available(1) {
			t.Fatal("tried by itself")
		}
		if claims, bury, _ := g.Take(nil, nil, bob, 5, 20, 30, 1); len(claims) > 0 || !slices.Equal(bury, []uint64{0}) {
			t.Fatal(claims, bury)
		}
	}
	g.Buried(0, true)
	g.committed(1)
}

// BR-30: a rebuilt group gives up what was handed out often enough, without
// another delivery; so does a nack.
func TestTheLimitCountsFormerLives(t *testing.T) {
	g := newGroup(t, Options{MaxAttempts: 3}, Start{Rebuilt: true, Handed: 3, Tail: 3, Attempts: map[uint64]uint32{0: 3, 1: 2}})
	claims, bury, _ := g.Take(nil, nil, alice, 9, 0, 10, 3)
	if !slices.Equal(offsets(claims), []uint64{1, 2}) || !slices.Equal(bury, []uint64{0}) {
		t.Fatal(claims, bury)
	}
	g.state(0, Burying)
	if bury, err := g.Nack(1, 3, 99, 3); err != nil || !bury {
		t.Fatal(bury, err)
	}
	if bury, err := g.Nack(2, 2, 99, 3); err != nil || bury {
		t.Fatal(bury, err)
	}
	g.counts(3, 0)
	if _, err := g.Nack(2, 2, 0, 3); answer(err) != stale {
		t.Fatal("the delivery has ended")
	}
}

// BR-35: an ack in the instant of the lapse. Whichever comes first, the record is
// finished, and not handed out after.
func TestAckInTheInstantOfTheLapse(t *testing.T) {
	for _, taken := range []bool{false, true} {
		for _, lapsed := range []bool{false, true} {
			g := newGroup(t, Options{MaxAttempts: 1 + 4*uint32(btoi(taken))}, Start{Tail: 1})
			g.gets(alice, 1, 0, 0)
			var bury []uint64
			if lapsed {
				bury = g.Lapse(10, nil)
			}
			if lapsed && taken {
				g.gets(bob, 1, 10, 0)
			}
			if g.ack(0); !lapsed {
				bury = g.Lapse(10, nil)
			}
			for _, x := range bury {
				if _, retract := g.Buried(x, true); !retract {
					t.Fatal("the dead letter stays")
				}
			}
			g.gets(bob, 1, 10)
			g.counts(0, 0)
			g.committed(1)
			if _, ok := g.Next(); ok {
				t.Fatal("something ends by itself")
			}
		}
	}
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// The clock jumps: what is due lapses, the rest stands, and nothing is stuck.
func TestTheClockJumps(t *testing.T) {
	const hour = Time(3600e9)
	g := newGroup(t, Options{MaxInFlight: 2000}, Start{Tail: 2000})
	for i := range 1000 {
		if claims, _, _ := g.Take(nil, nil, alice, 1, 0, Time(i+1)*hour/100, 2000); len(claims) != 1 {
			t.Fatal(claims)
		}
	}
	if _, err := g.Nack(999, 1, math.MaxInt64, 2000); err != nil {
		t.Fatal(err)
	}
	g.lapses(hour)
	g.counts(900, 100)
	g.lapses(hour - 1)
	g.lapses(0)
	g.counts(900, 100)
	if at, ok := g.Next(); !ok || at != hour+hour/100 {
		t.Fatal(at, ok)
	}
	g.lapses(1000 * hour)
	g.counts(1, 999)
	if at, ok := g.Next(); !ok || at != math.MaxInt64 {
		t.Fatal(at, ok)
	}
	g.lapses(math.MaxInt64)
	g.counts(0, 1000)
	if g.Lapsed() != 999 {
		t.Fatal(g.Lapsed())
	}
	claims := g.take(bob, 2000, math.MaxInt64-10)
	if len(claims) != 2000 || claims[0].Attempts != 2 || claims[1999].Attempts != 1 {
		t.Fatal(len(claims))
	}
}
