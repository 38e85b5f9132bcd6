package planner

import (
	"slices"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/placement"
)

func TestViewsOfMovesAndCopies(t *testing.T) {
	c := inMemory(t)
	k := c.fencedMove()
	c.report(k, true, map[string]uint64{"b": 3})
	p := c.planner(0)
	m, err := p.Moves(c.ctx)
	c.check(err)
	if len(m.Items) != 1 || m.Paused {
		t.Fatalf("moves: %+v", m)
	}
	got := m.Items[0]
	if got.Leader != "a" || got.Destination != "b" || got.Step != "fenced" || got.Reason != model.MoveOperator || !got.Drained ||
		got.CaughtUp || got.LagRecords == nil || *got.LagRecords != 3 || got.Generation != 2 || got.StartedAtMillis == nil {
		t.Errorf("move: %+v", got)
	}
	two := c.stream("two", 1, 3)
	c.put(model.Assignment{ShardKey: two, Leader: "a", Replicas: []string{"b", "d"}, Joining: "d", MoveReason: model.MoveRestore})
	three := c.stream("three", 1, 2)
	c.put(model.Assignment{ShardKey: three, Leader: "d", Replicas: []string{"a"}})
	c.lifecycle("d", model.Down)
	v, err := p.Replication(c.ctx)
	c.check(err)
	want := []ShardReplication{
		{ShardKey: three, Leader: "d", DesiredReplicas: 2, CurrentReplicas: 1, UnderReplicated: true, Unavailable: true},
		{ShardKey: two, Leader: "a", DesiredReplicas: 3, CurrentReplicas: 2, UnderReplicated: true, Restoring: true},
	}
	if v.UnderReplicated != 2 || !slices.Equal(v.Items, want) {
		t.Errorf("replication: %+v", v)
	}
	m, err = p.Moves(c.ctx)
	c.check(err)
	if i := slices.IndexFunc(m.Items, func(m ShardMove) bool { return m.Step == "restoring" }); i < 0 || m.Items[i].Destination != "d" {
		t.Errorf("moves: %+v", m.Items)
	}
}

func TestNodeViewSaysWhy(t *testing.T) {
	p := inMemory(t).planner(0)
	const now = 1_000_000
	node := func(l model.Lifecycle, age, weight uint64) model.Node {
		return model.Node{
			Spec:   model.NodeSpec{Capacity: model.Capacity{Weight: uint32(weight)}},
			Status: model.NodeStatus{Lifecycle: l, LastHeartbeatAtMillis: now - age},
		}
	}
	for name, v := range map[string]struct {
		node               model.Node
		eligible, routable bool
		reasons            int
	}{
		"live":             {node(model.Live, 15_000, 1), true, true, 0},
		"late":             {node(model.Live, 15_001, 1), false, false, 1},
		"draining":         {node(model.Draining, 0, 1), false, true, 1},
		"draining, late":   {node(model.Draining, 15_001, 1), false, false, 2},
		"down":             {node(model.Down, 90_000, 1), false, false, 1},
		"left":             {node(model.Left, 0, 1), false, false, 1},
		"weightless":       {node(model.Live, 0, 0), false, true, 1},
		"down, weightless": {node(model.Down, 0, 0), false, false, 2},
	} {
		got := p.NodeView(v.node, now).Placement
		if got.Eligible != v.eligible || got.Routable != v.routable || len(got.Reasons) != v.reasons ||
			got.HeartbeatAgeMS != now-v.node.Status.LastHeartbeatAtMillis {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := p.NodeView(node(model.Live, 0, 1), now-5).Placement; got.HeartbeatAgeMS != 0 || !got.Routable {
		t.Errorf("a heartbeat from ahead of the clock: %+v", got)
	}
}

// A move that is waited for is told with its reason.
func TestPlanTellsWhatWaits(t *testing.T) {
	c := inMemory(t)
	k := c.staged()
	other := c.stream("other", 1, 1)
	c.put(model.Assignment{ShardKey: other, Leader: "d"})
	c.lifecycle("d", model.Draining)
	v, err := c.planner(0).Plan(c.ctx)
	c.check(err)
	if len(v.Items) != 1 || v.Items[0].ShardKey != other || v.Items[0].Action != "waiting" ||
		v.Items[0].Code != string(placement.MoveLimit) || v.Items[0].Reason == "" || v.Items[0].Assignment != nil {
		t.Errorf("plan: %+v", v.Items)
	}
	if a := c.at(k); a.Generation != 1 {
		t.Errorf("a plan wrote: %+v", a)
	}
}
