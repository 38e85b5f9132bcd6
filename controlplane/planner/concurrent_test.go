package planner

import (
	"context"
	"sync"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/placement"
	"github.com/felixlog/felix/controlplane/store"
)

// Planners that run at the same time place every shard once, and start one copy
// between them.
func TestPlannersThatRunTogetherAgree(t *testing.T) {
	everywhere(t, func(t *testing.T, c *cluster) {
		c.register("a", "b", "d")
		c.stream("s", 300, 1)
		together := func(rounds int) {
			var planners sync.WaitGroup
			for i := range 4 {
				p := c.planner(i)
				planners.Go(func() {
					for range rounds {
						p.pass(c.ctx)
					}
				})
			}
			planners.Wait()
		}
		for c.placed() < 300 {
			together(2)
		}
		all, err := c.store().Assignments(c.ctx)
		c.check(err)
		for _, a := range all {
			if a.Generation != 0 {
				t.Fatalf("%v was placed more than once", a.ShardKey)
			}
		}
		c.lifecycle("a", model.Draining)
		moving := 0
		for moving == 0 {
			together(3)
			all, err = c.store().Assignments(c.ctx)
			c.check(err)
			for i := range all {
				if _, ok := placement.Moving(&all[i]); ok {
					moving++
				}
			}
		}
		if moving != 1 {
			t.Errorf("%d copies at once", moving)
		}
	})
}

// A sneak lets somebody else act while a planner reads, when the assignments are
// read already.
type sneak struct {
	store.Store
	act func()
}

func (s *sneak) Reports(ctx context.Context) ([]model.ReplicaReport, error) {
	if act := s.act; act != nil {
		s.act = nil
		act()
	}
	return s.Store.Reports(ctx)
}

// What is written while a pass reads fences it, though the shard that it wants
// to move is as it was.
func TestWriteDuringAReadFencesThePass(t *testing.T) {
	everywhere(t, func(t *testing.T, c *cluster) {
		c.register("a", "b", "d")
		one, two := c.stream("one", 1, 1), c.stream("two", 1, 1)
		c.put(model.Assignment{ShardKey: one, Leader: "a"})
		c.put(model.Assignment{ShardKey: two, Leader: "b"})
		c.lifecycle("b", model.Draining)
		s := &sneak{Store: c.store(), act: func() {
			_, err := c.planner(1).StartMove(c.ctx, one, "d", false)
			c.check(err)
		}}
		var seen tally
		p := c.planner(0, observed(&seen), func(o *Options) { o.Store = s })
		p.pass(c.ctx)
		if a := c.at(two); a.Successor != "" || seen.of("fenced") != 1 || len(p.wake) != 1 {
			t.Errorf("two copies hold one slot: %+v, observed %v", a, seen.counts)
		}
		p.pass(c.ctx)
		if a := c.at(two); a.Successor != "" || seen.of("fenced") != 1 {
			t.Errorf("the next pass: %+v, observed %v", a, seen.counts)
		}
	})
}
