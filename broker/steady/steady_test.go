package steady

import (
	"testing"
	"testing/synctest"
	"time"
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
