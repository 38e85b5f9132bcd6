package measure

import (
	"context"
	"time"
)

// A Part is what one round of a run completed.
type Part struct {
	// Records were completed in Elapsed, the work of the round alone.
	Records uint64
	Elapsed time.Duration
	// Flushes of the server to its device, where the round counts them.
	Flushes uint64
}

// Rounds repeats work that is used up and has to be set up again: a backlog
// that is drained, claims that are settled. round sets it up, does it for at
// most budget (less when it is used up sooner) until all of it is completed,
// and checks what came of it; only what it reports as Elapsed counts. bytes is
// the payload of one record. The warm-up is rounds too, and is not reported.
func Rounds(ctx context.Context, p Phases, bytes int, round func(ctx context.Context, budget time.Duration) (Part, error)) (Result, error) {
	if _, err := rounds(ctx, p.Warmup, round); err != nil {
		return Result{}, err
	}
	total, err := rounds(ctx, p.Measure, round)
	if err != nil {
		return Result{}, err
	}
	return Result{
		Records: total.Records,
		Bytes:   total.Records * uint64(bytes),
		Elapsed: total.Elapsed,
		Flushes: total.Flushes,
	}, nil
}

func rounds(ctx context.Context, budget time.Duration, round func(context.Context, time.Duration) (Part, error)) (Part, error) {
	var total Part
	for total.Elapsed < budget {
		part, err := round(ctx, budget-total.Elapsed)
		if err != nil {
			return Part{}, err
		}
		if err := context.Cause(ctx); err != nil {
			return Part{}, err
		}
		total.Records += part.Records
		total.Elapsed += part.Elapsed
		total.Flushes += part.Flushes
	}
	return total, nil
}
