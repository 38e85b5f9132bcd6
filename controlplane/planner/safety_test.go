package planner

import (
	"slices"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/placement"
)

// readAndPlan is the first half of a pass; the second is carryOut.
func readAndPlan(c *cluster, p *Planner) (*reading, []placement.Decision) {
	c.t.Helper()
	r, err := p.read(c.ctx)
	c.check(err)
	return r, placement.Plan(r.input)
}

func carryOut(c *cluster, p *Planner, r *reading, ds []placement.Decision) {
	w := &writer{p: p, reading: r, until: p.o.Clock().Add(time.Hour)}
	w.write(c.ctx, order(ds))
}

// Of two planners that both saw the last slot free, one is fenced, and one copy
// begins.
func TestOneSlotIsTakenOnce(t *testing.T) {
	everywhere(t, func(t *testing.T, c *cluster) {
		c.register("a", "b", "d")
		one, two := c.stream("one", 1, 1), c.stream("two", 1, 1)
		c.put(model.Assignment{ShardKey: one, Leader: "a"})
		c.put(model.Assignment{ShardKey: two, Leader: "b"})
		c.lifecycle("a", model.Draining)
		c.lifecycle("b", model.Draining)
		var seen tally
		first, second := c.planner(0), c.planner(1, observed(&seen))
		r1, d1 := readAndPlan(c, first)
		r2, _ := readAndPlan(c, second)
		carryOut(c, first, r1, d1)
		if c.at(one).Successor == "" {
			t.Fatalf("the first planner began nothing: %+v", c.at(one))
		}
		// The second one chose the other shard.
		other, refusal := placement.StartMove(r2.input, two, "d")
		if refusal != nil {
			t.Fatal(refusal.Message)
		}
		carryOut(c, second, r2, []placement.Decision{other})
		if a := c.at(two); a.Successor != "" || a.Generation != 0 {
			t.Errorf("two copies hold one slot: %+v", a)
		}
		if seen.of("fenced") != 1 {
			t.Errorf("%d writes were fenced", seen.of("fenced"))
		}
	})
}

// A planner that was held up cannot undo what was written meanwhile, with an old
// token or with a new one.
func TestStalePlannerCannotUndoACutOver(t *testing.T) {
	everywhere(t, func(t *testing.T, c *cluster) {
		c.register("a", "b")
		k := c.stream("s", 1, 1)
		c.put(model.Assignment{ShardKey: k, Leader: "a"})
		c.put(model.Assignment{ShardKey: k, Leader: "a", Replicas: []string{"b"}, Successor: "b", State: model.ShardDraining})
		var seen tally
		first, second := c.planner(0), c.planner(1, observed(&seen))
		r2, err := second.read(c.ctx)
		c.check(err)
		retake, refusal := placement.CancelMove(r2.input, k)
		if refusal != nil {
			t.Fatal(refusal.Message)
		}
		c.report(k, true, map[string]uint64{"b": 0})
		first.pass(c.ctx)
		cut := c.at(k)
		if cut.Leader != "b" || cut.State != model.Assigning {
			t.Fatalf("no cut-over: %+v", cut)
		}
		carryOut(c, second, r2, []placement.Decision{retake})
		r2.token, err = c.store().PlacementToken(c.ctx)
		c.check(err)
		carryOut(c, second, r2, []placement.Decision{retake})
		if now := c.at(k); now.Leader != "b" || now.Generation != cut.Generation {
			t.Errorf("the cut-over was undone: %+v", now)
		}
		if seen.of("fenced") != 1 || seen.of("conflict") != 1 {
			t.Errorf("fenced %d, stale %d", seen.of("fenced"), seen.of("conflict"))
		}
	})
}

// A broker that registers again after it was read as down keeps its shards.
func TestLeaderThatComesBackIsNotReplaced(t *testing.T) {
	everywhere(t, func(t *testing.T, c *cluster) {
		c.register("a", "b")
		k := c.stream("s", 1, 2)
		c.put(model.Assignment{ShardKey: k, Leader: "a", Replicas: []string{"b"}})
		c.report(k, false, map[string]uint64{"b": 0})
		c.lifecycle("a", model.Down)
		p := c.planner(0)
		r, ds := readAndPlan(c, p)
		if ds[0].Action != placement.Place {
			t.Fatalf("no failover is planned: %+v", ds[0])
		}
		c.register("a")
		carryOut(c, p, r, ds)
		if a := c.at(k); a.Leader != "a" || a.Generation != 0 {
			t.Errorf("the shard was taken from a leader that serves: %+v", a)
		}
	})
}

