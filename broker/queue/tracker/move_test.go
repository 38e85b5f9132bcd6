package tracker

import (
	"slices"
	"testing"
)

func TestSeekEndsClaims(t *testing.T) {
	g := newGroup(t, Options{}, Start{Tail: 20})
	claims := g.take(alice, 8, 0)
	g.ack(0, 1, 4)
	g.nack(5)
	if _, err := g.Nack(6, 0, 30, g.tail); err != nil {
		t.Fatal(err)
	}
	g.Redrive(3)
	g.Redrive(6)
	g.Redrive(1)
	g.Seek(4)
	g.counts(0, 3)
	g.committed(4)
	if _, ok := g.Next(); ok || g.Busy() || g.Ahead() {
		t.Fatal("claims stand")
	}
	g.answers("ack", ackOf(g, 4), stale)
	g.answers("ack", ackOf(g, 7), stale)
	g.answers("ack below", ackOf(g, 2), "")
	g.answers("extend", g.Extend(claims[7].Offset, 1, 99), stale)
	g.gets(bob, 9, 1, 1, 3, 4, 5, 6, 7, 8, 9, 10)
	g.answers("ack", ackOf(g, 4), "")
	g.committed(5)
	g.Seek(15)
	g.answers("below", ackOf(g, 12), "")
	g.answers("above", ackOf(g, 15), invalid)
}

func ackOf(g *group, offset uint64) error {
	_, err := g.Ack(offset, g.tail)
	return err
}

// A seek does not wait for dead letters, and goes back behind their records all
// the same.
func TestSeekWhileDeadLettersAreWritten(t *testing.T) {
	for _, c := range []struct {
		name            string
		redriven, acked bool
		to              uint64
		walk            bool // handed out again up to there when the write ends
		ok              bool
		settled         Settled
		retract         bool
		again           bool // 5 is handed out after that
	}{
		{name: "back, written", to: 0, ok: true, again: true},
		{name: "back, not written", to: 0, again: true},
		{name: "back, acked and written", acked: true, to: 5, ok: true, retract: true, again: true},
		{name: "back, passed, written", to: 0, walk: true, ok: true, again: true},
		{name: "back, passed, not written", to: 0, walk: true, again: true},
		{name: "forth, written", to: 6, ok: true},
		{name: "forth, not written", to: 6},
		{name: "forth, acked and written", acked: true, to: 6, ok: true, retract: true},
		{name: "redriven, back, written", redriven: true, to: 5, ok: true, again: true},
		{name: "redriven, back, not written", redriven: true, to: 5, again: true},
		{name: "redriven, forth, written", redriven: true, to: 6, ok: true},
		{name: "redriven, forth, not written", redriven: true, to: 6, again: true},
		{name: "redriven, back, acked", redriven: true, acked: true, to: 5, settled: Settled{Redriven: true}, again: true},
		{name: "redriven, forth, acked", redriven: true, acked: true, to: 6, settled: Settled{Redriven: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newGroup(t, Options{}, Start{Tail: 10})
			g.gets(alice, 6, 0, 0, 1, 2, 3, 4, 5)
			if c.redriven {
				g.Redrive(5)
			}
			g.bury(5)
			if c.acked {
				g.ack(5)
			}
			g.Seek(c.to)
			if c.to <= 5 {
				g.answers("ack", ackOf(g, 5), stale)
				g.answers("bury", g.Bury(5, g.tail), stale)
				_, err := g.Nack(5, 0, 0, g.tail)
				g.answers("nack", err, stale)
			}
			if c.walk {
				g.gets(bob, 6, 0, 0, 1, 2, 3, 4, 6)
			}
			if s, retract := g.Buried(5, c.ok); s != c.settled || retract != c.retract {
				t.Fatal(s, retract)
			}
			if again := slices.Contains(offsets(g.take(bob, 10, 0)), 5); again != c.again {
				t.Fatalf("handed out again: %v", again)
			}
			for x := uint64(0); x < 10; x++ {
				if _, err := g.Ack(x, g.tail); err != nil {
					t.Fatal(err)
				}
			}
			g.counts(0, 0)
			g.committed(10)
		})
	}
}

func TestTrimBefore(t *testing.T) {
	g := newGroup(t, Options{}, Start{Committed: 2, Handed: 12, Rebuilt: true, Tail: 20, Redriven: []uint64{0, 14}, Attempts: map[uint64]uint32{8: 4, 11: 5}})
	g.gets(alice, 6, 0, 0, 2, 3, 4, 5, 14)
	g.ack(3, 9)
	g.bury(4)
	g.Redrive(5)
	g.Redrive(7) // before its turn
	if n, redriven := g.TrimBefore(2); n != 0 || !slices.Equal(redriven, []uint64{0}) {
		t.Fatal(n, redriven)
	}
	if n, redriven := g.TrimBefore(1); n != 0 || redriven != nil {
		t.Fatal(n, redriven)
	}
	// 2, 4, 5, 6, 7 and 8 were not finished; 9 was, and is passed.
	if n, redriven := g.TrimBefore(9); n != 6 || !slices.Equal(redriven, []uint64{5, 7}) {
		t.Fatal(n, redriven)
	}
	g.committed(10)
	g.counts(2, 0)
	if _, there := g.recovered[11]; !there || len(g.recovered) != 1 {
		t.Fatal("remembers attempts", g.recovered)
	}
	g.state(4, Burying)
	g.state(14, Claimed)
	if s, retract := g.Buried(4, false); s != (Settled{Counted: true}) || retract {
		t.Fatal(s, retract)
	}
	g.gone(4)
	g.gets(bob, 2, 0, 10, 11)
	if h := g.state(11, Claimed); h.Attempts != 6 {
		t.Fatal(h)
	}
	if n, _ := g.TrimBefore(17); n != 7 {
		t.Fatal(n)
	}
	g.counts(0, 0)
	g.gets(bob, 9, 0, 17, 18, 19)
}

