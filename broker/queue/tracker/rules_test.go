package tracker

import (
	"fmt"
	"slices"
	"testing"
)

// What is answered about an offset, by what the group knows of it (broker 10.3,
// wire 12.2).
func TestAnswersToSettles(t *testing.T) {
	fresh := func(t *testing.T) *group {
		g := newGroup(t, Options{}, Start{Committed: 10, Tail: 30})
		g.gets(alice, 5, 0, 10, 11, 12, 13, 14)
		g.ack(10, 12)
		g.nack(13)
		if _, err := g.Nack(14, 0, 50, g.tail); err != nil {
			t.Fatal(err)
		}
		return g
	}
	rebuilt := func(t *testing.T) *group {
		g := newGroup(t, Options{}, Start{Committed: 10, Rebuilt: true, Tail: 20})
		g.tail = 30
		return g
	}
	sought := func(t *testing.T) *group {
		g := rebuilt(t)
		g.gets(alice, 15, 0, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24)
		g.Seek(12)
		return g
	}
	soughtUnpolled := func(t *testing.T) *group {
		g := rebuilt(t)
		g.Seek(12)
		g.Seek(11)
		return g
	}
	burying := func(t *testing.T) *group {
		g := fresh(t)
		g.bury(11)
		return g
	}
	for _, c := range []struct {
		name             string
		group            func(t *testing.T) *group
		offset           uint64
		ack, nack, late  string // late: nack with attempts 1
		extend, deadLett string // extend with attempts 1
	}{
		{"claimed", fresh, 11, "", "", "", "", ""},
		{"owed", fresh, 13, "", "", stale, stale, ""},
		{"delayed", fresh, 14, "", "", stale, stale, ""},
		{"burying", burying, 11, "", "", stale, stale, ""},
		{"below the cursor", fresh, 5, "", "", stale, stale, invalid},
		{"just finished", fresh, 10, "", "", stale, stale, invalid},
		{"finished ahead", fresh, 12, "", "", stale, stale, invalid},
		{"never handed out", fresh, 15, invalid, invalid, stale, stale, invalid},
		{"last of the log", fresh, 29, invalid, invalid, stale, stale, invalid},
		{"tail", fresh, 30, invalid, invalid, invalid, stale, invalid},
		{"past the tail", fresh, 99, invalid, invalid, invalid, stale, invalid},
		{"rebuilt, before its first tail", rebuilt, 10, "", "", stale, stale, ""},
		{"rebuilt, last before its first tail", rebuilt, 19, "", "", stale, stale, ""},
		{"rebuilt, at its first tail", rebuilt, 20, retry, retry, stale, stale, retry},
		{"rebuilt, tail", rebuilt, 30, invalid, invalid, invalid, stale, invalid},
		{"sought, below", sought, 11, "", "", stale, stale, invalid},
		{"sought, at", sought, 12, stale, stale, stale, stale, stale},
		{"sought, last handed out", sought, 24, stale, stale, stale, stale, stale},
		{"sought, above", sought, 25, retry, retry, stale, stale, retry},
		{"sought twice, first tail", soughtUnpolled, 19, stale, stale, stale, stale, stale},
		{"sought twice, above", soughtUnpolled, 20, retry, retry, stale, stale, retry},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, what := range []struct {
				name, want string
				do         func(g *group) error
			}{
				{"ack", c.ack, func(g *group) error { _, err := g.Ack(c.offset, g.tail); return err }},
				{"nack", c.nack, func(g *group) error { _, err := g.Nack(c.offset, 0, 0, g.tail); return err }},
				{"late nack", c.late, func(g *group) error { _, err := g.Nack(c.offset, 1, 0, g.tail); return err }},
				{"extend", c.extend, func(g *group) error { return g.Extend(c.offset, 1, 99) }},
				{"dead letter", c.deadLett, func(g *group) error { return g.Bury(c.offset, g.tail) }},
			} {
				g := c.group(t)
				before := fmt.Sprint(g.Held(nil, 0, 100))
				err := what.do(g)
				g.answers(what.name, err, what.want)
				if after := fmt.Sprint(g.Held(nil, 0, 100)); err != nil && after != before {
					t.Errorf("%s was refused, and changed %s to %s", what.name, before, after)
				}
			}
		})
	}
}

