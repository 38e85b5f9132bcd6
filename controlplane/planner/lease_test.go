package planner

import (
	"context"
	"testing"
	"time"
)

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