func TestRedrive(t *testing.T) {
	g := newGroup(t, Options{MaxAttempts: 3}, Start{Handed: 9, Rebuilt: true, Tail: 12, Attempts: map[uint64]uint32{6: 2}})
	g.gets(alice, 4, 0, 0, 1, 2, 3)
	g.ack(0, 2)
	g.Redrive(0) // below the cursor
	g.Redrive(2) // among the finished
	g.Redrive(3) // in play
	g.Redrive(6) // before its turn
	g.counts(2, 2)
	g.committed(1)
	if h := g.state(0, Owed); !h.Redriven || h.Attempts != 0 {
		t.Fatal(h)
	}
	if h := g.state(3, Claimed); !h.Redriven || h.Attempts != 2 {
		t.Fatal(h)
	}
	if len(g.recovered) > 0 {
		t.Fatal("remembers attempts", g.recovered)
	}
	claims := g.take(bob, 5, 0)
	want := []Claim{{Offset: 0, Attempts: 1, Persist: true}, {Offset: 2, Attempts: 1, Persist: true},
		{Offset: 4, Attempts: 2, Fresh: true, Persist: true}, {Offset: 5, Attempts: 2, Fresh: true, Persist: true}, {Offset: 6, Attempts: 1, Fresh: true, Persist: true}}
	if !slices.Equal(claims, want) {
		t.Fatalf("%+v", claims)
	}
	for _, c := range []struct {
		offset uint64
		want   Settled
	}{
		{0, Settled{Redriven: true, Counted: true}}, {2, Settled{Redriven: true, Counted: true}}, {0, Settled{Duplicate: true}},
		{3, Settled{Redriven: true, Counted: true}}, {6, Settled{Redriven: true, Counted: true}}, {1, Settled{Moved: true, Counted: true}},
	} {
		if s, err := g.Ack(c.offset, g.tail); err != nil || s != c.want {
			t.Fatalf("ack %d: %+v, %v", c.offset, s, err)
		}
	}
	g.committed(4)
	g.ack(4, 5)
	g.committed(7)
	g.counts(0, 0)
}

// The dead letter of a redriven record replaces its key, and is not deleted.
func TestRedrivenAndBuriedAgain(t *testing.T) {
	g := newGroup(t, Options{}, Start{Committed: 5, Rebuilt: true, Tail: 5, Redriven: []uint64{1}})
	g.gets(alice, 1, 0, 1)
	g.bury(1)
	if s, retract := g.Buried(1, false); s != (Settled{}) || retract || !g.state(1, Claimed).Redriven {
		t.Fatal(s, retract)
	}
	g.bury(1)
	if s, retract := g.Buried(1, true); s != (Settled{Counted: true}) || retract {
		t.Fatal(s, retract)
	}
	g.gone(1)

	// Redriven between two writes of the dead letter, of which the second fails.
	g.Redrive(1)
	g.gets(alice, 1, 0, 1)
	g.bury(1)
	g.bury(1)
	g.Buried(1, true)
	g.Redrive(1)
	g.Buried(1, false)
	if h := g.state(1, Claimed); !h.Redriven {
		t.Fatal(h)
	}
	g.bury(1)
	g.ack(1)
	if s, retract := g.Buried(1, false); s != (Settled{Redriven: true, Counted: true}) || retract {
		t.Fatal(s, retract)
	}
	g.gone(1)
}

// A redriven record whose turn is still to come when a seek goes past it is owed
// all the same.
func TestSeekPastRedriven(t *testing.T) {
	g := newGroup(t, Options{}, Start{Tail: 10})
	g.gets(alice, 8, 0, 0, 1, 2, 3, 4, 5, 6, 7)
	g.Seek(0)
	g.Redrive(3)
	g.Redrive(6)
	g.Seek(5)
	g.counts(0, 1)
	g.gets(bob, 9, 0, 3, 5, 6, 7, 8, 9)
	for _, x := range []uint64{3, 6} {
		if s, err := g.Ack(x, g.tail); err != nil || !s.Redriven {
			t.Fatal(x, s, err)
		}
	}

	g = newGroup(t, Options{}, Start{Rebuilt: true, Tail: 10, Attempts: map[uint64]uint32{6: 2}, Redriven: []uint64{1, 1}})
	g.Redrive(6)
	g.Seek(8)
	g.counts(0, 2)
	if s, err := g.Ack(6, g.tail); err != nil || s != (Settled{Redriven: true, Counted: true}) {
		t.Fatal(s, err)
	}
}

// A dead letter begins before the turn of a record, which is redriven while it is
// written, and it fails: the record waits for its turn.
func TestRedriveOfWhatIsBuriedBeforeItsTurn(t *testing.T) {
	g := newGroup(t, Options{MaxAttempts: 3}, Start{Rebuilt: true, Handed: 9, Tail: 9, Attempts: map[uint64]uint32{6: 2}})
	g.bury(6)
	g.Redrive(6)
	g.Buried(6, false)
	g.gone(6)
	g.Seek(6)
	if claims := g.take(bob, 1, 0); claims[0] != (Claim{Offset: 6, Attempts: 1, Fresh: true, Persist: true}) {
		t.Fatal(claims)
	}
	if s, err := g.Ack(6, g.tail); err != nil || s != (Settled{Moved: true, Redriven: true, Counted: true}) {
		t.Fatal(s, err)
	}
}
