package placement

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
	"pgregory.net/rapid"
)

// anyWorld draws a cluster that is not placed yet.
func anyWorld(t *rapid.T) *world {
	seed := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
	w := newWorld(t.Fatalf, seed.IntN)
	w.in.Policy.MoveLimit = rapid.IntRange(1, 3).Draw(t, "limit")
	w.in.Policy.PerNode = rapid.IntRange(0, 2).Draw(t, "per node")
	zones := rapid.IntRange(0, 3).Draw(t, "zones")
	regions := rapid.IntRange(1, 3).Draw(t, "regions")
	for i := range rapid.IntRange(1, 6).Draw(t, "nodes") {
		zone := ""
		if zones > 0 {
			zone = fmt.Sprint("z", rapid.IntRange(0, zones-1).Draw(t, "zone"))
		}
		n := w.addNode(fmt.Sprint("n", i), fmt.Sprint("r", rapid.IntRange(0, regions-1).Draw(t, "region")), zone)
		if rapid.IntRange(0, 7).Draw(t, "weightless") == 0 {
			n.Spec.Capacity.Weight = 0
		}
		if rapid.IntRange(0, 5).Draw(t, "capped") == 0 {
			roles := rapid.Uint32Range(1, 6).Draw(t, "roles")
			n.Spec.Capacity.MaxShards = &roles
		}
	}
	if rapid.Bool().Draw(t, "bridge") {
		w.in.Bridges = []model.Bridge{{Source: "r0", Destination: "r1"}}
	}
	for i := range rapid.IntRange(1, 4).Draw(t, "streams") {
		s := model.Stream{
			Stream: fmt.Sprint("s", i), Shards: rapid.Uint32Range(1, 4).Draw(t, "shards"),
			ReplicationFactor: rapid.Uint32Range(0, 4).Draw(t, "factor"), Durable: rapid.IntRange(0, 3).Draw(t, "durable") > 0,
			Consistency: rapid.SampledFrom([]model.Consistency{model.Leader, model.Quorum}).Draw(t, "consistency"),
		}
		if regions > 1 && rapid.Bool().Draw(t, "home") {
			s.Region = "r0"
		}
		w.addStream(s)
	}
	if rapid.Bool().Draw(t, "cache") {
		w.addCache("s0", rapid.Uint32Range(1, 3).Draw(t, "shards"), rapid.Uint32Range(1, 3).Draw(t, "factor"))
	}
	return w
}

// disturb lets something happen.
func (w *world) disturb(t *rapid.T) {
	w.plan() // an operator's call reads what there is
	pick := func() *model.Node { return &w.in.Nodes[w.draw(len(w.in.Nodes))] }
	switch rapid.IntRange(0, 9).Draw(t, "event") {
	case 0, 1, 2:
		w.set(pick().NodeID, rapid.SampledFrom([]model.Lifecycle{model.Live, model.Down, model.Left}).Draw(t, "to"))
	case 3:
		if n := pick(); n.Status.Lifecycle.Serving() {
			w.set(n.NodeID, model.Draining)
		}
	case 4:
		if len(w.in.Nodes) < 8 {
			w.addNode(fmt.Sprint("n", len(w.in.Nodes)), "r0", "z0")
		}
	case 5:
		w.in.Paused = !w.in.Paused
	case 6:
		if len(w.in.Bridges) > 0 {
			w.in.Bridges = nil
		} else {
			w.in.Bridges = []model.Bridge{{Source: "r0", Destination: "r1"}, {Source: "r0", Destination: "r2"}}
		}
	case 7:
		w.operate(StartMove(w.in, w.anyKey(), pick().NodeID))
	case 8:
		w.operate(CancelMove(w.in, w.anyKey()))
	case 9:
		w.in.NowMillis += uint64(w.draw(10)) * stepMillis
	}
}

func (w *world) anyKey() model.ShardKey {
	keys := w.keys()
	return keys[w.draw(len(keys))]
}

func (w *world) operate(d Decision, refusal *Refusal) {
	if refusal == nil {
		w.carryOut([]Decision{d})
	}
}

func (w *world) inFlight() (n int) {
	for _, a := range w.placed {
		if moving(a) {
			n++
		}
	}
	return n
}

