package planner

import (
	"context"
	"time"

	"github.com/felixlog/felix/controlplane/placement"
)

// pass plans once and writes what was decided. It answers when another one is
// worth while, 0 for at the next tick.
func (p *Planner) pass(ctx context.Context) (again time.Duration) {
	if p.take(ctx) != nil {
		return 0
	}
	defer p.giveTurn()
	began := p.o.Clock()
	r, err := p.read(ctx)
	if err != nil {
		p.failed(ctx, "plan", err)
		return 0
	}
	decisions, lacking := placement.PlanLacking(r.input)
	p.observe(decisions, lacking)
	w := &writer{p: p, reading: r, until: began.Add(p.o.Reconcile)}
	if w.write(ctx, order(decisions)) {
		p.Wake()
	}
	return p.settles(r, decisions)
}

// observe sets the gauges of the last pass.
func (p *Planner) observe(decisions []placement.Decision, lacking []placement.Copies) {
	unplaceable, waiting := 0, 0
	for i := range decisions {
		switch decisions[i].Action {
		case placement.Unplaceable:
			unplaceable++
		case placement.Waiting:
			waiting++
		}
	}
	p.o.Observer.ShardsUnplaceable(unplaceable)
	p.o.Observer.ShardMovesWaiting(waiting)
	p.o.Observer.ShardsUnderReplicated(underReplicated(lacking))
}

// settles is when shards that wait for a young cluster need not wait any more.
func (p *Planner) settles(r *reading, decisions []placement.Decision) time.Duration {
	waits := false
	for i := range decisions {
		waits = waits || decisions[i].Code == placement.Settling
	}
	if !waits {
		return 0
	}
	first := ^uint64(0)
	for _, n := range r.input.Nodes {
		first = min(first, n.Status.RegisteredAtMillis)
	}
	end := first + p.o.Policy.SettleMillis
	return time.Duration(end-min(end, r.input.NowMillis)+1) * time.Millisecond
}

// order lists the decisions to be written: those about shards that are placed
// already come before new shards, of which there may be many.
func order(decisions []placement.Decision) []*placement.Decision {
	var changes, firsts []*placement.Decision
	for i := range decisions {
		switch d := &decisions[i]; {
		case d.Assignment == nil:
		case d.Expected == nil:
			firsts = append(firsts, d)
		default:
			changes = append(changes, d)
		}
	}
	return append(changes, firsts...)
}
