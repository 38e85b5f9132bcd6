package placement

import (
	"slices"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
)

// Slots go to leaders that leave, then followers that leave, then what lacks a
// copy, then to balance, and last to what was tried before.
func TestSlotsGoByRank(t *testing.T) {
	s := durable(2)
	s.Shards = 6
	x := on(t, s, "a", "b", "c", "d")
	put := func(n uint32, change func(*model.Assignment), set ...string) {
		a := &model.Assignment{ShardKey: x.key(n), Leader: set[0], Replicas: set[1:], State: model.Assigning}
		if change != nil {
			change(a)
		}
		x.write(x.key(n), a, Place)
		x.report[x.key(n)] = &model.ReplicaReport{ShardKey: x.key(n), ReportedAtMillis: x.in.NowMillis}
	}
	earlier := uint64(5)
	put(0, func(a *model.Assignment) { a.MoveStartedAtMillis = &earlier }, "d", "b")
	put(1, nil, "a", "b") // a leads three, its share is two
	put(2, nil, "a", "b")
	put(3, nil, "a")
	put(4, nil, "b", "d")
	put(5, nil, "d", "b")
	x.is(model.Draining, "d")
	var order []uint32
	for range 5 {
		for _, d := range x.plan() {
			if d.Action == Stage || d.Action == Reseat || d.Action == Fence {
				order = append(order, d.Key.Shard)
				x.carryOut([]Decision{d})
			}
		}
		x.in.Policy.MoveLimit++
	}
	if !slices.Equal(order, []uint32{5, 4, 3, 1, 0}) {
		t.Errorf("slots went to shards %v", order)
	}
	for _, d := range x.plan() {
		if d.Action == Waiting {
			t.Errorf("%v waits for %s", d.Key, d.Reason)
		}
	}
}

// A node ships and receives no more copies at once than it may.
func TestSlotsOfANode(t *testing.T) {
	s := durable(1)
	s.Shards = 4
	x := on(t, s, "a", "b", "c", "d").is(model.Draining, "a", "b")
	for n := range uint32(4) {
		leader := []string{"a", "a", "b", "b"}[n]
		x.write(x.key(n), &model.Assignment{ShardKey: x.key(n), Leader: leader, Replicas: []string{}, State: model.Assigning}, Place)
	}
	x.in.Policy.MoveLimit, x.in.Policy.PerNode = 10, 1
	copies := map[string]int{}
	for _, d := range x.plan() {
		if d.Action == Stage {
			copies[d.Assignment.Leader]++
			copies[d.Assignment.Successor]++
		} else if d.Action != Waiting || d.Code != MoveLimit {
			t.Errorf("%+v", d)
		}
	}
	if copies["a"] == 0 || copies["a"] > 1 || copies["b"] > 1 || copies["c"] > 1 || copies["d"] > 1 {
		t.Errorf("copies by node: %v", copies)
	}
}

// Balancing ends, and no more shards wait for it than there are too many.
func TestBalance(t *testing.T) {
	s := durable(1)
	s.Shards = 9
	x := on(t, s, "a", "b", "c")
	for n := range uint32(9) {
		x.write(x.key(n), &model.Assignment{ShardKey: x.key(n), Leader: "a", Replicas: []string{}, State: model.Assigning}, Place)
	}
	staged, waiting := 0, 0
	for _, d := range x.plan() {
		switch d.Action {
		case Stage:
			staged++
		case Waiting:
			waiting++
		}
	}
	if staged != 1 || waiting != 5 {
		t.Errorf("%d moves begin and %d wait, of six", staged, waiting)
	}
	x.settle()
	leads := map[string]int{}
	for _, a := range x.placed {
		leads[a.Leader]++
	}
	if leads["a"] != 3 || leads["b"] != 3 || leads["c"] != 3 {
		t.Errorf("balanced to %v", leads)
	}
}
