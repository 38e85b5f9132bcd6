package felix

import (
	"syscall"
	"time"
)

// sleep rests to within tens of microseconds. The runtime's own timers round
// up to a millisecond where nothing else wakes it, which would weigh more than
// the latencies that are timed from here. It may return early.
func sleep(d time.Duration) {
	ts := syscall.NsecToTimespec(int64(d))
	_ = syscall.Nanosleep(&ts, nil) // interrupted: the caller looks at the clock again
}
