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
	start time.Time
	// newest is the latest unix millisecond told.
	newest atomic.Int64
}

// New starts a clock.
func New(s Source) *Clock {
	c := &Clock{Source: s, start: s.Now()}
	c.newest.Store(c.start.UnixMilli())
	return c
}

// Now never goes back by a millisecond or more.
func (c *Clock) Now() time.Time {
	now := c.start.Add(c.Source.Now().Sub(c.start))
	ms := now.UnixMilli()
	for {
		newest := c.newest.Load()
		switch {
		case ms == newest:
			return now
		case ms < newest:
			return time.UnixMilli(newest)
		case c.newest.CompareAndSwap(newest, ms):
			return now
		}
	}
}
