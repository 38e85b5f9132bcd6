package shardlog

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Metrics are the counters of all logs of a store, plain atomics that an
// exporter reads (storage 23, prefix felix_storage_). Totals only grow; gauges
// are sums over the open logs.
type Metrics struct {
	AppendRecords  atomic.Uint64 // records committed
	AppendBytes    atomic.Uint64 // bytes of committed batches, headers included
	AppendBatches  atomic.Uint64
	AppendDuration Histogram // claim to completion

	Syncs            atomic.Uint64 // device flushes of segment data
	SyncDuration     Histogram
	SyncBatchAppends atomic.Uint64 // batches covered by on_commit flushes
	SyncFailures     atomic.Uint64
	UnsyncedBytes    atomic.Int64 // gauge

	WriteFailures      atomic.Uint64
	Full               atomic.Uint64 // writes refused for want of space
	IndexWriteFailures atomic.Uint64
	ReserveFailures    atomic.Uint64

	SegmentRolls           atomic.Uint64
	SegmentRollsBackground atomic.Uint64
	SegmentRollsFailed     atomic.Uint64
	SegmentRollsDiscarded  atomic.Uint64
	Segments               atomic.Int64 // gauge
	OpenSealedSegments     atomic.Int64 // gauge
	Bytes                  atomic.Int64 // gauge: bytes of all segments

	RetentionSegmentsDeleted atomic.Uint64
	RetentionBytesReclaimed  atomic.Uint64
	RetentionFailures        atomic.Uint64
	RetentionBaseOffset      atomic.Uint64 // of the log trimmed last

	ReadRecords  atomic.Uint64
	ReadBytes    atomic.Uint64
	ReadDuration Histogram

	RecoveryDuration       Histogram
	RecoveryTruncatedBytes atomic.Uint64
	RecoveryAbandonedRolls atomic.Uint64
	IndexRebuilds          atomic.Uint64
	ProducerRebuilds       atomic.Uint64
}

// NewMetrics returns metrics at zero.
func NewMetrics() *Metrics { return &Metrics{} }

// histogramBuckets are powers of two of a microsecond: the last but one ends at
// about 67 s.
const histogramBuckets = 28

// Histogram counts durations in buckets that double, from 1 us on. Recording is
// two atomic additions.
type Histogram struct {
	buckets [histogramBuckets]atomic.Uint64
	sum     atomic.Int64 // nanoseconds
}

// Observe adds one duration; a negative one, which a clock stepping back
// yields, counts as zero.
func (h *Histogram) Observe(d time.Duration) {
	d = max(d, 0)
	h.buckets[min(bits.Len64(uint64(d.Microseconds())), histogramBuckets-1)].Add(1)
	h.sum.Add(int64(d))
}

// HistogramSnapshot is a histogram at one moment. Counts[i] is the number of
// durations shorter than Bound(i) and not shorter than Bound(i-1).
type HistogramSnapshot struct {
	Counts [histogramBuckets]uint64
	Count  uint64
	Sum    time.Duration
}

// Bound is the exclusive upper bound of bucket i; the last bucket has none, and
// Bound answers 0.
func (HistogramSnapshot) Bound(i int) time.Duration {
	if i >= histogramBuckets-1 {
		return 0
	}
	return time.Duration(1<<i) * time.Microsecond
}

// Snapshot reads the histogram. Observations made meanwhile may be counted in
// part.
func (h *Histogram) Snapshot() HistogramSnapshot {
	var s HistogramSnapshot
	for i := range h.buckets {
		s.Counts[i] = h.buckets[i].Load()
		s.Count += s.Counts[i]
	}
	s.Sum = time.Duration(h.sum.Load())
	return s
}
