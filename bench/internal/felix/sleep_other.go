//go:build !linux

package felix

import "time"

// sleep rests as precisely as the runtime's timers allow.
func sleep(d time.Duration) { time.Sleep(d) }
