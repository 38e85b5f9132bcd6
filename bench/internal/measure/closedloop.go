package measure

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/felixlog/felix/bench/internal/stats"
)

// ClosedLoop keeps workers requests in flight: each worker calls op again as
// soon as the last call has answered. Requests that begin after the warm-up
// and before the end of the measured part are timed; bytes is the payload of
// one. A closed loop sends less when the server slows, so its p99 is that of
// its own load, not of a fixed rate.
func ClosedLoop(ctx context.Context, p Phases, workers int, bytes int, op func(ctx context.Context, worker int) error) (Result, error) {
	g, ctx := errgroup.WithContext(ctx)
	begin := time.Now().Add(p.Warmup)
	end := begin.Add(p.Measure)
	lats := make([]*stats.Latency, workers)
	lasts := make([]time.Time, workers)
	for w := range workers {
		g.Go(func() error {
			lat := stats.NewLatency()
			at := time.Now()
			for at.Before(end) {
				if err := op(ctx, w); err != nil {
					return err
				}
				now := time.Now()
				if !at.Before(begin) {
					lat.Record(now.Sub(at))
				}
				at = now
			}
			lats[w], lasts[w] = lat, at
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return Result{}, err
	}
	total, last := lats[0], lasts[0]
	for w := 1; w < workers; w++ {
		total.Merge(lats[w])
		if lasts[w].After(last) {
			last = lasts[w]
		}
	}
	n := uint64(total.Count())
	return Result{
		Records: n,
		Bytes:   n * uint64(bytes),
		Elapsed: last.Sub(begin),
		P50:     total.Quantile(.5),
		P99:     total.Quantile(.99),
	}, nil
}
