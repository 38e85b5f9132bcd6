package cache

import (
	"sync/atomic"
	"time"
)

// A Clock tells the time and calls back.
type Clock interface {
	// Now is the wall time, with a monotonic reading where there is one.
	Now() time.Time
	// AfterFunc calls f on its own goroutine after d, unless stop, which may
	// be called late or twice, comes first.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// A steadyClock is the time deadlines are judged by: the wall time when the
// store was made, and from there on as fast as the monotonic clock goes. A
// wall clock that is set forward expires nothing before its time, one that is
// set back revives nothing; a restart takes the wall clock as it is then.
//
// Where the clock has no monotonic reading, its own steps forward count, and
// after a step back time stands still until it has caught up.
type steadyClock struct {
	Clock
	start time.Time
	// newest is the latest unix millisecond told.
	newest atomic.Int64
}

func newSteadyClock(c Clock) *steadyClock {
	s := &steadyClock{Clock: c, start: c.Now()}
	s.newest.Store(s.start.UnixMilli())
	return s
}

// Now never goes back by a millisecond or more.
func (s *steadyClock) Now() time.Time {
	now := s.start.Add(s.Clock.Now().Sub(s.start))
	ms := now.UnixMilli()
	for {
		newest := s.newest.Load()
		switch {
		case ms == newest:
			return now
		case ms < newest:
			return time.UnixMilli(newest)
		case s.newest.CompareAndSwap(newest, ms):
			return now
		}
	}
}
