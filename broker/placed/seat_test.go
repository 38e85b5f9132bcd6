package placed

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// Orders that come twice and in any order leave what the newest one says, and
// every change is told once.
func TestSeatHoldsTheNewestOrder(t *testing.T) {
	type order struct {
		generation uint64
		assign     bool
	}
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var orders []order
		for g := range uint64(1 + rng.IntN(8)) {
			orders = append(orders, order{g, rng.IntN(2) == 0})
		}
		newest := orders[len(orders)-1]
		orders = append(orders, orders...)
		rng.Shuffle(len(orders), func(i, j int) { orders[i], orders[j] = orders[j], orders[i] })
		var s Seat
		serving := false
		for _, o := range orders {
			if o.assign && s.Assign(o.generation) {
				if serving {
					t.Fatalf("seed %d: told to begin twice", seed)
				}
				serving = true
			}
			if !o.assign && s.Unassign(o.generation, "moves") {
				if !serving {
					t.Fatalf("seed %d: told to end what does not serve", seed)
				}
				serving = false
			}
			if serving != s.Assigned() {
				t.Fatalf("seed %d: serves %v, assigned %v", seed, serving, s.Assigned())
			}
		}
		if s.Generation() != newest.generation || s.Assigned() != newest.assign {
			t.Fatalf("seed %d: %+v after %+v", seed, s, newest)
		}
	}
}

// A seat that was released takes any order, as generations may begin anew.
func TestReleasedSeat(t *testing.T) {
	var s Seat
	if s.Release("") {
		t.Error("nothing was served")
	}
	if !s.Assign(9) || !s.Release("not in the snapshot") {
		t.Error("what was served does not end")
	}
	if s.Assigned() || s.Generation() != 0 || s.Reason() != "not in the snapshot" {
		t.Errorf("%+v", s)
	}
	if !s.Assign(0) || s.Reason() != "" {
		t.Errorf("%+v", s)
	}
}

func TestWords(t *testing.T) {
	shard := Shard{Kind: "stream", Tenant: "t", Namespace: "n", Name: "orders", Index: 3}
	e := &NotServedError{Shard: shard, Reason: Moving, Detail: "drained"}
	if got := e.Error(); got != "shard t/n/orders/3 of a stream is not served here: moving: drained" {
		t.Error(got)
	}
	if got := NotReplicated(shard, 3, 1).Error(); !strings.Contains(got, "3 copies") || !strings.Contains(got, "ask for one copy") {
		t.Error(got)
	}
}