// A cluster to which anything happens while plans are carried out, wholly or in
// part, never does what it may not, and comes to rest afterwards.
func TestNothingForbiddenHappensAndEverythingEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := anyWorld(t)
		for range rapid.IntRange(5, 40).Draw(t, "rounds") {
			for _, k := range w.keys() {
				if w.draw(3) > 0 {
					w.broker(k, false)
				}
			}
			before, ds := w.inFlight(), w.plan()
			cut := rapid.IntRange(0, len(ds)).Draw(t, "landed")
			w.carryOut(ds[:cut])
			if now := w.inFlight(); now > max(before, w.in.Policy.MoveLimit) {
				t.Fatalf("%d copies at once, the limit is %d", now, w.in.Policy.MoveLimit)
			}
			w.disturb(t)
			w.in.NowMillis += stepMillis
		}
		w.in.Paused = false
		w.settle()
		for _, d := range w.plan() {
			if d.Assignment != nil {
				t.Fatalf("a settled cluster is written to: %+v", d)
			}
		}
		again := w.writes
		w.settle()
		if w.writes != again {
			t.Fatalf("a settled cluster was written to %d times", w.writes-again)
		}
	})
}

// The order of the input does not matter, and planning does not change it.
func TestOrderOfInputDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := anyWorld(t)
		for range rapid.IntRange(0, 12).Draw(t, "rounds") {
			for _, k := range w.keys() {
				w.broker(k, w.draw(2) == 0)
			}
			w.carryOut(w.plan())
			w.disturb(t)
			w.in.NowMillis += stepMillis
		}
		want := w.plan()
		in := w.in
		in.Streams = rapid.Permutation(in.Streams).Draw(t, "streams")
		in.Caches = rapid.Permutation(in.Caches).Draw(t, "caches")
		in.Nodes = rapid.Permutation(in.Nodes).Draw(t, "nodes")
		in.Assignments = rapid.Permutation(in.Assignments).Draw(t, "assignments")
		in.Reports = rapid.Permutation(in.Reports).Draw(t, "reports")
		in.Bridges = rapid.Permutation(in.Bridges).Draw(t, "bridges")
		shuffled := slices.Clone(in.Nodes)
		if got := Plan(in); !reflect.DeepEqual(got, want) {
			t.Fatalf("another order of the input gives another plan:\n%+v\n%+v", got, want)
		}
		if !reflect.DeepEqual(in.Nodes, shuffled) {
			t.Fatal("planning changed its input")
		}
		if !slices.IsSortedFunc(want, func(a, b Decision) int { return a.Key.Compare(b.Key) }) {
			t.Fatal("decisions are not in the order of their keys")
		}
	})
}

// What a quorum shard acknowledged is there after any sequence of failures,
// drains and replacements: each leader that opens asks the majority of its set
// that knows least. The world checks it.
func TestQuorumShardsKeepWhatTheyAcknowledged(t *testing.T) {
	opened := 0
	rapid.Check(t, func(t *rapid.T) {
		seed := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		w := newWorld(t.Fatalf, seed.IntN)
		factor := rapid.IntRange(2, 5).Draw(t, "factor")
		for i := range factor + rapid.IntRange(0, 2).Draw(t, "spare") {
			n := w.addNode(fmt.Sprint("n", i), "r0", "")
			if i > 0 && w.draw(3) == 0 {
				n.Status.Lifecycle = model.Down
			}
		}
		w.in.Policy.FenceLag = 20
		w.in.Policy.RestoreAfterMillis = rapid.SampledFrom([]uint64{0, stepMillis, restoreAfter}).Draw(t, "restore")
		w.addStream(model.Stream{
			Stream: "s", Shards: 1, ReplicationFactor: uint32(factor), Durable: true, Consistency: model.Quorum,
		})
		for range 80 {
			for _, k := range w.keys() {
				before := w.logs[k]
				w.broker(k, w.draw(8) == 0)
				if before != nil && w.placed[k].Generation > 0 && before.opened == w.placed[k].Generation+1 {
					opened++
				}
			}
			if w.draw(3) > 0 {
				w.carryOut(w.plan())
			}
			w.fault()
			w.in.NowMillis += stepMillis
		}
	})
	if opened == 0 {
		t.Fatal("no shard ever changed hands")
	}
}

// fault stops, drains or brings back a node now and then, the leader of the
// shard more often than others.
func (w *world) fault() {
	n := &w.in.Nodes[w.draw(len(w.in.Nodes))]
	for _, a := range w.placed {
		if w.draw(3) == 0 {
			n = w.node(a.Leader)
		}
	}
	switch w.draw(8) {
	case 0:
		w.set(n.NodeID, model.Down)
	case 1:
		if n.Status.Lifecycle == model.Live {
			w.set(n.NodeID, model.Draining)
		}
	case 2, 3, 4:
		w.set(w.in.Nodes[w.draw(len(w.in.Nodes))].NodeID, model.Live)
	}
}
