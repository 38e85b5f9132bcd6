package planner

import (
	"errors"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/placement"
)

// An operator starts a move in a pause, and a dry run writes nothing.
func TestOperatorsMovesInAPauseAndDry(t *testing.T) {
	c := inMemory(t)
	c.register("a", "b")
	k := c.stream("s", 1, 1)
	c.put(model.Assignment{ShardKey: k, Leader: "a"})
	p := c.planner(0)
	c.check(p.Pause(c.ctx, true))
	r, err := p.StartMove(c.ctx, k, "b", true)
	c.check(err)
	if !r.DryRun || r.Step != "stage" || r.Assignment.Successor != "b" || r.Assignment.Generation != 1 {
		t.Errorf("dry run: %+v", r)
	}
	if a := c.at(k); a.Generation != 0 || len(p.wake) != 0 {
		t.Errorf("a dry run wrote or woke: %+v", a)
	}
	_, err = p.StartMove(c.ctx, k, "b", false)
	c.check(err)
	if len(p.wake) != 1 {
		t.Error("a move that starts asks for no pass")
	}
}

func TestAbandonServesALostShardAgain(t *testing.T) {
	everywhere(t, func(t *testing.T, c *cluster) {
		c.register("a", "b")
		k := c.stream("s", 1, 1)
		c.put(model.Assignment{ShardKey: k, Leader: "a"})
		p := c.planner(0)
		_, err := p.Abandon(c.ctx, k)
		refusedWith(t, err, 409, "not_lost")
		c.lifecycle("a", model.Down)
		p.pass(c.ctx)
		if c.at(k).Leader != "a" {
			t.Fatal("the only copy was given up without an order")
		}
		v, err := p.Plan(c.ctx)
		c.check(err)
		if len(v.Items) != 1 || v.Items[0].Code != string(placement.OnlyCopy) {
			t.Errorf("plan: %+v", v.Items)
		}
		r, err := p.Abandon(c.ctx, k)
		c.check(err)
		if r.Step != "discard" || c.at(k).Leader != "b" || len(c.at(k).Replicas) != 0 {
			t.Errorf("abandon: %+v, then %+v", r, c.at(k))
		}
		_, err = p.Abandon(c.ctx, model.ShardKey{TenantID: "t", Namespace: "ns", Stream: "none", Kind: model.StreamShard})
		refusedWith(t, err, 404, "unknown_shard")
	})
}

// An operator's call that is overtaken is decided anew, a few times.
func TestOperatorsCallIsDecidedAnewWhenOvertaken(t *testing.T) {
	c := inMemory(t)
	c.register("a", "b")
	k := c.stream("s", 1, 1)
	c.put(model.Assignment{ShardKey: k, Leader: "a"})
	for _, calls := range []struct {
		overtaken int
		code      string
	}{{4, ""}, {5, "contended"}} {
		s := &overtaken{Store: c.store(), left: calls.overtaken}
		var seen tally
		p := c.planner(0, func(o *Options) { o.Store, o.Observer = s, &seen })
		_, err := p.StartMove(c.ctx, k, "b", false)
		if calls.code == "" {
			c.check(err)
			_, err = p.CancelMove(c.ctx, k)
			c.check(err)
		} else {
			refusedWith(t, err, 409, calls.code)
		}
		if seen.of("fenced")+seen.of("conflict") != calls.overtaken {
			t.Errorf("%v", seen.counts)
		}
	}
}

func refusedWith(t *testing.T, err error, status int, code string) {
	t.Helper()
	var r *MoveRefusal
	if !errors.As(err, &r) || r.Status != status || r.Code != code || r.Message == "" {
		t.Errorf("refused with %+v, want %d %s", err, status, code)
	}
}
