package measure

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// Replay reads the same history again and again until the measured part is
// over, whole each time. read goes through it once and counts what it gets;
// bytes is the payload of one record. The rate is that of the reads which
// began after the warm-up, their opening included.
func Replay(ctx context.Context, p Phases, bytes int, read func(ctx context.Context, count func(n int)) error) (Result, error) {
	var total atomic.Uint64
	count := func(n int) { total.Add(uint64(n)) }
	warm := time.Now().Add(p.Warmup)
	for first := true; first || time.Now().Before(warm); first = false {
		if err := read(ctx, count); err != nil {
			return Result{}, fmt.Errorf("replay: %w", err)
		}
	}
	before, begin := total.Load(), time.Now()
	for end := begin.Add(p.Measure); time.Now().Before(end); {
		if err := read(ctx, count); err != nil {
			return Result{}, fmt.Errorf("replay: %w", err)
		}
	}
	n := total.Load() - before
	return Result{Records: n, Bytes: n * uint64(bytes), Elapsed: time.Since(begin)}, nil
}
