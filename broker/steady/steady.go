// Package steady makes of a wall clock the time that deadlines are judged by.
package steady

import (
	"sync/atomic"
	"time"
)

// A Source tells the time and calls back.
type Source interface {
	// Now is the wall time, with a monotonic reading where there is one.
	Now() time.Time
	// AfterFunc calls f on its own goroutine after d, unless stop, which may
	// be called late or twice, comes first.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// A Clock is the wall time when it was made, and from there on as fast as the
// monotonic clock goes. A wall clock that is set forward expires nothing before
// its time, one that is set back revives nothing; a restart takes the wall
// clock as it is then.
//
// Where the source has no monotonic reading, its own steps forward count, and
// after a step back time stands still until it has caught up.
type Clock struct {
	Source
	reading reading
}

// New starts a clock. A wall clock that stands before 1970 counts as one at its
// beginning, so that no deadline is zero or less.
func New(s Source) *Clock {
	c := &Clock{Source: s}
	c.reading.start(s.Now)
	return c
}

// Now never goes back by a millisecond or more.
func (c *Clock) Now() time.Time { return c.reading.now() }

// Shift is how far the wall clock has been set forward since the clock was made,
// negative if back; 0 for less than [StepOver], which is no step.
func (c *Clock) Shift() time.Duration { return c.reading.shift() }

// Of is a [Clock] without callbacks: what its Now is, over now.
func Of(now func() time.Time) func() time.Time {
	var r reading
	r.start(now)
	return r.now
}

// A reading is the steady time over a wall clock.
type reading struct {
	wall func() time.Time
	// from is the wall clock's time at the start, base what the steady time was
	// then.
	from, base time.Time
	// newest is the latest unix millisecond told.
	newest atomic.Int64
}

func (r *reading) start(wall func() time.Time) {
	r.wall, r.from = wall, wall()
	r.base = r.from
	if epoch := time.UnixMilli(0); r.base.Before(epoch) {
		r.base = epoch
	}
	r.newest.Store(r.base.UnixMilli())
}

func (r *reading) now() time.Time {
	now := r.base.Add(r.wall().Sub(r.from))
	ms := now.UnixMilli()
	for {
		newest := r.newest.Load()
		switch {
		case ms == newest:
			return now
		case ms < newest:
			return time.UnixMilli(newest)
		case r.newest.CompareAndSwap(newest, ms):
			return now
		}
	}
}

func (r *reading) shift() time.Duration {
	now := r.wall()
	by := stepBetween(r.from, now)
	if by.Abs() < StepOver {
		return 0
	}
	return by
}
