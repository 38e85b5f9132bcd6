package cache

import (
	"testing"
	"testing/synctest"
	"time"
)

// realClock is time as package time tells it.
type realClock struct{ fakeClock }

func (*realClock) Now() time.Time { return time.Now() }

// Time as deadlines see it goes as fast as the clock.
func TestSteadyClockKeepsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSteadyClock(&realClock{})
		start := s.Now()
		time.Sleep(90 * time.Minute)
		if d := s.Now().Sub(start); d != 90*time.Minute {
			t.Fatalf("%v have passed, want 90 min", d)
		}
	})
}

// Without a monotonic reading time stands still after a step back, until the
// clock has caught up.
func TestSteadyClockNeverGoesBack(t *testing.T) {
	c := newFakeClock()
	s := newSteadyClock(c)
	start := s.Now().UnixMilli()
	for _, step := range []struct {
		by   time.Duration
		want int64
	}{{time.Second, 1000}, {-time.Hour, 1000}, {30 * time.Minute, 1000}, {30*time.Minute + 5*time.Millisecond, 1005}} {
		c.advance(step.by)
		if got := s.Now().UnixMilli() - start; got != step.want {
			t.Fatalf("%d ms after a step of %v, want %d", got, step.by, step.want)
		}
	}
}