func TestRefusalsAreSentences(t *testing.T) {
	g := newGroup(t, Options{}, Start{Tail: 5})
	_, past := g.Ack(7, 5)
	_, never := g.Ack(2, 5)
	g.gets(alice, 1, 0, 0)
	late := g.Extend(0, 2, 9)
	g.ack(0)
	again := g.Bury(0, 5)
	for _, c := range []struct {
		err  error
		want string
	}{
		{past, "offset 7: past the tail of the log"},
		{never, "offset 2: never handed out"},
		{late, "stale claim on offset 0: that delivery's claim does not stand"},
		{again, "offset 0: already finished"},
	} {
		if c.err == nil || c.err.Error() != c.want {
			t.Errorf("%v, want %s", c.err, c.want)
		}
	}
}

func TestAckSaysWhatFollows(t *testing.T) {
	g := newGroup(t, Options{}, Start{Committed: 5, Handed: 7, Rebuilt: true, Tail: 12, Attempts: map[uint64]uint32{6: 3, 9: 2, 2: 4}, Redriven: []uint64{2, 10}})
	for _, c := range []struct {
		offset    uint64
		want      Settled
		committed uint64
	}{
		{9, Settled{Counted: true}, 5}, // not handed out since, and ahead of a gap
		{10, Settled{Redriven: true}, 5},
		{8, Settled{}, 5},
		{5, Settled{Moved: true}, 6},
		{2, Settled{Redriven: true, Counted: true}, 6}, // beside the cursor
		{2, Settled{Duplicate: true}, 6},
		{6, Settled{Moved: true, Counted: true}, 7},
		{7, Settled{Moved: true}, 11},
		{7, Settled{Duplicate: true}, 11},
	} {
		s, err := g.Ack(c.offset, g.tail)
		if err != nil || s != c.want || g.Committed() != c.committed {
			t.Fatalf("ack %d: %+v, %v, committed %d; want %+v, %d", c.offset, s, err, g.Committed(), c.want, c.committed)
		}
		if g.Ahead() != (c.committed < 11) {
			t.Fatalf("ack %d: ahead %v", c.offset, g.Ahead())
		}
	}
	g.gets(alice, 10, 0, 11)
	if len(g.recovered)+len(g.marked) > 0 {
		t.Fatal("remembers what has had its turn")
	}
}

