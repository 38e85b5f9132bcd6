package steady

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/felixlog/felix/felixtest/stepped"
)

// A hand is a source that stands where it is put.
type hand struct{ now time.Time }

func (h *hand) Now() time.Time                              { return h.now }
func (h *hand) AfterFunc(time.Duration, func()) func() bool { return func() bool { return false } }

// realTime is time as package time tells it.
type realTime struct{ hand }

func (*realTime) Now() time.Time { return time.Now() }

// Time as deadlines see it goes as fast as the clock.
func TestClockKeepsPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(&realTime{})
		start := c.Now()
		time.Sleep(90 * time.Minute)
		if d := c.Now().Sub(start); d != 90*time.Minute {
			t.Fatalf("%v have passed, want 90 min", d)
		}
	})
}

// Without a monotonic reading time stands still after a step back, until the
// clock has caught up.
func TestClockNeverGoesBack(t *testing.T) {
	h := &hand{now: time.UnixMilli(1_000_000)}
	c := New(h)
	start := c.Now().UnixMilli()
	for _, step := range []struct {
		by   time.Duration
		want int64
	}{{time.Second, 1000}, {-time.Hour, 1000}, {30 * time.Minute, 1000}, {30*time.Minute + 5*time.Millisecond, 1005}} {
		h.now = h.now.Add(step.by)
		if got := c.Now().UnixMilli() - start; got != step.want {
			t.Fatalf("%d ms after a step of %v, want %d", got, step.by, step.want)
		}
	}
}

// The steps of a machine's clock are no time that passes, and the clock knows how
// far it was set.
func TestClockTakesNoPartInSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall := new(stepped.Clock)
		c, of := New(wall), Of(wall.Now)
		for _, now := range []func() time.Time{c.Now, of} {
			wall.Set(time.Now())
			start := now()
			for n, by := range []time.Duration{time.Hour, -2 * time.Hour, 87_600 * time.Hour, -100_000 * time.Hour} {
				wall.Step(by)
				time.Sleep(time.Minute)
				got := now()
				if passed := time.Duration(n+1) * time.Minute; got.Sub(start) != passed || got.UnixNano()-start.UnixNano() != int64(passed) {
					t.Fatalf("after a step of %v it tells %v, which was %v, want %v later", by, got, start, passed)
				}
				if got := c.Shift(); got != wall.Off() {
					t.Fatalf("it was set by %v, not %v", wall.Off(), got)
				}
			}
		}
		wall.Set(time.Now().Add(StepOver - 1))
		if got := c.Shift(); got != 0 {
			t.Fatalf("drift of %v counts as a step", got)
		}
	})
}

// Before 1970 it is 1970: a deadline is never 0.
func TestClockBefore1970(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall := new(stepped.Clock)
		wall.Set(time.Unix(-30, 0))
		c := New(wall)
		time.Sleep(time.Second)
		if got := c.Now().UnixMilli(); got != 1000 {
			t.Fatalf("a second later it is %d ms", got)
		}
	})
}

// Each step is told of once, and drift is not.
func TestWatchTellsOfSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wall := new(stepped.Clock)
		told := make(chan time.Duration, 100)
		w := NewWatch(wall, func(by time.Duration) { told <- by })
		for _, by := range []time.Duration{time.Hour, -time.Hour, 87_600 * time.Hour, -StepOver} {
			wall.Step(by)
			time.Sleep(10 * lookEvery)
			if got := <-told; got != by {
				t.Errorf("a step of %v is told of as one of %v", by, got)
			}
		}
		for range 100 {
			wall.Step(StepOver / 3)
			time.Sleep(lookEvery)
		}
		w.Stop()
		wall.Step(time.Hour)
		time.Sleep(10 * lookEvery)
		if n := len(told); n != 0 {
			t.Errorf("told of %d more, the first of %v", n, <-told)
		}
	})
}
