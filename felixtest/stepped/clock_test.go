package stepped

import (
	"testing"
	"testing/synctest"
	"time"
)

// A step moves the wall time, and neither what passes nor timers.
func TestClockSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := new(Clock)
		start := c.Now()
		for _, by := range []time.Duration{time.Hour, -2 * time.Hour, 87_600 * time.Hour} {
			before := c.Now()
			c.Step(by)
			after := c.Now()
			if passed, wall := after.Sub(before), after.UnixNano()-before.UnixNano(); passed != 0 || wall != int64(by) {
				t.Errorf("a step of %v: %v have passed, the wall time went on by %v", by, passed, time.Duration(wall))
			}
		}
		c.Set(time.Unix(0, 0))
		if now := c.Now(); now.UnixNano() != 0 || now.Sub(start) != 0 {
			t.Errorf("set to 1970 it tells %v, %v after its start", now, now.Sub(start))
		}
		rang := make(chan time.Duration, 1)
		c.AfterFunc(time.Minute, func() { rang <- c.Now().Sub(start) })
		c.Step(time.Hour)
		if passed := <-rang; passed != time.Minute {
			t.Errorf("a timer of a minute rang after %v", passed)
		}
	})
}
