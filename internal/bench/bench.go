// Package bench measures a running Felix: how fast it takes publishes, how
// long a message is under way, how it fans out, how fast its caches are.
//
// The figures are meant to be honest. Every run warms up before it measures.
// A rate spans from the first send to the last answer or arrival, and is one
// figure over all workers, not a sum of theirs. What was refused or lost is
// counted, never left out quietly. All loops are closed: a worker sends its
// next request when an earlier one was answered, so a pause of the broker
// holds the load back as well, and the latencies of the requests that would
// have come meanwhile are not in the figures ("coordinated omission").
package bench

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/felixlog/felix/client"
)

// loopClosed is said in every result, see the package's comment.
const loopClosed = "closed"

// Quantiles sum up how long something took, in microseconds.
type Quantiles struct {
	Count uint64  `json:"count"`
	P50   float64 `json:"p50"`
	P90   float64 `json:"p90"`
	P99   float64 `json:"p99"`
	P999  float64 `json:"p999"`
	Max   float64 `json:"max"`
}

// longest is what a recorder can hold; longer times count as this.
const longest = 10 * time.Minute

// A recorder gathers durations. It is safe for concurrent use.
type recorder struct {
	mu        sync.Mutex
	histogram *hdrhistogram.Histogram
}

func newRecorder() *recorder {
	return &recorder{histogram: hdrhistogram.New(1, int64(longest), 3)}
}

func (r *recorder) record(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.recordLocked(d)
}

func (r *recorder) recordLocked(d time.Duration) {
	d = min(max(d, 1), longest)
	if err := r.histogram.RecordValue(int64(d)); err != nil {
		panic("bench: " + err.Error()) // d is within the histogram's bounds
	}
}

// merge adds what another recorder gathered.
func (r *recorder) merge(other *recorder) {
	other.mu.Lock()
	defer other.mu.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.histogram.Merge(other.histogram)
}

func (r *recorder) quantiles() Quantiles {
	r.mu.Lock()
	defer r.mu.Unlock()
	quantile := func(q float64) float64 { return microseconds(r.histogram.ValueAtQuantile(q)) }
	return Quantiles{
		Count: uint64(r.histogram.TotalCount()),
		P50:   quantile(50), P90: quantile(90), P99: quantile(99), P999: quantile(99.9),
		Max: microseconds(r.histogram.Max()),
	}
}

// microseconds is a number of nanoseconds in microseconds, to one decimal.
func microseconds(ns int64) float64 { return float64((ns+50)/100) / 10 }

// A stopwatch gives times since it was made.
type stopwatch struct{ base time.Time }

func newStopwatch() stopwatch { return stopwatch{base: time.Now()} }

func (s stopwatch) now() time.Duration { return time.Since(s.base) }

// A latest keeps the largest time it was told.
type latest struct{ ns atomic.Int64 }

func (l *latest) tell(at time.Duration) {
	for {
		before := l.ns.Load()
		if int64(at) <= before || l.ns.CompareAndSwap(before, int64(at)) {
			return
		}
	}
}

func (l *latest) time() time.Duration { return time.Duration(l.ns.Load()) }

// perSecond is the rate of n in d; 0 when no time passed.
func perSecond(n uint64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

// refused says that the broker turned a request away for want of room: the
// answer an overloaded broker gives, which is counted and not an end of the
// run.
func refused(err error) bool { return errors.Is(err, client.ErrOverloaded) }

// A bound is one limit on one parameter.
type bound struct {
	name        string
	value       uint64
	least, most uint64
}

// The largest parameters. They bound what a run holds in memory.
const (
	maxMessages    = 1 << 40
	maxPayload     = 15 << 20
	maxConcurrency = 4096
	maxBatch       = 65536
	maxInFlight    = 65536
	maxKeys        = 1 << 20
	maxFanout      = 4096
	maxConnections = 256
)

// Endless is a total for runs that their duration ends.
const Endless = maxMessages

// ErrParameter is wrapped by every complaint about a parameter.
var ErrParameter = errors.New("parameter out of range")

// check finds the first parameter outside its bounds.
func check(bounds ...bound) error {
	for _, b := range bounds {
		if b.value < b.least || b.value > b.most {
			return fmt.Errorf("%s %d: want %d to %d (%w)", b.name, b.value, b.least, b.most, ErrParameter)
		}
	}
	return nil
}
