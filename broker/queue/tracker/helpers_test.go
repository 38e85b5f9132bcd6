package tracker

import (
	"slices"
	"testing"
)

var (
	alice = Holder{Consumer: "alice", Principal: "p", Connection: 1}
	bob   = Holder{Consumer: "bob", Principal: "p", Connection: 2}
)

// group is a tracker whose log ends at tail.
type group struct {
	*Tracker
	t    *testing.T
	tail uint64
}

func newGroup(t *testing.T, o Options, s Start) *group {
	if o.MaxInFlight == 0 {
		o.MaxInFlight = 100
	}
	return &group{Tracker: New(o, s), t: t, tail: s.Tail}
}

// take hands out up to limit to h at now, for 10.
func (g *group) take(h Holder, limit int, now Time) []Claim {
	g.t.Helper()
	claims, bury, _ := g.Take(nil, nil, h, limit, now, now+10, g.tail)
	if len(bury) > 0 {
		g.t.Fatalf("buries %v", bury)
	}
	return claims
}

// gets is take, of which the offsets are known.
func (g *group) gets(h Holder, limit int, now Time, want ...uint64) {
	g.t.Helper()
	if got := offsets(g.take(h, limit, now)); !slices.Equal(got, want) {
		g.t.Fatalf("%s gets %v, want %v", h.Consumer, got, want)
	}
}

func offsets(claims []Claim) (xs []uint64) {
	for _, c := range claims {
		xs = append(xs, c.Offset)
	}
	return xs
}

func (g *group) ack(offsets ...uint64) {
	g.t.Helper()
	for _, x := range offsets {
		if _, err := g.Ack(x, g.tail); err != nil {
			g.t.Fatalf("ack %d: %v", x, err)
		}
	}
}

func (g *group) nack(offset uint64) {
	g.t.Helper()
	if bury, err := g.Nack(offset, 0, 0, g.tail); err != nil || bury {
		g.t.Fatalf("nack %d: %v, bury %v", offset, err, bury)
	}
}

func (g *group) bury(offset uint64) {
	g.t.Helper()
	if err := g.Bury(offset, g.tail); err != nil {
		g.t.Fatalf("bury %d: %v", offset, err)
	}
}

func (g *group) lapses(now Time, bury ...uint64) {
	g.t.Helper()
	if got := g.Lapse(now, nil); !slices.Equal(got, bury) {
		g.t.Fatalf("lapse at %d buries %v, want %v", now, got, bury)
	}
}

func (g *group) counts(inFlight, owed int) {
	g.t.Helper()
	if c := g.Counts(); c.InFlight != inFlight || c.Owed != owed {
		g.t.Fatalf("%+v, want %d in flight, %d owed", c, inFlight, owed)
	}
}

func (g *group) committed(want uint64) {
	g.t.Helper()
	if got := g.Committed(); got != want {
		g.t.Fatalf("committed %d, want %d", got, want)
	}
}

func (g *group) state(offset uint64, want State) Held {
	g.t.Helper()
	held, _ := g.Held(nil, offset, 1)
	if len(held) == 0 || held[0].Offset != offset {
		g.t.Fatalf("%d is not in play, want %v", offset, want)
	}
	if held[0].State != want {
		g.t.Fatalf("%d is %v, want %v", offset, held[0].State, want)
	}
	return held[0]
}

func (g *group) gone(offset uint64) {
	g.t.Helper()
	if held, _ := g.Held(nil, offset, 1); len(held) > 0 && held[0].Offset == offset {
		g.t.Fatalf("%d is in play: %+v", offset, held[0])
	}
}

func (g *group) answers(what string, err error, want string) {
	g.t.Helper()
	if got := answer(err); got != want {
		g.t.Fatalf("%s: %q (%v), want %q", what, got, err, want)
	}
}
