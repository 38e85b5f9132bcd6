package membership

import "time"

// A lease is the right to serve that an accepted heartbeat gives (control plane
// 6.4). It counts on the monotonic clock from the instant the heartbeat was
// sent, and ends a quarter early: the control plane waits a quarter longer, so
// that clocks may drift by a quarter.
type lease struct {
	until time.Time // zero: none
}

// renewed is the lease after a heartbeat that was sent then; one that was
// answered late never shortens it.
func (l lease) renewed(sent time.Time, length time.Duration) lease {
	until := sent.Add(length - length/4)
	if until.Before(l.until) {
		return l
	}
	return lease{until: until}
}

func (l lease) valid(now time.Time) bool { return !l.until.IsZero() && now.Before(l.until) }
