package tracker

import (
	"fmt"
	"testing"
)

func on(h Holder, connection uint64) Holder {
	h.Connection = connection
	return h
}

func TestReclaim(t *testing.T) {
	g := newGroup(t, Options{MaxAttempts: 3}, Start{Tail: 20})
	g.gets(alice, 3, 0, 0, 1, 2)
	g.gets(on(alice, 9), 1, 0, 3) // over a newer one
	g.gets(Holder{"alice", "other", 1}, 1, 0, 4)
	g.gets(Holder{"", "p", 1}, 1, 0, 5)
	if _, err := g.Nack(2, 1, 50, g.tail); err != nil {
		t.Fatal(err)
	}
	g.Reclaim(Holder{"", "p", 8})
	g.counts(6, 0)
	g.Reclaim(on(alice, 8))
	g.counts(4, 2)
	g.answers("the old claim ended", g.Extend(0, 1, 99), stale)
	if !g.Available(20) || g.Available(6) {
		t.Fatal("what is reserved is for one alone")
	}
	g.gets(bob, 1, 1, 6)
	g.gets(on(alice, 7), 1, 1, 7)
	g.gets(on(alice, 8), 1, 1, 0)
	g.ack(1) // reserved, and finished by somebody
	g.gets(on(alice, 8), 1, 1, 8)

	g.gets(alice, 1, 1, 9) // the old connection lives on
	g.Reclaim(on(alice, 8))
	g.Reclaim(on(alice, 7))
	g.state(9, Claimed)
	g.Reclaim(on(alice, 9)) // 0, 7, 8 and 9; 3 is its own
	g.counts(5, 4)
	g.Reclaim(on(alice, 10)) // these, and 3
	g.counts(4, 5)
	if h := g.state(3, Owed); h.Holder != on(alice, 10) {
		t.Fatalf("%+v", h)
	}
	g.gets(on(alice, 9), 1, 2, 10)
	g.gets(on(alice, 10), 2, 2, 0, 3)
	if h := g.state(0, Claimed); h.Attempts != 3 {
		t.Fatalf("%+v", h)
	}
	g.gets(on(alice, 10), 9, 2, 7, 8, 9, 11, 12, 13, 14, 15, 16)
	g.Reclaim(on(alice, 11))
	if claims, bury, _ := g.Take(nil, nil, on(alice, 11), 1, 2, 12, 20); len(claims) != 1 || claims[0].Offset != 3 || len(bury) != 1 || bury[0] != 0 {
		t.Fatal(claims, bury) // 0 was handed out three times
	}
}

func TestReservationsEnd(t *testing.T) {
	g := newGroup(t, Options{MaxAttempts: 2}, Start{Tail: 4})
	g.gets(alice, 4, 0, 0, 1, 2, 3)
	g.nack(0)
	g.gets(alice, 1, 3, 0)
	g.Reclaim(on(alice, 5))
	g.counts(0, 4)
	if at, ok := g.Next(); !ok || at != 10 || g.Busy() {
		t.Fatal(at, ok)
	}
	g.nack(1)
	if _, err := g.Nack(2, 0, 40, 4); err != nil {
		t.Fatal(err)
	}
	g.gets(bob, 9, 3, 1)
	g.lapses(12)
	g.state(0, Owed)
	g.gets(bob, 9, 12, 3) // lapsed: for everybody
	g.lapses(13, 0, 1)
	g.counts(4, 0)
	g.gets(on(alice, 5), 9, 13)
	if g.Lapsed() != 3 {
		t.Fatal(g.Lapsed())
	}
}

func TestMembersAreBounded(t *testing.T) {
	g := newGroup(t, Options{MaxInFlight: 5000}, Start{Tail: 5000})
	g.gets(alice, 2, 0, 0, 1)
	g.Reclaim(on(alice, 3))
	g.counts(0, 2)
	for i := range maxMembers - 1 {
		g.Reclaim(Holder{fmt.Sprint(i), "p", uint64(10 + i)})
	}
	g.state(1, Owed)
	if g.Available(2) {
		t.Fatal("not for everybody")
	}
	g.Reclaim(Holder{"one more", "p", 9})
	if len(g.members) != maxMembers {
		t.Fatalf("%d members", len(g.members))
	}
	g.counts(0, 2)
	g.gets(bob, 2, 1, 0, 1) // alice is forgotten
	g.Reclaim(Holder{"and another", "p", 9})
	g.Reclaim(on(alice, 3))
	if _, there := g.members[alice.member()]; !there || len(g.members) != maxMembers {
		t.Fatalf("%d members", len(g.members))
	}

	// Of one connection's, the first by name.
	for _, name := range []string{"z", "y", "x"} {
		g.Reclaim(Holder{name, "p", 2})
	}
	for _, c := range []struct {
		name  string
		there bool
	}{{"z", false}, {"y", false}, {"x", true}, {"alice", false}} {
		if _, there := g.members[member{c.name, "p"}]; there != c.there {
			t.Errorf("%s is remembered: %v", c.name, there)
		}
	}
}

// A member that reclaims over and over, and never polls.
func TestReservedListsAreBounded(t *testing.T) {
	g := newGroup(t, Options{MaxInFlight: 1000}, Start{Tail: 1000})
	for i := range uint64(1000) {
		g.Take(nil, nil, alice, 1, 0, Time(10+i), 1000)
	}
	g.Reclaim(on(alice, 2))
	r := g.members[alice.member()]
	for now := Time(10); now < 1009; now++ {
		g.lapses(now)
		if r.live != int(1009-now) || len(r.reserved) > slack(r.live)+1 {
			t.Fatalf("%d listed, %d reserved", len(r.reserved), r.live)
		}
	}
	g.gets(on(alice, 2), 1, 1009, 999)
	if g.lapses(1019); r.reserved != nil {
		t.Fatalf("%d listed", len(r.reserved))
	}
}
