package broker

import "time"

// A Clock is where the broker gets time from.
type Clock interface {
	// Now is the wall time, with a monotonic reading where there is one.
	Now() time.Time
	// AfterFunc calls f on its own goroutine after d, unless stop, which may
	// be called late or twice, comes first.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}
