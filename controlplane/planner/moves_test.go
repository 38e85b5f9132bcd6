package planner

import (
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/model"
)

// staged is a shard on a that moves to b.
func (c *cluster) staged() model.ShardKey {
	c.t.Helper()
	c.register("a", "b", "d")
	k := c.stream("s", 1, 1)
	c.put(model.Assignment{ShardKey: k, Leader: "a"})
	r, err := c.planner(0).StartMove(c.ctx, k, "b", false)
	c.check(err)
	if r.Step != "stage" || r.Assignment.Successor != "b" || r.Assignment.MoveStartedAtMillis == nil ||
		r.Assignment.MoveReason != model.MoveOperator || r.Assignment.Generation != 1 {
		c.t.Fatalf("staged: %+v", r)
	}
	return k
}

// fencedMove is staged, and b is level.
func (c *cluster) fencedMove() model.ShardKey {
	c.t.Helper()
	k := c.staged()
	c.report(k, false, map[string]uint64{"b": 1000})
	c.planner(0).pass(c.ctx)
	if c.at(k).State != model.ShardDraining {
		c.t.Fatalf("not fenced: %+v", c.at(k))
	}
	return k
}

// served says that a serves the shard alone, and no move is under way.
func (c *cluster) served(k model.ShardKey, started bool) {
	c.t.Helper()
	a := c.at(k)
	if a.Leader != "a" || len(a.Replicas) != 0 || a.Successor != "" || a.State != model.Assigning || a.MoveReason != "" ||
		(a.MoveStartedAtMillis != nil) != started {
		c.t.Fatalf("not back where it was: %+v, started %v", a, a.MoveStartedAtMillis)
	}
}

func TestDestinationThatDiesIsAbandoned(t *testing.T) {
	everywhere(t, func(t *testing.T, c *cluster) {
		k := c.staged()
		c.lifecycle("b", model.Down)
		var seen tally
		c.planner(1, observed(&seen)).pass(c.ctx)
		c.served(k, false)
		if seen.of("abandon") != 1 {
			t.Errorf("steps: %v", seen.counts)
		}
	})
}

func TestDestinationThatDiesBehindTheFenceGivesTheShardBack(t *testing.T) {
	everywhere(t, func(t *testing.T, c *cluster) {
		k := c.fencedMove()
		c.lifecycle("b", model.Down)
		var seen tally
		c.planner(1, observed(&seen)).pass(c.ctx)
		c.served(k, false)
		if seen.of("retake") != 1 {
			t.Errorf("steps: %v", seen.counts)
		}
	})
}

func TestMoveTimesOutBeforeTheFenceOnly(t *testing.T) {
	c := inMemory(t)
	k := c.staged()
	var seen tally
	p := c.planner(0, observed(&seen))
	c.clock.advance(30 * time.Minute)
	p.pass(c.ctx)
	if c.at(k).Successor != "b" {
		t.Fatalf("timed out early: %+v", c.at(k))
	}
	c.clock.advance(time.Millisecond)
	p.pass(c.ctx)
	c.served(k, true)
	if seen.of("timed_out") != 1 || seen.of("timed out") != 1 {
		t.Errorf("steps: %v", seen.counts)
	}

	other := inMemory(t)
	k = other.fencedMove()
	other.clock.advance(24 * time.Hour)
	other.planner(0).pass(other.ctx)
	if a := other.at(k); a.State != model.ShardDraining || a.Successor != "b" {
		t.Errorf("a fenced move timed out: %+v", a)
	}
}

func TestCancelBeforeAndBehindTheFence(t *testing.T) {
	everywhere(t, func(t *testing.T, c *cluster) {
		k := c.staged()
		p := c.planner(1)
		r, err := p.CancelMove(c.ctx, k)
		c.check(err)
		if r.Step != "cancel" {
			t.Errorf("step %s", r.Step)
		}
		c.served(k, true)
		_, err = p.CancelMove(c.ctx, k)
		refusedWith(t, err, 409, "not_moving")

		_, err = p.StartMove(c.ctx, k, "b", false)
		c.check(err)
		c.report(k, false, map[string]uint64{"b": 0})
		p.pass(c.ctx)
		if c.at(k).State != model.ShardDraining {
			t.Fatalf("not fenced: %+v", c.at(k))
		}
		c.lifecycle("a", model.Down)
		_, err = p.CancelMove(c.ctx, k)
		refusedWith(t, err, 409, "leader_unavailable")
		c.register("a")
		r, err = p.CancelMove(c.ctx, k)
		c.check(err)
		if r.Step != "retake" || r.Assignment.State != model.Assigning {
			t.Errorf("retake: %+v", r)
		}
		c.served(k, true)
	})
}

func TestPauseHoldsStartsAndNothingElse(t *testing.T) {
	everywhere(t, func(t *testing.T, c *cluster) {
		p := c.planner(0)
		k := c.staged()
		c.check(p.Pause(c.ctx, true))
		// What is in flight goes on.
		c.report(k, false, map[string]uint64{"b": 0})
		p.pass(c.ctx)
		c.report(k, true, map[string]uint64{"b": 0})
		p.pass(c.ctx)
		if c.at(k).Leader != "b" {
			t.Fatalf("a pause held a move in flight: %+v", c.at(k))
		}
		// A drain does not begin, a new shard is placed, a dead leader replaced.
		c.lifecycle("b", model.Draining)
		young := c.stream("young", 1, 1)
		failing := c.stream("z", 1, 2)
		c.put(model.Assignment{ShardKey: failing, Leader: "a", Replicas: []string{"d"}})
		c.report(failing, false, map[string]uint64{"d": 0})
		c.lifecycle("a", model.Down)
		p.pass(c.ctx)
		if a := c.at(k); a.Successor != "" {
			t.Errorf("a drain began in a pause: %+v", a)
		}
		if a := c.at(young); a.Leader != "d" {
			t.Errorf("a new shard was not placed: %+v", a)
		}
		if a := c.at(failing); a.Leader != "d" {
			t.Errorf("no failover in a pause: %+v", a)
		}
		v, err := p.Plan(c.ctx)
		c.check(err)
		if !v.Paused || len(v.Items) != 1 || v.Items[0].Action != "waiting" || v.Items[0].Code != "paused" {
			t.Errorf("plan: %+v", v)
		}
		select {
		case <-p.wake:
		default:
		}
		c.check(p.Pause(c.ctx, false))
		select {
		case <-p.wake:
		default:
			t.Error("a resumption asks for no pass")
		}
		p.pass(c.ctx)
		if a := c.at(k); a.Successor != "d" {
			t.Errorf("the drain did not begin after the pause: %+v", a)
		}
	})
}
