// Package measure holds the loops that load a server and the result they
// report, the same for Felix and for everything it is compared with.
package measure

import (
	"fmt"
	"time"
)

// Phases are the two parts of a measured run. What happens before Warmup is
// over counts for nothing.
type Phases struct {
	Warmup  time.Duration `json:"warmup_ns"`
	Measure time.Duration `json:"measure_ns"`
}

// A Result is what one client measured in one run.
type Result struct {
	// Records and Bytes count what was completed in the measured part:
	// acknowledged publishes, deliveries or answered requests, and the
	// payload bytes in them.
	Records uint64 `json:"records"`
	Bytes   uint64 `json:"bytes"`
	// Elapsed runs from the end of the warm-up to the last completion.
	Elapsed time.Duration `json:"elapsed_ns"`
	// P50 and P99 are latency quantiles, where the run times each request.
	P50 time.Duration `json:"p50_ns,omitempty"`
	P99 time.Duration `json:"p99_ns,omitempty"`
	// Lost and Repeated count deliveries that were owed and did not come,
	// and deliveries beyond those owed. Either makes the run invalid.
	Lost     uint64 `json:"lost,omitempty"`
	Repeated uint64 `json:"repeated,omitempty"`
	// Window is the most payload bytes that may be sent and not yet
	// completed. A run must move far more than that, or it measures buffers.
	Window uint64 `json:"window_bytes,omitempty"`
	// Flushes are those of the server to its device in the measured part,
	// where the run counts them.
	Flushes uint64 `json:"flushes,omitempty"`
	// RSS and RSSBound are resident bytes and what configuration allows,
	// where the run is about memory.
	RSS      uint64 `json:"rss_bytes,omitempty"`
	RSSBound uint64 `json:"rss_bound_bytes,omitempty"`
	// Notes are facts about the run that explain its figure.
	Notes map[string]string `json:"notes,omitempty"`
}

// minWindows is how many send windows a run has to move.
const minWindows = 10

// Invalid says why the result must not be shown as a figure; it is empty for
// a good one.
func (r Result) Invalid() string {
	switch {
	case r.Lost > 0:
		return fmt.Sprintf("%d deliveries lost", r.Lost)
	case r.Repeated > 0:
		return fmt.Sprintf("%d deliveries more than were published", r.Repeated)
	case r.RSS > 0:
		return ""
	case r.Records == 0 || r.Elapsed <= 0:
		return "nothing was completed after the warm-up"
	case r.Bytes < minWindows*r.Window:
		return fmt.Sprintf("moved %d bytes, fewer than %d send windows of %d", r.Bytes, minWindows, r.Window)
	}
	return ""
}

// Note adds a fact to the result.
func (r *Result) Note(key, format string, args ...any) {
	if r.Notes == nil {
		r.Notes = make(map[string]string)
	}
	r.Notes[key] = fmt.Sprintf(format, args...)
}
