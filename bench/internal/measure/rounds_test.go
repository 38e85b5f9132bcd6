package measure

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestRoundsCountOnlyTheirWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		warm := true
		var budgets []time.Duration
		// A backlog of 300 records at 100 a second behind a set-up of a
		// minute, and a check of a second after it.
		r, err := Rounds(t.Context(), Phases{Warmup: time.Second, Measure: 7 * time.Second}, 10, func(_ context.Context, budget time.Duration) (Part, error) {
			time.Sleep(time.Minute)
			took := min(budget, 3*time.Second)
			time.Sleep(took)
			time.Sleep(time.Second)
			if !warm {
				budgets = append(budgets, budget)
			}
			warm = false
			return Part{Records: uint64(took / (10 * time.Millisecond)), Elapsed: took, Flushes: 5}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Records != 700 || r.Bytes != 7000 || r.Elapsed != 7*time.Second || r.Flushes != 15 {
			t.Errorf("result %+v, want 700 records and 15 flushes of three rounds in 7 s", r)
		}
		if want := []time.Duration{7 * time.Second, 4 * time.Second, time.Second}; len(budgets) != 3 || budgets[0] != want[0] || budgets[1] != want[1] || budgets[2] != want[2] {
			t.Errorf("budgets %v, want %v", budgets, want)
		}
		if FlushesPerThousand.Of(r) < 21.4 || FlushesPerThousand.Of(r) > 21.5 {
			t.Errorf("%v flushes per 1,000", FlushesPerThousand.Of(r))
		}
	})
}

func TestAFailedRoundEndsTheRun(t *testing.T) {
	broken := errors.New("broken")
	for _, p := range []Phases{{Warmup: time.Second}, {Measure: time.Second}} {
		_, err := Rounds(t.Context(), p, 1, func(context.Context, time.Duration) (Part, error) { return Part{}, broken })
		if !errors.Is(err, broken) {
			t.Errorf("%+v: err = %v", p, err)
		}
	}
}

func TestRoundsEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	_, err := Rounds(ctx, Phases{Measure: time.Hour}, 1, func(context.Context, time.Duration) (Part, error) {
		cancel()
		return Part{}, nil // nothing to do: without a look at ctx this would go on for ever
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("err = %v", err)
	}
}
