package planner

import (
	"context"
	"errors"
	"time"

	"github.com/felixlog/felix/controlplane/placement"
	"github.com/felixlog/felix/controlplane/store"
)

// A writer writes the decisions of one reading.
type writer struct {
	p *Planner
	*reading
	until time.Time // when the pass has had its time
	again bool      // something is left that a new plan has to see
}

// write writes the decisions in order and says whether another pass is due at
// once: the decisions were overtaken or cut short, or steps were taken that may
// let others go on.
func (w *writer) write(ctx context.Context, todo []*placement.Decision) (again bool) {
	for first := true; len(todo) > 0 && ctx.Err() == nil; first = false {
		if !first && (w.p.operators.Load() > 0 || !w.p.o.Clock().Before(w.until)) {
			return true
		}
		n := min(len(todo), store.MaxPuts)
		if !w.together(ctx, todo[:n]) {
			return w.again
		}
		todo = todo[n:]
	}
	return w.again
}

// together writes a chunk in one step, and says whether the pass goes on.
func (w *writer) together(ctx context.Context, chunk []*placement.Decision) bool {
	puts := make([]store.Put, len(chunk))
	for i, d := range chunk {
		puts[i] = store.Put{Assignment: *d.Assignment, Expected: d.Expected}
	}
	results, err := w.p.o.Store.PutAssignmentsIf(ctx, puts, w.token)
	if err != nil {
		if len(chunk) == 1 || unsure(err) {
			w.refused(ctx, err)
			return !unsure(err)
		}
		return w.apart(ctx, chunk)
	}
	for i, d := range chunk {
		if !w.done(ctx, d, results[i]) {
			return false
		}
	}
	return true
}

// apart writes a chunk one by one, because one of them is refused: the others
// are not to suffer from it.
func (w *writer) apart(ctx context.Context, chunk []*placement.Decision) bool {
	for _, d := range chunk {
		result, err := w.p.o.Store.PutAssignmentIf(ctx, *d.Assignment, d.Expected, w.token)
		if err != nil {
			w.refused(ctx, err)
			if unsure(err) {
				return false
			}
			continue
		}
		if !w.done(ctx, d, result) {
			return false
		}
	}
	return true
}

// refused tells of a write that was. A stream or cache that was deleted meanwhile
// is no failure: the next plan does not have it.
func (w *writer) refused(ctx context.Context, err error) {
	w.p.doubts.Store(true)
	var gone *store.NotFoundError
	if errors.As(err, &gone) {
		w.again = true
		return
	}
	w.p.failed(ctx, "write an assignment", err)
}

// unsure says that nobody knows whether the write happened, and with it which
// token there is.
func unsure(err error) bool {
	var unavailable *store.UnavailableError
	return errors.As(err, &unavailable) || errors.Is(err, store.ErrClosed) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// done takes the result of one write, and says whether the pass goes on.
func (w *writer) done(ctx context.Context, d *placement.Decision, r store.PutResult) bool {
	switch r.Outcome {
	case store.Fenced:
		w.p.o.Observer.PlacementWriteFenced()
		w.again = true
		return false
	case store.Stale:
		w.p.o.Observer.ShardAssignmentWriteConflict()
		w.p.doubts.Store(true)
		w.again = true
		return true
	}
	w.token = r.Token
	w.again = w.again || d.Action.Step()
	w.p.wrote(ctx, d, w.input.NowMillis)
	return true
}