// A shard whose leader is down goes to a follower that a fresh report calls
// caught up, and to nobody else.
func TestPromotionNeedsAFreshReport(t *testing.T) {
	c := inMemory(t)
	c.register("a", "b", "d")
	k := c.stream("s", 1, 2)
	c.put(model.Assignment{ShardKey: k, Leader: "a", Replicas: []string{"b"}})
	p := c.planner(0)
	unplaced := func(why string) {
		t.Helper()
		p.pass(c.ctx)
		if a := c.at(k); a.Leader != "a" {
			t.Fatalf("%s: placed on %s", why, a.Leader)
		}
		v, err := p.Plan(c.ctx)
		c.check(err)
		if len(v.Items) != 1 || v.Items[0].Code != string(placement.NoCaughtUpReplica) || v.Items[0].Reason == "" {
			t.Fatalf("%s: %+v", why, v.Items)
		}
	}
	c.lifecycle("a", model.Down)
	unplaced("no report")
	c.report(k, false, map[string]uint64{"b": 1})
	unplaced("a follower that lacks a record")
	c.report(k, false, map[string]uint64{"b": 0})
	c.clock.advance(35*time.Second + time.Millisecond)
	unplaced("a report of 35 s ago")
	c.report(k, false, map[string]uint64{"b": 0})
	c.clock.advance(35 * time.Second)
	p.pass(c.ctx)
	if a := c.at(k); a.Leader != "b" || len(a.Replicas) != 1 || a.Replicas[0] != "a" {
		t.Errorf("a fresh report of a caught-up follower: %+v", a)
	}
}

// A step of a move rests on a report of exactly the generation there is.
func TestStepsNeedAReportOfTheirGeneration(t *testing.T) {
	everywhere(t, func(t *testing.T, c *cluster) {
		c.register("a", "b")
		k := c.stream("s", 1, 1)
		c.put(model.Assignment{ShardKey: k, Leader: "a"})
		staged := c.put(model.Assignment{ShardKey: k, Leader: "a", Replicas: []string{"b"}, Successor: "b"})
		c.report(k, true, map[string]uint64{"b": 0})
		staged = c.put(staged) // the next generation
		p := c.planner(0)
		p.pass(c.ctx)
		if a := c.at(k); a.Generation != staged.Generation {
			t.Fatalf("fenced on an old report: %+v", a)
		}
		c.report(k, true, map[string]uint64{"b": 0})
		p.pass(c.ctx)
		fenced := c.at(k)
		if fenced.State != model.ShardDraining {
			t.Fatalf("not fenced: %+v", fenced)
		}
		p.pass(c.ctx)
		if a := c.at(k); a.Generation != fenced.Generation {
			t.Errorf("cut over on the report from before the fence: %+v", a)
		}
	})
}

// A whole drain, each step by another instance on another store.
func TestEveryStepResumesElsewhere(t *testing.T) {
	everywhere(t, func(t *testing.T, c *cluster) {
		c.register("a", "b", "d")
		k := c.stream("s", 1, 2)
		c.put(model.Assignment{ShardKey: k, Leader: "a", Replicas: []string{"b"}})
		c.lifecycle("a", model.Draining)
		instance := 0
		var seen tally
		step := func(name string, quiet bool, ok func(a model.Assignment) bool) {
			t.Helper()
			instance++
			before := c.at(k)
			p := c.planner(instance, observed(&seen))
			p.pass(c.ctx)
			if seen.of(name) == 0 || !ok(c.at(k)) {
				t.Fatalf("%s: from %+v to %+v", name, before, c.at(k))
			}
			if c.at(k).Generation != before.Generation+1 {
				t.Fatalf("%s: not one write", name)
			}
			if !quiet {
				return
			}
			// Without news another instance writes nothing.
			c.planner(instance + 1).pass(c.ctx)
			if c.at(k).Generation != before.Generation+1 {
				t.Fatalf("after %s, %+v was written without a report", name, c.at(k))
			}
		}
		all := map[string]uint64{"b": 5000, "d": 5000}
		step("stage", true, func(a model.Assignment) bool { return a.Successor != "" && a.MoveReason == model.MoveDrain })
		to := c.at(k).Successor
		all[to] = 900
		c.report(k, false, all)
		step("fence", true, func(a model.Assignment) bool { return a.State == model.ShardDraining && a.Successor == to })
		all[to] = 0
		c.report(k, true, all)
		step("cut_over", false, func(a model.Assignment) bool {
			return a.Leader == to && a.Successor == "" && a.State == model.Assigning && a.MoveStartedAtMillis == nil &&
				a.MoveReason == "" && slices.Equal(a.Replicas, []string{"a"})
		})
		// The old leader is the one whole copy beside the new one. It leaves last.
		step("reseat", true, func(a model.Assignment) bool {
			return a.Joining != "" && a.MoveReason == model.MoveReplace && len(a.Replicas) == 2
		})
		joining := c.at(k).Joining
		c.report(k, false, map[string]uint64{"a": 0, joining: 1000})
		step("seat", true, func(a model.Assignment) bool {
			return a.Joining == "" && a.MoveStartedAtMillis == nil && slices.Equal(a.Replicas, []string{joining})
		})
	})
}
