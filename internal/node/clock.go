package node

import (
	"time"

	"github.com/felixlog/felix/broker/steady"
)

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

// watchClock logs each time that the machine's clock is set.
func (n *Node) watchClock() {
	n.steps = steady.NewWatch(n.clock, func(by time.Duration) {
		msg, records := "the machine's clock was set forward, or the machine slept", "new records carry it"
		if by < 0 {
			msg, records = "the machine's clock was set back", "new records carry the time of the newest one until the clock has come to it"
		}
		n.log.Warn(msg, "by", by.Abs().Round(time.Millisecond).String(), "clock", n.clock.Now().UTC().Format(time.RFC3339),
			"changes", "tokens of new connections are judged by the new time, "+records+
				"; claims, delays, TTLs, quotas and retention go on as if it had not been set, until the broker is started again")
	})
}
