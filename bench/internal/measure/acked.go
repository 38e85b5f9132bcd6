package measure

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// An Acked is a run of one publisher that keeps batches in flight and counts
// those acknowledged.
type Acked struct {
	// Batch is the records of one batch, RecordBytes the payload of each.
	Batch       int
	RecordBytes int
	// Window is how many payload bytes the publisher lets be unanswered.
	Window int
}

// Run sends through the warm-up and the measured part, then flushes. send
// hands over one batch and calls done when it is answered; flush waits until
// all are. The rate counts answers from the end of the warm-up to the last.
func (a Acked) Run(ctx context.Context, p Phases, send func(ctx context.Context, done func(error)) error, flush func(ctx context.Context) error) (Result, error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var acked atomic.Uint64
	done := func(err error) {
		if err != nil {
			fail(fmt.Errorf("publish refused: %w", err))
			return
		}
		acked.Add(1)
	}
	var sent uint64
	until := func(end time.Time) error {
		for time.Now().Before(end) {
			if err := send(ctx, done); err != nil {
				return fmt.Errorf("send: %w", err)
			}
			sent++
		}
		return context.Cause(ctx)
	}
	if err := until(time.Now().Add(p.Warmup)); err != nil {
		return Result{}, err
	}
	before, begin := acked.Load(), time.Now()
	if err := until(begin.Add(p.Measure)); err != nil {
		return Result{}, err
	}
	if err := flush(ctx); err != nil {
		return Result{}, fmt.Errorf("flush: %w", err)
	}
	elapsed := time.Since(begin)
	if err := context.Cause(ctx); err != nil {
		return Result{}, err
	}
	n := (acked.Load() - before) * uint64(a.Batch)
	return Result{
		Records: n,
		Bytes:   n * uint64(a.RecordBytes),
		Elapsed: elapsed,
		Window:  uint64(a.Window),
		Lost:    (sent - acked.Load()) * uint64(a.Batch),
	}, nil
}
