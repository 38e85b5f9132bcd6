package planner

import (
	"context"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/placement"
	"github.com/felixlog/felix/controlplane/store"
)

// counting counts the calls that write, and lets time pass with each.
type counting struct {
	store.Store
	c       *cluster
	each    time.Duration
	batches int
	lookups int
}

func (s *counting) PutAssignmentsIf(ctx context.Context, puts []store.Put, token uint64) ([]store.PutResult, error) {
	s.batches++
	s.c.clock.advance(s.each)
	return s.Store.PutAssignmentsIf(ctx, puts, token)
}

func (s *counting) Assignment(ctx context.Context, k model.ShardKey) (model.Assignment, error) {
	s.lookups++
	return s.Store.Assignment(ctx, k)
}

func (c *cluster) placed() int {
	c.t.Helper()
	all, err := c.store().Assignments(c.ctx)
	c.check(err)
	return len(all)
}

func counted(s *counting) func(*Options) { return func(o *Options) { o.Store = s } }

// Many new shards are written many at a time, and failovers before them.
func TestNewShardsAreWrittenTogether(t *testing.T) {
	c := inMemory(t)
	c.register("a", "b")
	c.stream("s", 1000, 1)
	c.create(model.Stream{Stream: "z", Shards: 1})
	k := model.ShardKey{TenantID: "t", Namespace: "ns", Stream: "z", Kind: model.StreamShard}
	c.put(model.Assignment{ShardKey: k, Leader: "a"})
	c.lifecycle("a", model.Down)
	s := &counting{Store: c.store(), c: c}
	var seen tally
	p := c.planner(0, counted(s), observed(&seen))
	r, ds := readAndPlan(c, p)
	if first := order(ds)[0]; first.Key != k {
		t.Errorf("a failover waits behind new shards: %v is first", first.Key)
	}
	carryOut(c, p, r, ds)
	if c.placed() != 1001 || c.at(k).Leader != "b" {
		t.Errorf("%d of 1001 shards are placed", c.placed())
	}
	if s.batches != 4 || seen.of("placed") != 1001 || seen.of("assigned") != 1000 || seen.of("updated") != 1 {
		t.Errorf("%d batches, observed %v", s.batches, seen.counts)
	}
	if again := r.token; again != 1002 {
		t.Errorf("the token is %d after 1002 writes", again)
	}
}

// A pass ends when it has had its time, or an operator waits, and asks for
// another.
func TestLongPassMakesWay(t *testing.T) {
	c := inMemory(t)
	c.register("a")
	c.stream("s", 600, 1)
	s := &counting{Store: c.store(), c: c, each: DefaultReconcile}
	p := c.planner(0, counted(s))
	p.pass(c.ctx)
	if c.placed() != store.MaxPuts || len(p.wake) != 1 {
		t.Errorf("%d shards in a pass that took its time, %d wakes", c.placed(), len(p.wake))
	}
	<-p.wake
	s.each = 0
	p.operators.Add(1)
	p.pass(c.ctx)
	if c.placed() != 2*store.MaxPuts || len(p.wake) != 1 {
		t.Errorf("%d shards while an operator waits, %d wakes", c.placed(), len(p.wake))
	}
	<-p.wake
	p.operators.Add(-1)
	p.pass(c.ctx)
	if c.placed() != 600 || len(p.wake) != 0 {
		t.Errorf("%d shards in the end, %d wakes", c.placed(), len(p.wake))
	}
	batches := s.batches
	p.pass(c.ctx)
	if s.batches != batches || len(p.wake) != 0 {
		t.Error("a settled pass wrote, or asked for another")
	}
}

// One shard that cannot be written does not keep the others from it.
func TestRefusedWriteDoesNotEndThePass(t *testing.T) {
	everywhere(t, func(t *testing.T, c *cluster) {
		c.register("a")
		c.stream("m", 3, 1)
		gone := c.stream("n", 1, 1)
		c.stream("z", 3, 1)
		var seen tally
		p := c.planner(0, observed(&seen))
		r, ds := readAndPlan(c, p)
		c.check(c.store().DeleteStream(c.ctx, model.StreamKey{TenantID: "t", Namespace: "ns", Stream: gone.Stream}))
		carryOut(c, p, r, ds)
		if c.placed() != 6 || seen.of("failure") != 1 {
			t.Errorf("%d of 6 shards are placed, observed %v", c.placed(), seen.counts)
		}
	})
}

