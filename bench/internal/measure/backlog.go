package measure

import (
	"context"
	"sync/atomic"
	"time"
)

// A Backlog is what the workers of one round drain: a known number of
// records, for a bounded time. Both sides of a comparison drain by it, so
// that they stop at the same point.
type Backlog struct {
	size  uint64
	until time.Time
	taken atomic.Uint64
	polls context.Context
	empty context.CancelFunc
}

// NewBacklog makes a backlog of size records that may be drained for budget
// from now. The caller must Close it.
func NewBacklog(ctx context.Context, size int, budget time.Duration) *Backlog {
	b := &Backlog{size: uint64(size), until: time.Now().Add(budget)}
	b.polls, b.empty = context.WithCancel(ctx)
	return b
}

// Polls is the context of requests that may wait for a record. It ends once
// every record was taken, and never for want of time: a request that is
// answered as it is given up would leave records with nobody.
func (b *Backlog) Polls() context.Context { return b.polls }

// Open says whether a worker should ask for more.
func (b *Backlog) Open() bool { return !b.Empty() && time.Now().Before(b.until) }

// Empty says whether everything was taken.
func (b *Backlog) Empty() bool { return b.taken.Load() >= b.size }

// Take counts n records that a worker received.
func (b *Backlog) Take(n int) {
	if b.taken.Add(uint64(n)) >= b.size {
		b.empty()
	}
}

// Taken is how many records were taken.
func (b *Backlog) Taken() uint64 { return b.taken.Load() }

// Close ends requests that still wait.
func (b *Backlog) Close() { b.empty() }
