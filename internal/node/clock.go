package node

import "time"

// Clock is the time that counts for a node.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f on its own goroutine after d, unless stop comes first.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

// systemClock is the machine's.
type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}
