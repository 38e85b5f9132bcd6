package memory

import (
	"testing"
	"time"
)

func TestClockGoesOn(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := start
	c := NewClock(func() time.Time { return now })
	last := c.Millis(0)
	if last != uint64(start.UnixMilli()) {
		t.Fatalf("it begins at %d", last)
	}
	for _, step := range []time.Duration{0, time.Hour, -time.Hour, 10 * 365 * 24 * time.Hour, -10 * 365 * 24 * time.Hour} {
		now = now.Add(step)
		from := c.Millis(0)
		if from < last {
			t.Fatalf("a step of %v took it back from %d to %d", step, last, from)
		}
		if from < uint64(now.UnixMilli()) {
			t.Errorf("a step of %v led to %d, which is before %d", step, from, now.UnixMilli())
		}
		// Steps of less than a millisecond add up.
		for range 4000 {
			now = now.Add(500 * time.Microsecond)
			c.Millis(0)
		}
		if last = c.Millis(0); last != from+2000 {
			t.Errorf("in two seconds after a step of %v it went on by %d ms", step, last-from)
		}
	}
	// What another has stamped counts, and the clock goes on from there.
	floor := last + 5000
	if got := c.Millis(floor); got != floor {
		t.Errorf("it gives %d, below %d", got, floor)
	}
	now = now.Add(time.Second)
	if got := c.Millis(0); got != floor+1000 {
		t.Errorf("it gives %d, want %d", got, floor+1000)
	}
}