// A shard that changed meanwhile is skipped, and the others are written.
func TestStaleShardIsSkipped(t *testing.T) {
	everywhere(t, func(t *testing.T, c *cluster) {
		c.register("a", "b")
		k := c.stream("m", 3, 1)
		var seen tally
		p := c.planner(0, observed(&seen))
		r, ds := readAndPlan(c, p)
		c.put(model.Assignment{ShardKey: k, Leader: "b"})
		token, err := c.store().PlacementToken(c.ctx)
		c.check(err)
		r.token = token
		carryOut(c, p, r, ds)
		if c.placed() != 3 || seen.of("conflict") != 1 || c.at(k).Generation != 0 || c.at(k).Leader != "b" {
			t.Errorf("%d of 3 shards, observed %v, %+v", c.placed(), seen.counts, c.at(k))
		}
	})
}

func TestMoveIsTimed(t *testing.T) {
	c := inMemory(t)
	k := c.staged()
	var seen tally
	p := c.planner(0, observed(&seen))
	c.clock.advance(2 * time.Second)
	c.report(k, false, map[string]uint64{"b": 0})
	p.pass(c.ctx)
	c.clock.advance(3 * time.Second)
	c.report(k, true, map[string]uint64{"b": 0})
	p.pass(c.ctx)
	if seen.of("cut_over") != 1 || seen.of("duration ms") != 5000 || seen.of("fence ms") != 3000 || len(p.fenced) != 0 {
		t.Errorf("observed %v, %d fences remembered", seen.counts, len(p.fenced))
	}
}

// A report wakes the planner when a move waited for it, and the store is asked
// once a generation.
func TestReportsWakeThePlanner(t *testing.T) {
	c := inMemory(t)
	k := c.staged()
	s := &counting{Store: c.store(), c: c}
	p := c.planner(0, counted(s))
	tail := uint64(10_000)
	report := func(gen, b, other uint64, drained bool) bool {
		p.Reported(c.ctx, []model.ReplicaReport{{
			ShardKey: k, Generation: gen, LeaderOffset: &tail, Offsets: map[string]uint64{"b": b, "x": other}, Drained: drained,
		}})
		select {
		case <-p.wake:
			return true
		default:
			return false
		}
	}
	if report(1, 8_999, 10_000, false) {
		t.Error("woken by a destination that is too far behind")
	}
	if !report(1, 9_000, 0, false) {
		t.Error("not woken by a destination that is level")
	}
	if s.lookups != 1 {
		t.Errorf("the store was asked %d times about one generation", s.lookups)
	}
	if report(0, 10_000, 10_000, false) {
		t.Error("woken by a report of another generation")
	}
	if !report(1, 0, 0, true) {
		t.Error("not woken by a leader that has drained")
	}
	p.Reported(c.ctx, []model.ReplicaReport{{ShardKey: k, Generation: 1}})
	if len(p.wake) != 0 {
		t.Error("woken by a report of nobody")
	}
}

func TestNodeViewSaysWhy(t *testing.T) {
	p := New(Options{})
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

// The timed planner is one of several, and gives its place up when it ends.
func TestLeaseIsGivenBack(t *testing.T) {
	c := inPostgres(t)
	var seen held
	p := c.planner(0, func(o *Options) { o.Reconcile, o.Observer = time.Hour, &seen })
	seen.holds = make(chan bool, 8)
	ctx, cancel := context.WithCancel(c.ctx)
	done := make(chan struct{})
	go func() { p.Run(ctx); close(done) }()
	if !<-seen.holds {
		t.Error("the only instance does not hold the lease")
	}
	lease, err := c.stores[1].AcquireLease(c.ctx, "other", time.Hour)
	c.check(err)
	if lease.Held {
		t.Error("two instances hold the lease")
	}
	before, err := c.stores[1].PlacementToken(c.ctx)
	c.check(err)
	cancel()
	<-done
	lease, err = c.stores[1].AcquireLease(c.ctx, "other", time.Hour)
	c.check(err)
	after, err := c.stores[1].PlacementToken(c.ctx)
	c.check(err)
	if !lease.Held || !lease.TakenOver || after <= before {
		t.Errorf("the lease was not given back: %+v, token %d then %d", lease, before, after)
	}
}

type held struct {
	nobody
	holds chan bool
}

func (o *held) PlacementLeaseHeld(held bool) { o.holds <- held }

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
