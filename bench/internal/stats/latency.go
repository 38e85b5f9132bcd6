package stats

import (
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// maxLatency is the longest duration a Latency tells apart; longer ones count
// as this one, so that they still weigh on the tail.
const maxLatency = time.Minute

// A Latency is a histogram of durations from 1 ns to a minute at three
// significant digits. It is not safe for concurrent use: each worker records
// into its own, and the owner merges them.
type Latency struct {
	h *hdrhistogram.Histogram
}

// NewLatency returns an empty histogram.
func NewLatency() *Latency {
	return &Latency{h: hdrhistogram.New(1, int64(maxLatency), 3)}
}

// Record adds one duration.
func (l *Latency) Record(d time.Duration) {
	d = min(max(d, 1), maxLatency)
	// RecordValue fails only outside the bounds clamped above.
	_ = l.h.RecordValue(int64(d))
}

// Merge adds what other holds.
func (l *Latency) Merge(other *Latency) { l.h.Merge(other.h) }

// Count is the number of durations recorded.
func (l *Latency) Count() int64 { return l.h.TotalCount() }

// Quantile is the duration below which the share q (0 to 1) of the recorded
// ones lies; zero when there are none.
func (l *Latency) Quantile(q float64) time.Duration {
	return time.Duration(l.h.ValueAtQuantile(q * 100))
}
