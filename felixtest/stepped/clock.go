// Package stepped is a machine's clock that a test sets, as an operator or a
// time server does with a real one.
package stepped

import (
	"sync/atomic"
	"time"
	"unsafe"
)

// A Clock is that of the machine, set forth or back by what the test says. The
// zero Clock is right. As on a machine, only the wall time is set: what passes
// between two readings stays what it is, and timers do not notice.
type Clock struct{ off atomic.Int64 }

// Step sets the clock forth, or back where by is negative.
func (c *Clock) Step(by time.Duration) { c.off.Add(int64(by)) }

// Set sets the clock to a time within 146 years of now.
func (c *Clock) Set(to time.Time) { c.off.Store(int64(to.Sub(time.Now().Round(0)))) }

// Off is how far the clock is set forth.
func (c *Clock) Off() time.Duration { return time.Duration(c.off.Load()) }

// AfterFunc calls f after d.
func (c *Clock) AfterFunc(d time.Duration, f func()) (stop func() bool) {
	return time.AfterFunc(d, f).Stop
}

// Now is what time.Now is where the wall time was set. In a bubble of
// testing/synctest, whose time has no monotonic reading, it has one all the
// same.
func (c *Clock) Now() time.Time {
	now := time.Now()
	if monotonic(&now).wall&hasMonotonic == 0 {
		now = with(now, now.UnixNano())
	}
	return with(now.Round(0).Add(c.Off()), monotonic(&now).ext)
}

// with is a wall time with a monotonic reading.
func with(wall time.Time, reading int64) time.Time {
	sec := wall.Unix() + secondsFrom1885
	if sec < 0 || sec >= 1<<33 {
		return wall.Round(0) // package time has no room for both
	}
	t := wall
	*monotonic(&t) = layout{wall: hasMonotonic | uint64(sec)<<30 | uint64(wall.Nanosecond()), ext: reading, loc: time.Local}
	if !t.Round(0).Equal(wall.Round(0)) || t.Add(time.Second).Sub(t) != time.Second {
		panic("package time keeps a time in another way than this clock expects")
	}
	return t
}

// layout is how package time keeps a time with a monotonic reading: a flag, 33
// bits of seconds since 1885 and 30 of nanoseconds, and the reading.
type layout struct {
	wall uint64
	ext  int64
	loc  *time.Location
}

func monotonic(t *time.Time) *layout { return (*layout)(unsafe.Pointer(t)) }

const (
	hasMonotonic    = 1 << 63
	secondsFrom1885 = 2_682_288_000
)
