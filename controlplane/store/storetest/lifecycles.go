package storetest

import (
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

func testNodePatches(f *fixture) {
	n := f.node("n")
	since := want(f.NodesSnapshot(f.ctx))(f).NextSeq
	var changes []model.NodeChange
	patch := func(p model.NodePatch) {
		f.Helper()
		f.same(want(f.PatchNode(f.ctx, n.NodeID, p))(f), n)
		f.same(want(f.Node(f.ctx, n.NodeID))(f), n)
		now := n
		changes = append(changes, model.NodeChange{Seq: since + uint64(len(changes)), Op: model.Updated, NodeID: n.NodeID, Node: &now})
	}
	n.Spec.Region = "elsewhere"
	patch(model.NodePatch{Region: ptr("elsewhere")})
	n.Spec.Labels = map[string]string{"a": "b", "c": "d"}
	patch(model.NodePatch{Labels: &map[string]string{"a": "b", "c": "d"}})
	n.Spec.Labels = map[string]string{}
	patch(model.NodePatch{Labels: &map[string]string{}})
	n.Spec.Capacity = model.Capacity{MaxShards: ptr(uint32(7)), Weight: 3}
	patch(model.NodePatch{Capacity: &model.Capacity{MaxShards: ptr(uint32(7)), Weight: 3}})
	n.Status.Lifecycle = model.Draining
	patch(model.NodePatch{Lifecycle: ptr(model.Draining)})
	n.Status.Lifecycle, n.Spec.Region = model.Live, "local"
	patch(model.NodePatch{Lifecycle: ptr(model.Live), Region: ptr("local")})

	// What is refused changes nothing.
	for _, to := range []model.Lifecycle{model.Down, model.Left, "odd"} {
		_, err := f.PatchNode(f.ctx, n.NodeID, model.NodePatch{Lifecycle: ptr(to), Region: ptr("x")})
		f.conflict(err, store.BadLifecycle)
	}
	_, err := f.PatchNode(f.ctx, f.prefix+"-none", model.NodePatch{Region: ptr("x")})
	f.missing(err, "node")
	f.same(want(f.Node(f.ctx, n.NodeID))(f), n)
	f.same(changesSince(f, f.NodeChanges, since), changes)

	for _, from := range []model.Lifecycle{model.Down, model.Left} {
		_, _, err := f.SetLifecycle(f.ctx, n.NodeID, from)
		f.ok(err)
		for _, to := range []model.Lifecycle{model.Live, model.Draining} {
			_, err := f.PatchNode(f.ctx, n.NodeID, model.NodePatch{Lifecycle: ptr(to)})
			f.conflict(err, store.BadLifecycle)
		}
		f.same(want(f.PatchNode(f.ctx, n.NodeID, model.NodePatch{Region: ptr("from " + string(from))}))(f).Status.Lifecycle, from)
	}
}

func testLifecycles(f *fixture) {
	n := f.node("n")
	lifecycles := []model.Lifecycle{model.Live, model.Draining, model.Down, model.Left}
	for _, from := range lifecycles {
		for _, to := range lifecycles {
			n = want(f.RegisterNode(f.ctx, n.NodeID, n.Spec))(f)
			n = first(f.SetLifecycle(f.ctx, n.NodeID, from))(f)
			since := want(f.NodesSnapshot(f.ctx))(f).NextSeq
			got, changed, err := f.SetLifecycle(f.ctx, n.NodeID, to)
			if to.Serving() && !from.Serving() {
				f.conflict(err, store.BadLifecycle)
				f.same(want(f.Node(f.ctx, n.NodeID))(f), n)
				f.same(changesSince(f, f.NodeChanges, since), []model.NodeChange(nil))
				continue
			}
			f.ok(err)
			n.Status.Lifecycle = to
			f.same([]any{got, changed}, []any{n, from != to})
			f.same(want(f.Node(f.ctx, n.NodeID))(f), n)
			var changes []model.NodeChange
			if from != to {
				changes = append(changes, model.NodeChange{Seq: since, Op: model.Updated, NodeID: n.NodeID, Node: &n})
			}
			f.same(changesSince(f, f.NodeChanges, since), changes)
		}
	}
	_, _, err := f.SetLifecycle(f.ctx, f.prefix+"-none", model.Down)
	f.missing(err, "node")
}

// first is want for the answer of SetLifecycle.
func first(n model.Node, _ bool, err error) func(f *fixture) model.Node { return want(n, err) }

func testDeleteNode(f *fixture) {
	a, b, c := f.trio()
	s := f.stream(f.place(), "s", 1)
	f.conflict(f.DeleteNode(f.ctx, a), store.InUse)
	first(f.SetLifecycle(f.ctx, a, model.Draining))(f)
	f.conflict(f.DeleteNode(f.ctx, a), store.InUse)
	f.put(assigning(streamShard(s, 0), a, b))
	first(f.SetLifecycle(f.ctx, a, model.Down))(f)
	first(f.SetLifecycle(f.ctx, b, model.Left))(f)
	f.conflict(f.DeleteNode(f.ctx, a), store.InUse)
	f.conflict(f.DeleteNode(f.ctx, b), store.InUse)

	// An assignment that names others frees them.
	f.put(assigning(streamShard(s, 0), c, b))
	since := want(f.NodesSnapshot(f.ctx))(f).NextSeq
	f.ok(f.DeleteNode(f.ctx, a))
	f.missing(f.DeleteNode(f.ctx, a), "node")
	f.conflict(f.DeleteNode(f.ctx, b), store.InUse)
	f.ok(f.DeleteStream(f.ctx, s.Key()))
	f.ok(f.DeleteNode(f.ctx, b))
	f.same(changesSince(f, f.NodeChanges, since), []model.NodeChange{
		{Seq: since, Op: model.Deregistered, NodeID: a},
		{Seq: since + 1, Op: model.Deregistered, NodeID: b},
	})
	// A node that comes back is a new one.
	f.same(want(f.RegisterNode(f.ctx, a, f.spec()))(f).Status.Incarnation, 0)
}
