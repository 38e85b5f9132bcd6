package memory

import (
	"sync"
	"time"
)

// A Clock gives the times of a store, in milliseconds since the Unix epoch. It
// follows the machine's clock and never goes back. Where that is set back, it
// goes on from where it is at the pace of the process: if it stood still, no
// silent node would be found until the machine's clock has caught up (control
// plane 6.4).
type Clock struct {
	now func() time.Time // its differences do not step, where it has a monotonic reading

	mu   sync.Mutex
	base uint64    // a time that was given
	at   time.Time // when that was
	last uint64    // given
	read time.Time // when
}

// NewClock returns a clock that follows now.
func NewClock(now func() time.Time) *Clock { return &Clock{now: now} }

// Millis is the time, and never below floor or what was given before.
func (c *Clock) Millis(floor uint64) uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if now.Before(c.read) { // without a monotonic reading it steps
		c.base, c.at = c.last, now
	}
	c.read = now
	going := c.base + uint64(now.Sub(c.at).Milliseconds())
	if given := max(uint64(max(now.UnixMilli(), 0)), floor); c.at.IsZero() || given > going {
		c.base, c.at, going = given, now, given
	}
	c.last = going
	return going
}
