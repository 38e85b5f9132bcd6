package measure

import (
	"math"
	"sync/atomic"
)

// A Tally counts what each of several receivers got. A receiver adds to its
// own counter, which shares no cache line with another's, so that counting
// costs the receivers of every system the same next to nothing.
type Tally []receiver

type receiver struct {
	n atomic.Uint64
	_ [120]byte
}

// NewTally makes counters for n receivers.
func NewTally(n int) Tally { return make(Tally, n) }

// Add counts n more at receiver i.
func (t Tally) Add(i int, n uint64) { t[i].n.Add(n) }

// Sum is the total over all receivers.
func (t Tally) Sum() uint64 {
	var sum uint64
	for i := range t {
		sum += t[i].n.Load()
	}
	return sum
}

// Min is the count of the receiver that is furthest behind.
func (t Tally) Min() uint64 {
	low := uint64(math.MaxUint64)
	for i := range t {
		low = min(low, t[i].n.Load())
	}
	return low
}
