package storetest

import (
	"testing"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

func testFeatures(t *testing.T, open func(*testing.T, Options) store.Store) {
	f := solitary(t, open, Options{})
	with := func(features ...string) model.NodeSpec {
		s := f.spec()
		s.Features = features
		return s
	}
	old := want(f.RegisterNode(f.ctx, "old", with("a")))(f)
	want(f.RegisterNode(f.ctx, "drains", with()))(f)
	first(f.SetLifecycle(f.ctx, "drains", model.Draining))(f)
	want(f.RegisterNode(f.ctx, "new", with("a", "b")))(f)
	want(f.RegisterNode(f.ctx, "gone", with()))(f)
	first(f.SetLifecycle(f.ctx, "gone", model.Down))(f)

	f.same(want(f.EnableFeature(f.ctx, "b"))(f), []string{"drains", "old"})
	f.same(want(f.EnabledFeatures(f.ctx))(f), []string{})
	first(f.SetLifecycle(f.ctx, "drains", model.Left))(f)
	f.same(want(f.EnableFeature(f.ctx, "b"))(f), []string{"old"})
	old.Spec.Features = []string{"a", "b"}
	want(f.RegisterNode(f.ctx, "old", old.Spec))(f)
	f.same(want(f.EnableFeature(f.ctx, "b"))(f), []string{})
	f.same(want(f.EnableFeature(f.ctx, "b"))(f), []string{})
	f.same(want(f.EnableFeature(f.ctx, "a"))(f), []string{})
	f.same(want(f.EnabledFeatures(f.ctx))(f), []string{"a", "b"})

	// A node without an enabled feature stays out, one that has more does not.
	_, err := f.RegisterNode(f.ctx, "gone", with("a"))
	f.conflict(err, store.LacksFeature)
	f.same(want(f.Node(f.ctx, "gone"))(f).Status.Lifecycle, model.Down)
	_, err = f.RegisterNode(f.ctx, "another", with("b", "c"))
	f.conflict(err, store.LacksFeature)
	_, err = f.Node(f.ctx, "another")
	f.missing(err, "node")
	f.same(want(f.RegisterNode(f.ctx, "gone", with("a", "b", "c")))(f).Status.Lifecycle, model.Live)
}
