package kvlog

import (
	"context"
	"sync"
	"time"

	"github.com/felixlog/felix/storage/shardlog"
)

// DefaultPace is what the compaction of one store may read and write, in bytes
// a second (storage 16.6).
const DefaultPace = 64 << 20

// A Pace is a [Pacer]: who asks waits until what was granted before has had its
// time. One is shared by all projections of a store.
type Pace struct {
	clock     shardlog.Clock
	perSecond int64

	mu   sync.Mutex
	free time.Time // when what was granted is paid
}

// NewPace returns a pacer; perSecond of 0 is [DefaultPace].
func NewPace(clock shardlog.Clock, perSecond int64) *Pace {
	if perSecond <= 0 {
		perSecond = DefaultPace
	}
	return &Pace{clock: clock, perSecond: perSecond}
}

// Wait implements [Pacer]. One wait is of any size; the next then waits longer.
func (p *Pace) Wait(ctx context.Context, bytes int64) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	cost := time.Duration(float64(bytes) / float64(p.perSecond) * float64(time.Second))
	p.mu.Lock()
	now := p.clock.Now()
	start := p.free
	if start.Before(now) {
		start = now
	}
	p.free = start.Add(cost)
	p.mu.Unlock()
	wait := start.Sub(now)
	if wait <= 0 {
		return nil
	}
	over := make(chan struct{})
	stop := p.clock.AfterFunc(wait, func() { close(over) })
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		stop()
		return ctx.Err()
	}
}
