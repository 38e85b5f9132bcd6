package planner

import (
	"context"
	"log/slog"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/placement"
)

// maxFenced bounds what is remembered of moves that this instance fenced.
const maxFenced = 1024

// wrote counts and logs a decision that was written. The turn is held.
func (p *Planner) wrote(ctx context.Context, d *placement.Decision, now uint64) {
	o, level := p.o.Observer, slog.LevelInfo
	if d.Expected == nil {
		o.ShardAssignmentChange(model.Assigned)
		level = slog.LevelDebug
	} else {
		o.ShardAssignmentChange(model.Updated)
	}
	if d.Action == placement.Place {
		o.ShardsPlaced(1)
	} else {
		o.ShardMoveStep(string(d.Action))
	}
	p.timed(d, now)
	if !p.o.Logger.Enabled(ctx, level) {
		return
	}
	p.o.Logger.Log(ctx, level, "shard assignment written", "shard", d.Key.String(), "action", string(d.Action),
		"leader", d.Assignment.Leader, "replicas", d.Assignment.Replicas, "generation", d.Assignment.Generation,
		"reason", d.Reason)
}

// timed observes how long a move took, and its fence, where this instance wrote
// it.
func (p *Planner) timed(d *placement.Decision, now uint64) {
	switch d.Action {
	case placement.TimedOut:
		p.o.Observer.ShardMoveTimedOut()
	case placement.Fence:
		if len(p.fenced) < maxFenced {
			p.fenced[d.Key] = now
		}
		return
	case placement.CutOver:
		if start := d.Before.MoveStartedAtMillis; start != nil {
			p.o.Observer.ShardMoveDuration(between(*start, now))
		}
		if at, ok := p.fenced[d.Key]; ok {
			p.o.Observer.ShardMoveFence(between(at, now))
		}
	case placement.Abandon:
		if d.Assignment.State == model.ShardDraining {
			return
		}
	}
	delete(p.fenced, d.Key)
}

// between is the time from one instant of the store's clock to another.
func between(from, to uint64) time.Duration {
	return time.Duration(to-min(from, to)) * time.Millisecond
}
