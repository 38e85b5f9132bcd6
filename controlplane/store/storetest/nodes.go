package storetest

import (
	"slices"
	"sync"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

func testRegistration(f *fixture) {
	id := f.prefix + "-n"
	since := want(f.NodesSnapshot(f.ctx))(f).NextSeq
	full := f.spec()
	full.ClientAddr, full.KafkaAddr, full.Zone = "10.0.0.1:5000", "kafka.example:9092", "zone-a"
	full.Labels = map[string]string{"rack": "a1", "": "empty", "ünï": "cöde"}
	full.Capacity = model.Capacity{MaxShards: ptr(uint32(100)), Weight: 0}
	full.Features = []string{"alpha", "beta"}

	before := want(f.NowMillis(f.ctx))(f)
	n := want(f.RegisterNode(f.ctx, id, full))(f)
	after := want(f.NowMillis(f.ctx))(f)
	at := n.Status.RegisteredAtMillis
	if at < before || at > after {
		f.Fatalf("registered at %d, want between %d and %d on the store's clock", at, before, after)
	}
	first := model.Node{NodeID: id, Spec: full, Status: model.NodeStatus{
		Lifecycle: model.Live, RegisteredAtMillis: at, LastHeartbeatAtMillis: at,
	}}
	f.same(n, first)
	f.same(want(f.Node(f.ctx, id))(f), first)

	// Registering again replaces the spec, all of it, and revives.
	_, _, err := f.SetLifecycle(f.ctx, id, model.Down)
	f.ok(err)
	bare := f.spec()
	bare.Labels = nil
	token := f.token()
	second := want(f.RegisterNode(f.ctx, id, bare))(f)
	f.same(f.token(), token+1) // it was taken for gone
	bare.Labels = map[string]string{}
	if second.Status.LastHeartbeatAtMillis < at {
		f.Fatalf("last heartbeat went back from %d to %d", at, second.Status.LastHeartbeatAtMillis)
	}
	f.same(second, model.Node{NodeID: id, Spec: bare, Status: model.NodeStatus{
		Lifecycle: model.Live, RegisteredAtMillis: at, LastHeartbeatAtMillis: second.Status.LastHeartbeatAtMillis, Incarnation: 1,
	}})
	f.same(want(f.RegisterNode(f.ctx, id, bare))(f).Status.Incarnation, 2)
	f.same(f.token(), token+1)

	changes := changesSince(f, f.NodeChanges, since)
	f.same(len(changes), 4)
	f.same(changes[0], model.NodeChange{Seq: since, Op: model.Registered, NodeID: id, Node: &first})
	f.same(changes[2], model.NodeChange{Seq: since + 2, Op: model.Registered, NodeID: id, Node: &second})

	_, err = f.Node(f.ctx, f.prefix+"-none")
	f.missing(err, "node")
	f.node("b")
	f.node("a")
	var ids []string
	for _, n := range want(f.NodesSnapshot(f.ctx))(f).Items {
		ids = append(ids, n.NodeID)
	}
	if !slices.IsSorted(ids) {
		f.Errorf("nodes are not sorted: %q", ids)
	}
	f.same(want(f.Nodes(f.ctx))(f), want(f.NodesSnapshot(f.ctx))(f).Items)
}

func testAddresses(f *fixture) {
	a, b := f.node("a"), f.node("b")
	since := want(f.NodesSnapshot(f.ctx))(f).NextSeq
	taken := f.spec()
	taken.AdvertiseAddr = a.Spec.AdvertiseAddr
	_, err := f.RegisterNode(f.ctx, f.prefix+"-c", taken)
	f.conflict(err, store.AddressTaken)
	_, err = f.Node(f.ctx, f.prefix+"-c")
	f.missing(err, "node")
	_, err = f.RegisterNode(f.ctx, b.NodeID, taken)
	f.conflict(err, store.AddressTaken)
	f.same(want(f.Node(f.ctx, b.NodeID))(f), b)
	f.same(changesSince(f, f.NodeChanges, since), []model.NodeChange(nil))

	// A node keeps its address, may change it, and frees the old one.
	f.same(want(f.RegisterNode(f.ctx, a.NodeID, taken))(f).Status.Incarnation, 1)
	f.same(want(f.RegisterNode(f.ctx, a.NodeID, f.spec()))(f).Status.Incarnation, 2)
	f.same(want(f.RegisterNode(f.ctx, b.NodeID, taken))(f).Status.Incarnation, 1)

	// It is held as long as the node is known.
	_, _, err = f.SetLifecycle(f.ctx, b.NodeID, model.Left)
	f.ok(err)
	_, err = f.RegisterNode(f.ctx, f.prefix+"-c", taken)
	f.conflict(err, store.AddressTaken)
	f.ok(f.DeleteNode(f.ctx, b.NodeID))
	f.same(want(f.RegisterNode(f.ctx, f.prefix+"-c", taken))(f).Status.Incarnation, 0)

	// Several at once.
	raced := f.spec()
	var mu sync.Mutex
	won, lost := 0, []error{}
	together(8, func(i int) {
		_, err := f.RegisterNode(f.ctx, f.prefix+"-race-"+string(rune('a'+i)), raced)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			won++
		} else {
			lost = append(lost, err)
		}
	})
	f.same(won, 1)
	for _, err := range lost {
		f.conflict(err, store.AddressTaken)
	}
}

func testHeartbeats(f *fixture) {
	n := f.node("n")
	since := want(f.NodesSnapshot(f.ctx))(f).NextSeq
	last := n.Status.LastHeartbeatAtMillis
	for range 3 {
		before := want(f.NowMillis(f.ctx))(f)
		beat := want(f.Heartbeat(f.ctx, n.NodeID, 0))(f)
		after := want(f.NowMillis(f.ctx))(f)
		at := beat.Status.LastHeartbeatAtMillis
		if at < before || at > after || at < last {
			f.Fatalf("heartbeat at %d after one at %d, want between %d and %d on the store's clock", at, last, before, after)
		}
		n.Status.LastHeartbeatAtMillis, last = at, at
		f.same(beat, n)
		f.same(want(f.Node(f.ctx, n.NodeID))(f), n)
	}
	_, err := f.Heartbeat(f.ctx, f.prefix+"-none", 0)
	f.missing(err, "node")
	f.same(changesSince(f, f.NodeChanges, since), []model.NodeChange(nil))

	// A replaced process is told.
	n = want(f.RegisterNode(f.ctx, n.NodeID, n.Spec))(f)
	_, err = f.Heartbeat(f.ctx, n.NodeID, 0)
	f.conflict(err, store.OldIncarnation)
	f.same(want(f.Heartbeat(f.ctx, n.NodeID, 1))(f).Status.Incarnation, 1)

	// One that is given up is told, and not revived.
	for _, to := range []model.Lifecycle{model.Draining, model.Down, model.Left} {
		_, _, err = f.SetLifecycle(f.ctx, n.NodeID, to)
		f.ok(err)
		since = want(f.NodesSnapshot(f.ctx))(f).NextSeq
		f.same(want(f.Heartbeat(f.ctx, n.NodeID, 1))(f).Status.Lifecycle, to)
		f.same(want(f.Node(f.ctx, n.NodeID))(f).Status.Lifecycle, to)
		f.same(changesSince(f, f.NodeChanges, since), []model.NodeChange(nil))
	}
}
