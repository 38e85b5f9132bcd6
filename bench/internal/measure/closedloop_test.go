package measure

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestClosedLoopTimesOnlyTheMeasuredPart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		start := time.Now()
		p := Phases{Warmup: time.Second, Measure: 2 * time.Second}
		r, err := ClosedLoop(t.Context(), p, 4, 100, func(context.Context, int) error {
			calls.Add(1)
			if time.Since(start) < p.Warmup {
				time.Sleep(50 * time.Millisecond) // a slow start must not show
			} else {
				time.Sleep(10 * time.Millisecond)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		// 4 workers, 2 s, 10 ms a call; 20 slow warm-up calls each.
		if r.Records != 800 || r.Bytes != 80_000 || calls.Load() != 880 {
			t.Errorf("records %d bytes %d of %d calls, want 800, 80000 of 880", r.Records, r.Bytes, calls.Load())
		}
		if r.Elapsed != p.Measure {
			t.Errorf("elapsed %v, want %v", r.Elapsed, p.Measure)
		}
		for name, q := range map[string]time.Duration{"p50": r.P50, "p99": r.P99} {
			if q < 9990*time.Microsecond || q > 10010*time.Microsecond {
				t.Errorf("%s = %v, want 10 ms: the warm-up was counted", name, q)
			}
		}
		if why := r.Invalid(); why != "" {
			t.Errorf("a good run is called invalid: %s", why)
		}
	})
}

func TestClosedLoopEndsAtTheLastAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := ClosedLoop(t.Context(), Phases{Measure: time.Second}, 2, 0, func(_ context.Context, w int) error {
			time.Sleep(time.Duration(w+1) * 700 * time.Millisecond)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Records != 3 || r.Elapsed != 1400*time.Millisecond {
			t.Errorf("records %d in %v, want 3 in 1.4 s", r.Records, r.Elapsed)
		}
	})
}

func TestClosedLoopStopsAtTheFirstError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		_, err := ClosedLoop(t.Context(), Phases{Measure: time.Hour}, 3, 0, func(ctx context.Context, w int) error {
			if w == 1 {
				return boom
			}
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, boom) {
			t.Errorf("err = %v, want boom", err)
		}
	})
}
