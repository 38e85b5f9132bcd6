package tracker

import (
	"slices"
	"testing"
)

func TestDeadLettersEndAsTheyWill(t *testing.T) {
	g := newGroup(t, Options{}, Start{Tail: 10})
	g.gets(alice, 4, 0, 0, 1, 2, 3)
	before := g.state(0, Claimed)
	g.bury(0)
	g.counts(4, 0)
	g.lapses(9)
	if s, retract := g.Buried(0, false); s != (Settled{}) || retract || g.state(0, Claimed) != before {
		t.Fatal(s, retract, g.state(0, Claimed))
	}
	if at, ok := g.Next(); at != 10 || !ok {
		t.Fatal(at, ok)
	}
	g.bury(0)
	g.committed(0)
	if s, retract := g.Buried(0, true); s != (Settled{Moved: true}) || retract {
		t.Fatal(s, retract)
	}
	g.committed(1)
	g.gone(0)
	g.answers("again", g.Bury(0, g.tail), invalid)

	// Acked meanwhile.
	for _, ok := range []bool{true, false} {
		x := g.Committed()
		g.bury(x)
		for range 2 {
			if s, err := g.Ack(x, g.tail); err != nil || s != (Settled{Burying: true}) {
				t.Fatal(s, err)
			}
		}
		g.answers("acked", g.Bury(x, g.tail), invalid)
		g.committed(x)
		if s, retract := g.Buried(x, ok); s != (Settled{Moved: true}) || retract != ok {
			t.Fatal(ok, s, retract)
		}
		g.committed(x + 1)
	}

	// It begins twice: it ends with the last.
	g.bury(3)
	g.bury(3)
	if s, retract := g.Buried(3, true); s != (Settled{}) || retract {
		t.Fatal(s, retract)
	}
	g.state(3, Burying)
	if s, _ := g.Buried(3, false); s != (Settled{Moved: true}) {
		t.Fatal(s)
	}
	if s, retract := g.Buried(3, true); s != (Settled{}) || retract {
		t.Fatal(s, retract)
	}
}

func TestDeadLettersUnderWayAreBounded(t *testing.T) {
	g := newGroup(t, Options{}, Start{Tail: 1})
	g.gets(alice, 1, 0, 0)
	for range 255 {
		g.bury(0)
	}
	g.answers("one more", g.Bury(0, 1), retry)
	for range 255 {
		g.state(0, Burying)
		g.Buried(0, false)
	}
	g.state(0, Claimed)
}

// A dead letter of a record that the rebuilt group has not handed out.
func TestDeadLetterBeforeItsTurn(t *testing.T) {
	for _, c := range []struct {
		walk bool // the walk has passed it when the write ends
		ok   bool
	}{{false, false}, {false, true}, {true, false}, {true, true}} {
		g := newGroup(t, Options{}, Start{Handed: 3, Rebuilt: true, Tail: 8, Attempts: map[uint64]uint32{2: 4}})
		g.bury(2)
		if c.walk {
			g.gets(alice, 3, 0, 0, 1, 3)
		}
		s, _ := g.Buried(2, c.ok)
		if s.Counted != c.ok || s.Moved {
			t.Fatalf("%+v: %+v", c, s)
		}
		switch claims := g.take(bob, 8, 0); {
		case c.ok && slices.Contains(offsets(claims), 2):
			t.Fatalf("%+v: %v", c, claims)
		case !c.ok && !slices.Contains(claims, Claim{Offset: 2, Attempts: 5, Fresh: !c.walk, Persist: true}):
			t.Fatalf("%+v: %v", c, claims)
		}
	}
}
