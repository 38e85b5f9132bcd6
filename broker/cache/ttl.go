package cache

import (
	"math"
	"time"
)

// A TTL is how long a put keeps its entry. The zero TTL keeps it for good.
type TTL struct {
	millis uint64
	set    bool
}

// Millis is a TTL of n milliseconds. A put refuses 0 and whatever ends past
// the largest unix millisecond an int64 holds ([*InvalidTTLError]).
func Millis(n uint64) TTL { return TTL{millis: n, set: true} }

// deadline is the unix millisecond at which an entry put now expires, or 0 for
// never. The current millisecond counts as begun, so an entry lives at least
// its TTL.
func (t TTL) deadline(clock Clock) (int64, error) {
	if !t.set {
		return 0, nil
	}
	now := clock.Now()
	start := now.UnixMilli()
	if now.Nanosecond()%int(time.Millisecond) != 0 {
		start++
	}
	if t.millis == 0 || t.millis > uint64(math.MaxInt64-max(start, 0)) {
		return 0, &InvalidTTLError{Millis: t.millis}
	}
	return start + int64(t.millis), nil
}
