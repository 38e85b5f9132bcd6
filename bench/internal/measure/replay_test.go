package measure

import (
	"context"
	"errors"
	"testing"
	"time"
)

func TestReplayCountsOnlyWhatFollowsTheWarmUp(t *testing.T) {
	reads := 0
	r, err := Replay(t.Context(), Phases{Measure: 10 * time.Millisecond}, 10, func(_ context.Context, count func(int)) error {
		reads++
		count(3)
		count(4)
		time.Sleep(time.Millisecond)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := uint64(reads-1) * 7; reads < 2 || r.Records != want || r.Bytes != 10*want || r.Elapsed <= 0 {
		t.Errorf("%d reads give %+v, want %d records", reads, r, want)
	}
}

func TestAFailedReplayEndsTheRun(t *testing.T) {
	broken := errors.New("broken")
	_, err := Replay(t.Context(), Phases{}, 1, func(context.Context, func(int)) error { return broken })
	if !errors.Is(err, broken) {
		t.Errorf("err = %v", err)
	}
}
