package storetest

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// mine keeps what a sweep found of this test.
func (f *fixture) mine(list []model.Expired) []model.Expired {
	return slices.DeleteFunc(list, func(e model.Expired) bool {
		return len(e.Node.NodeID) < len(f.prefix) || e.Node.NodeID[:len(f.prefix)] != f.prefix
	})
}

func testExpiry(f *fixture) {
	down := f.node("down")
	first(f.SetLifecycle(f.ctx, down.NodeID, model.Down))(f)
	left := f.node("left")
	first(f.SetLifecycle(f.ctx, left.NodeID, model.Left))(f)
	c, b, a := f.node("c"), f.node("b"), f.node("a")
	b = first(f.SetLifecycle(f.ctx, b.NodeID, model.Draining))(f)
	newest := max(a.Status.LastHeartbeatAtMillis, b.Status.LastHeartbeatAtMillis, c.Status.LastHeartbeatAtMillis)
	oldest := min(a.Status.LastHeartbeatAtMillis, b.Status.LastHeartbeatAtMillis, c.Status.LastHeartbeatAtMillis)

	f.same(f.mine(want(f.ExpireStale(f.ctx, oldest))(f)), []model.Expired{})
	f.same(want(f.Node(f.ctx, a.NodeID))(f), a)
	since := want(f.NodesSnapshot(f.ctx))(f).NextSeq
	got := want(f.ExpireStale(f.ctx, newest+1))(f)
	for _, n := range []*model.Node{&a, &b, &c} {
		n.Status.Lifecycle = model.Down
	}
	f.same(f.mine(got), []model.Expired{{Node: a, From: model.Live}, {Node: b, From: model.Draining}, {Node: c, From: model.Live}})
	var updated []model.NodeChange
	for _, c := range changesSince(f, f.NodeChanges, since) {
		c.Seq = 0
		updated = append(updated, c)
	}
	updated = slices.DeleteFunc(updated, func(c model.NodeChange) bool {
		return len(f.mine([]model.Expired{{Node: *c.Node}})) == 0
	})
	f.same(updated, []model.NodeChange{
		{Op: model.Updated, NodeID: a.NodeID, Node: &a}, {Op: model.Updated, NodeID: b.NodeID, Node: &b}, {Op: model.Updated, NodeID: c.NodeID, Node: &c},
	})
	f.same(f.mine(want(f.ExpireStale(f.ctx, newest+1))(f)), []model.Expired{})
	f.same(want(f.Node(f.ctx, left.NodeID))(f).Status.Lifecycle, model.Left)
}

// testExpiryRace sweeps from several places at once.
func testExpiryRace(f *fixture) {
	const nodes = 12
	var cutoff uint64
	for i := range nodes {
		cutoff = max(cutoff, f.node(string(rune('a'+i))).Status.LastHeartbeatAtMillis+1)
	}
	since := want(f.NodesSnapshot(f.ctx))(f).NextSeq
	var mu sync.Mutex
	claimed := make(map[string]int)
	var errs []error
	together(8, func(int) {
		list, err := f.ExpireStale(f.ctx, cutoff)
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			errs = append(errs, err)
		}
		for _, e := range f.mine(list) {
			claimed[e.Node.NodeID]++
		}
	})
	for _, err := range errs {
		f.ok(err)
	}
	f.same(len(claimed), nodes)
	for id, n := range claimed {
		f.same([]any{id, n}, []any{id, 1})
	}
	published := make(map[string]int)
	for _, c := range changesSince(f, f.NodeChanges, since) {
		published[c.NodeID]++
	}
	for id := range claimed {
		f.same([]any{id, published[id]}, []any{id, 1})
	}
}

// testClockSetBack lends the store a clock that goes back. A store that has a
// clock of its own passes by never looking.
func testClockSetBack(t *testing.T, open func(*testing.T, Options) store.Store) {
	var mu sync.Mutex
	now := time.UnixMilli(1_800_000_000_000)
	f := solitary(t, open, Options{Clock: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}})
	n := f.node("n")
	mu.Lock()
	now = now.Add(-time.Hour)
	mu.Unlock()
	beat := want(f.Heartbeat(f.ctx, n.NodeID, 0))(f)
	again := want(f.RegisterNode(f.ctx, n.NodeID, n.Spec))(f)
	other := f.node("other")
	at := want(f.NowMillis(f.ctx))(f)
	for _, later := range []uint64{
		beat.Status.LastHeartbeatAtMillis, again.Status.LastHeartbeatAtMillis, other.Status.RegisteredAtMillis, at,
	} {
		if later < n.Status.LastHeartbeatAtMillis {
			t.Fatalf("time went back from %d to %d", n.Status.LastHeartbeatAtMillis, later)
		}
	}
}
