package planner

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/felixlog/felix/controlplane/model"
)

// releaseTimeout bounds the call that gives the lease back.
const releaseTimeout = 2 * time.Second

// A Planner decides who serves what, and writes it. It is safe for concurrent
// use.
type Planner struct {
	o    Options
	wake chan struct{} // holds the one wake that is pending
	// turn is held by whoever reads, decides and writes: a pass, or an operator's
	// call. A pass ends early when a call waits.
	turn      chan struct{}
	operators atomic.Int64
	held      bool                      // the lease, as the last tick saw it; of Run
	fenced    map[model.ShardKey]uint64 // when this instance fenced a move; under turn
	seen      seen

	reading chan struct{} // held by whoever reads
	kept    *kept         // under reading
	doubts  atomic.Bool   // what is kept did not fit what the store holds
}

// New makes a planner. It does nothing before Run.
func New(o Options) *Planner {
	return &Planner{
		o: o.withDefaults(), wake: make(chan struct{}, 1), turn: make(chan struct{}, 1),
		fenced: make(map[model.ShardKey]uint64), reading: make(chan struct{}, 1), kept: newKept(o.Store),
	}
}

// Wake asks for a pass soon. Wakes that come before it begins are one.
func (p *Planner) Wake() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// Run sweeps, plans on its timers and plans when woken, until ctx ends. It then
// gives the lease back. It is called once.
func (p *Planner) Run(ctx context.Context) {
	var loops sync.WaitGroup
	loops.Go(func() { p.sweeps(ctx) })
	if p.o.Watch > 0 {
		loops.Go(func() { p.watch(ctx) })
	}
	p.passes(ctx)
	loops.Wait()
	p.release(ctx)
}

// passes runs one pass after the other. A timed one comes a full period after
// the one before has ended, however long that took.
func (p *Planner) passes(ctx context.Context) {
	tick := time.NewTimer(0)
	defer tick.Stop()
	later := time.NewTimer(time.Hour) // set when a pass knows of a time worth planning at
	later.Stop()
	defer later.Stop()
	plan := func() time.Duration {
		began := p.o.Clock()
		if next := p.pass(ctx); next > 0 {
			later.Reset(next)
		}
		return p.o.Clock().Sub(began)
	}
	took, ended := time.Duration(0), p.o.Clock()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if p.leads(ctx) {
				took = plan()
			}
			tick.Reset(p.o.Reconcile)
		case <-later.C:
			p.Wake()
			continue
		case <-p.wake:
			// Woken passes take half of the time at most, so that a burst of wakes
			// shares a few.
			if !sleep(ctx, min(took, time.Second)-p.o.Clock().Sub(ended)) {
				return
			}
			select {
			case <-p.wake:
			default:
			}
			if may, err := p.o.Store.MayPlan(ctx); err != nil {
				p.failed(ctx, "ask who plans", err)
			} else if may {
				took = plan()
			}
		}
		ended = p.o.Clock()
	}
}

// leads takes or renews the lease of the timed planner.
func (p *Planner) leads(ctx context.Context) bool {
	lease, err := p.o.Store.AcquireLease(ctx, p.o.Holder, p.o.leaseTTL())
	if err != nil {
		p.failed(ctx, "take the placement lease", err)
		return false
	}
	p.held = lease.Held
	p.o.Observer.PlacementLeaseHeld(lease.Held)
	if lease.TakenOver {
		p.o.Observer.PlacementLeaseTakeover()
		p.o.Logger.InfoContext(ctx, "this instance plans placement now", "holder", p.o.Holder)
	}
	if !lease.Held {
		// What there is to see is seen by the one that plans.
		p.o.Observer.ShardsUnplaceable(0)
		p.o.Observer.ShardMovesWaiting(0)
		p.o.Observer.ShardsUnderReplicated(0)
	}
	return lease.Held
}

// release gives the lease back, so that another instance need not wait for its
// end.
func (p *Planner) release(ctx context.Context) {
	p.o.Observer.PlacementLeaseHeld(false)
	if !p.held {
		return
	}
	p.held = false
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if err := p.o.Store.ReleaseLease(ctx, p.o.Holder); err != nil {
		p.o.Logger.WarnContext(ctx, "the placement lease was not given back: others wait for its end", "error", err)
	}
}

// failed counts and logs what kept a pass from being complete.
func (p *Planner) failed(ctx context.Context, doing string, err error) {
	if ctx.Err() != nil {
		return
	}
	p.o.Observer.ShardReconcileFailure()
	p.o.Logger.ErrorContext(ctx, "placement could not "+doing, "error", err)
}

// take takes the turn, or gives up with ctx.
func (p *Planner) take(ctx context.Context) error {
	select {
	case p.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *Planner) giveTurn() { <-p.turn }

// sleep waits, and says whether ctx still lives.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
