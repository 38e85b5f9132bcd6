package planner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/placement"
	"github.com/felixlog/felix/controlplane/store"
)

// How often an operator's call is decided anew because something was written
// meanwhile, and how long it waits if that was somebody else's placement
// (control plane 8.7).
const (
	operatorAttempts = 5
	fencedWait       = 20 * time.Millisecond
)

// StartMove moves a shard to a node (control plane 8.7). A dry run decides and
// writes nothing. A refusal is a [*MoveRefusal]; other errors are the store's.
func (p *Planner) StartMove(ctx context.Context, key model.ShardKey, destination string, dryRun bool) (MoveResult, error) {
	return p.operate(ctx, dryRun, func(r *reading) (placement.Decision, *placement.Refusal) {
		return placement.StartMove(r.input, key, destination)
	})
}

// CancelMove ends a move, replacement or restoration (control plane 8.6). Errors
// are those of StartMove.
func (p *Planner) CancelMove(ctx context.Context, key model.ShardKey) (MoveResult, error) {
	return p.operate(ctx, false, func(r *reading) (placement.Decision, *placement.Refusal) {
		return placement.CancelMove(r.input, key)
	})
}

// Abandon gives up what only brokers that are gone hold of a shard, so that it is
// served again. Errors are those of StartMove; a shard that is served, or that
// is placed without a loss by itself, is refused with not_lost.
func (p *Planner) Abandon(ctx context.Context, key model.ShardKey) (MoveResult, error) {
	return p.operate(ctx, false, func(r *reading) (placement.Decision, *placement.Refusal) {
		return placement.GiveUp(r.input, r.reports, key)
	})
}

// Pause keeps moves from starting, or lets them (control plane 8.8). Letting
// them wakes the planner.
func (p *Planner) Pause(ctx context.Context, paused bool) error {
	if err := p.o.Store.SetMovesPaused(ctx, paused); err != nil {
		return err
	}
	if !paused {
		p.Wake()
	}
	return nil
}

// operate decides from a fresh reading and writes at its generation and token,
// again if that was overtaken.
func (p *Planner) operate(
	ctx context.Context, dryRun bool, decide func(*reading) (placement.Decision, *placement.Refusal),
) (MoveResult, error) {
	p.operators.Add(1)
	err := p.take(ctx)
	p.operators.Add(-1)
	if err != nil {
		return MoveResult{}, err
	}
	defer p.giveTurn()
	for range operatorAttempts {
		r, err := p.read(ctx)
		if err != nil {
			return MoveResult{}, err
		}
		d, refusal := decide(r)
		if refusal != nil {
			return MoveResult{}, refused(refusal)
		}
		if dryRun {
			return MoveResult{Step: string(d.Action), Assignment: *d.Assignment, DryRun: true}, nil
		}
		result, err := p.o.Store.PutAssignmentIf(ctx, *d.Assignment, d.Expected, r.token)
		var gone *store.NotFoundError
		switch {
		case errors.As(err, &gone):
			return MoveResult{}, &MoveRefusal{http.StatusNotFound, string(placement.UnknownShard), "the shard was deleted meanwhile"}
		case err != nil:
			return MoveResult{}, fmt.Errorf("write the assignment: %w", err)
		}
		switch result.Outcome {
		case store.Written:
			p.wrote(ctx, &d, r.input.NowMillis)
			p.Wake()
			return MoveResult{Step: string(d.Action), Assignment: result.Written}, nil
		case store.Stale:
			p.o.Observer.ShardAssignmentWriteConflict()
			p.doubts.Store(true)
		case store.Fenced:
			p.o.Observer.PlacementWriteFenced()
			if !sleep(ctx, fencedWait) {
				return MoveResult{}, ctx.Err()
			}
		}
	}
	return MoveResult{}, &MoveRefusal{
		http.StatusConflict, "contended", "others write placement all the time: try again in a moment",
	}
}

// refused gives a refusal its status.
func refused(r *placement.Refusal) *MoveRefusal {
	status := http.StatusConflict
	if r.Code == placement.UnknownShard || r.Code == placement.UnknownNode {
		status = http.StatusNotFound
	}
	return &MoveRefusal{status, string(r.Code), r.Message}
}