func TestAttemptsAndWhatMustBeDurable(t *testing.T) {
	claim := func(offset uint64, attempts uint32, marks string) Claim {
		has := func(c rune) bool { return slices.Contains([]rune(marks), c) }
		return Claim{Offset: offset, Attempts: attempts, Fresh: has('f'), Persist: has('p'), Suspect: has('s')}
	}
	same := func(t *testing.T, got []Claim, want ...Claim) {
		t.Helper()
		if !slices.Equal(got, want) {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	}
	t.Run("first life", func(t *testing.T) {
		g := newGroup(t, Options{}, Start{Tail: 10})
		first := g.take(alice, 2, 0)
		same(t, first, claim(0, 1, "fs"), claim(1, 1, "fs"))
		g.Untake(first[0])
		same(t, g.take(alice, 1, 0), claim(0, 1, "s"))
		g.Marked()
		same(t, g.take(alice, 1, 0), claim(2, 1, "f"))
		g.nack(2)
		same(t, g.take(alice, 2, 0), claim(2, 2, "p"), claim(3, 1, "f"))
		if g.Handed() != 4 || g.HighWater() != 4 {
			t.Fatal(g.Handed(), g.HighWater())
		}
	})
	t.Run("rebuilt", func(t *testing.T) {
		g := newGroup(t, Options{}, Start{Committed: 4, Handed: 6, Rebuilt: true, Tail: 8,
			Attempts: map[uint64]uint32{1: 3, 2: 2, 5: 3}, Redriven: []uint64{2, 3}})
		if g.Handed() != 6 || g.HighWater() != 4 {
			t.Fatal(g.Handed(), g.HighWater())
		}
		g.tail = 10
		all := g.take(alice, 10, 0)
		same(t, all, claim(2, 3, "p"), claim(3, 1, "p"), claim(4, 2, "fp"), claim(5, 4, "fp"),
			claim(6, 1, "fs"), claim(7, 1, "fs"), claim(8, 1, "f"), claim(9, 1, "f"))
		if len(g.recovered) > 0 {
			t.Fatal("remembers what has had its turn")
		}
		for _, c := range all {
			g.Untake(c)
		}
		g.counts(0, 8)
		same(t, g.take(alice, 10, 0), claim(2, 3, "p"), claim(3, 1, "p"), claim(4, 2, "p"), claim(5, 4, "p"),
			claim(6, 1, "s"), claim(7, 1, "s"), claim(8, 1, ""), claim(9, 1, ""))
	})
	t.Run("sought", func(t *testing.T) {
		g := newGroup(t, Options{}, Start{Committed: 2, Handed: 6, Rebuilt: true, Tail: 8, Attempts: map[uint64]uint32{5: 3}})
		g.Seek(4)
		if g.Handed() != 4 {
			t.Fatal(g.Handed())
		}
		same(t, g.take(alice, 2, 0), claim(4, 1, "f"), claim(5, 1, "f"))
	})
}

func TestReservedThenOwedThenNew(t *testing.T) {
	g := newGroup(t, Options{}, Start{Tail: 9})
	g.gets(alice, 2, 0, 0, 1)
	g.gets(bob, 2, 0, 2, 3)
	g.gets(alice, 2, 0, 4, 5)
	g.nack(3)
	g.nack(2)
	again := alice
	again.Connection = 7
	g.Reclaim(again)
	g.counts(0, 6)
	if h := g.state(4, Owed); !h.Reserved || h.Holder != again || h.Until != 10 || h.Attempts != 1 {
		t.Fatalf("%+v", h)
	}
	g.gets(bob, 1, 1, 2)
	g.gets(again, 1, 1, 0)
	g.gets(again, 4, 1, 1, 3, 4, 5)
	g.gets(again, 9, 1, 6, 7, 8)
	if c := g.Counts(); c != (Counts{InFlight: 9, Claimed: 9}) {
		t.Fatalf("%+v", c)
	}
}

func TestClaimsAreSortedBehindWhatWasThere(t *testing.T) {
	g := newGroup(t, Options{MaxAttempts: 1}, Start{Tail: 4})
	g.gets(alice, 2, 0, 0, 1)
	g.lapses(20, 0, 1)
	g.Buried(0, false)
	g.bury(1)
	dst := []Claim{{Offset: 77}}
	claims, bury, capped := g.Take(dst, []uint64{66}, bob, 2, 20, 30, g.tail)
	if !slices.Equal(offsets(claims), []uint64{77, 2, 3}) || !slices.Equal(bury, []uint64{66, 0}) || capped {
		t.Fatal(claims, bury, capped)
	}
	if claims, bury, capped := g.Take(dst, nil, bob, 0, 20, 30, 100); len(claims) != 1 || len(bury) > 0 || capped {
		t.Fatal(claims, bury, capped)
	}
}

func TestRoomInFlight(t *testing.T) {
	g := newGroup(t, Options{MaxInFlight: 3}, Start{Tail: 10})
	take := func(limit int, readable uint64, wantCapped bool, want ...uint64) {
		t.Helper()
		claims, _, capped := g.Take(nil, nil, alice, limit, 0, 10, readable)
		if !slices.Equal(offsets(claims), want) || capped != wantCapped {
			t.Fatalf("%v, capped %v", offsets(claims), capped)
		}
	}
	take(2, 10, false, 0, 1)
	take(5, 3, false, 2) // what can be read ends it
	if g.Available(10) {
		t.Fatal("there is no room")
	}
	take(5, 3, false)
	take(5, 10, true)
	g.nack(1)
	if !g.Available(10) {
		t.Fatal("one is owed")
	}
	take(5, 10, true, 1)
	if _, err := g.Nack(1, 0, 40, g.tail); err != nil {
		t.Fatal(err)
	}
	g.bury(2)
	take(5, 10, true) // delayed and burying take room
	g.ack(0)
	if !g.Available(10) {
		t.Fatal("there is room")
	}
	take(1, 10, false, 3)
}

func TestUntakeOfWhatWentOn(t *testing.T) {
	g := newGroup(t, Options{}, Start{Tail: 10})
	claims := g.take(alice, 6, 0)
	g.ack(0)
	g.nack(1)
	if _, err := g.Nack(2, 1, 50, g.tail); err != nil {
		t.Fatal(err)
	}
	g.bury(3)
	g.nack(4)
	for i, want := range []uint64{1, 4} {
		if c := g.take(bob, 1, 0); c[0].Offset != want || i == 1 && c[0].Attempts != 2 {
			t.Fatal(c)
		}
	}
	g.nack(1)
	for _, c := range claims {
		g.Untake(c)
	}
	g.gone(0)
	for _, c := range []struct {
		offset   uint64
		state    State
		attempts uint32
	}{{1, Owed, 2}, {2, Delayed, 0}, {3, Burying, 1}, {4, Claimed, 2}, {5, Owed, 0}} {
		if h := g.state(c.offset, c.state); h.Attempts != c.attempts {
			t.Errorf("%+v, want %d attempts", h, c.attempts)
		}
	}
	g.Untake(Claim{Offset: 5}) // 0 attempts: never was one
	if h := g.state(5, Owed); h.Attempts != 0 {
		t.Error(h)
	}
}

func TestSkip(t *testing.T) {
	g := newGroup(t, Options{}, Start{Tail: 10})
	g.gets(alice, 3, 0, 0, 1, 2)
	for _, c := range []struct {
		offset uint64
		want   Settled
	}{{1, Settled{}}, {1, Settled{Duplicate: true}}, {0, Settled{Moved: true}}, {5, Settled{Duplicate: true}}} {
		if s := g.Skip(c.offset); s != c.want {
			t.Errorf("skip %d: %+v, want %+v", c.offset, s, c.want)
		}
	}
	g.committed(2)
	g.bury(2)
	if s := g.Skip(2); s != (Settled{Burying: true}) {
		t.Error(s)
	}
}

func TestHeldAndFirst(t *testing.T) {
	g := newGroup(t, Options{}, Start{Committed: 3, Tail: 8})
	first := func(want Held, wantOK bool) {
		t.Helper()
		if h, ok := g.First(g.tail); h != want || ok != wantOK {
			t.Fatalf("%+v, %v; want %+v", h, ok, want)
		}
	}
	first(Held{Offset: 3, State: NotHandedOut}, true)
	g.gets(alice, 3, 7, 3, 4, 5)
	if _, err := g.Nack(4, 1, 40, g.tail); err != nil {
		t.Fatal(err)
	}
	g.nack(5)
	want := []Held{
		{Offset: 3, State: Claimed, Attempts: 1, Holder: alice, Since: 7, Until: 17},
		{Offset: 4, State: Delayed, Attempts: 1, Since: 7, Until: 40},
		{Offset: 5, State: Owed, Attempts: 1, Since: 7},
	}
	first(want[0], true)
	for _, c := range []struct {
		from  uint64
		limit int
		want  []Held
		more  bool
	}{
		{0, 100, want, false}, {0, 3, want, false}, {0, 2, want[:2], true}, {4, 1, want[1:2], true},
		{5, 1, want[2:], false}, {6, 1, nil, false}, {0, 0, nil, true}, {0, -1, nil, true},
	} {
		held, more := g.Held(nil, c.from, c.limit)
		if !slices.Equal(held, c.want) || more != c.more {
			t.Errorf("from %d, %d: %+v, %v", c.from, c.limit, held, more)
		}
	}
	g.ack(3, 4, 5)
	g.gets(alice, 9, 7, 6, 7)
	g.ack(6, 7)
	first(Held{Offset: 8, State: AtTail}, false)
	for s, name := range []string{"not_handed_out", "claimed", "delayed", "owed", "dead_lettering", "at_tail", "unknown"} {
		if State(s).String() != name {
			t.Error(State(s))
		}
	}
}
