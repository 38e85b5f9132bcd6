package quic

import "time"

// KeepAlivePeriod is the keep-alive period that goes with an idle timeout: a
// period of 0, or of half the timeout and more, could let a healthy silent
// connection lapse and becomes a third of the timeout (wire 2.2). adjusted
// says that it did, for whoever reads the configuration to report.
func KeepAlivePeriod(idle, keepAlive time.Duration) (period time.Duration, adjusted bool) {
	if keepAlive <= 0 || keepAlive >= idle/2 {
		return idle / 3, true
	}
	return keepAlive, false
}
