package planner

import (
	"context"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/model"
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

// A stream that is deleted between plan and write does not keep the others from
// it, and is no failure.
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
		if c.placed() != 6 || seen.of("failure") != 0 {
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

// A silent store stops answering answering after some writes. The last one happened.
type silent struct {
	store.Store
	left int
}

func (s *silent) PutAssignmentsIf(ctx context.Context, puts []store.Put, token uint64) ([]store.PutResult, error) {
	r, err := s.Store.PutAssignmentsIf(ctx, puts, token)
	if s.left--; s.left < 0 {
		return nil, errDown
	}
	return r, err
}

// When nobody knows whether a write happened the pass ends, and the next one sees
// what there is.
func TestPassEndsWhenTheStoreIsSilent(t *testing.T) {
	c := inMemory(t)
	c.register("a")
	c.stream("s", 1000, 1)
	var seen tally
	s := &silent{Store: c.store(), left: 1}
	p := c.planner(0, observed(&seen), func(o *Options) { o.Store = s })
	p.pass(c.ctx)
	if c.placed() != 512 || seen.of("failure") != 1 || seen.of("placed") != 256 {
		t.Errorf("%d shards are placed, observed %v", c.placed(), seen.counts)
	}
	s.left = 10
	p.pass(c.ctx)
	if c.placed() != 1000 || seen.of("placed") != 256+488 {
		t.Errorf("%d shards are placed, observed %v", c.placed(), seen.counts)
	}
}
