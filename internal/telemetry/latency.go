package telemetry

import (
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A Latency is a histogram of durations that is cheap enough to be always on:
// an observation is two atomic additions and no lock, and nothing is sampled.
// The buckets end at 2^14 ns (16 us) and then at every power of two and the
// middle to the next, up to 2^34 ns (17 s), so a quantile read off them is
// right within a third.
type Latency struct {
	desc    *prometheus.Desc
	buckets [latencyBuckets + 1]atomic.Uint64 // the last holds what is longer
	sum     atomic.Uint64                     // nanoseconds
}

const (
	firstBound     = 14 // bits of the first bucket's end in nanoseconds
	lastBound      = 34
	latencyBuckets = 1 + 2*(lastBound-firstBound)
)

// Observe records d; a negative d counts as 0.
func (l *Latency) Observe(d time.Duration) {
	ns := uint64(max(d, 0))
	l.buckets[bucketOf(ns)].Add(1)
	l.sum.Add(ns)
}

// bucketOf is the first bucket whose end is not below ns.
func bucketOf(ns uint64) int {
	if ns <= 1<<firstBound {
		return 0
	}
	below := ns - 1 // an end belongs to its bucket
	octave := bits.Len64(below) - 1
	upper := int(below>>(octave-1)) & 1 // in the upper half of its octave
	return min(1+2*(octave-firstBound)+upper, latencyBuckets)
}

// boundOf is the end of a bucket in nanoseconds.
func boundOf(bucket int) uint64 {
	bound := uint64(1) << (firstBound + bucket/2)
	if bucket%2 == 1 {
		bound += bound / 2
	}
	return bound
}

// Describe implements [prometheus.Collector].
func (l *Latency) Describe(out chan<- *prometheus.Desc) { out <- l.desc }

// Collect implements [prometheus.Collector].
func (l *Latency) Collect(out chan<- prometheus.Metric) {
	cumulative := make(map[float64]uint64, latencyBuckets)
	var count uint64
	for i := range latencyBuckets {
		count += l.buckets[i].Load()
		cumulative[time.Duration(boundOf(i)).Seconds()] = count
	}
	count += l.buckets[latencyBuckets].Load()
	out <- prometheus.MustNewConstHistogram(l.desc, count, time.Duration(l.sum.Load()).Seconds(), cumulative)
}
