package client

import (
	"context"
	"sync"
)

// A budget bounds something countable that is under way: bytes of publishes
// not answered, or publishes of a connection whose broker counts them there.
// Requests larger than the whole budget are let through alone.
type budget struct {
	limit int

	mu   sync.Mutex
	used int
	room waitList // for more room
	idle waitList // for used to be zero
}

func newBudget(limit int) *budget {
	b := &budget{limit: limit}
	b.room.mu, b.idle.mu = &b.mu, &b.mu
	return b
}

// acquire takes n, waiting until they fit or ctx ends.
func (b *budget) acquire(ctx context.Context, n int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for queued := false; ; queued = true {
		fits := b.used == 0 || b.used+n <= b.limit
		if fits && (queued || b.room.empty()) {
			b.used += n
			if b.used < b.limit {
				b.room.wake(1) // perhaps the next one fits too
			}
			return nil
		}
		if err := b.room.wait(ctx); err != nil {
			return err
		}
	}
}

// release gives n back.
func (b *budget) release(n int) {
	b.mu.Lock()
	b.used -= n
	b.room.wake(1)
	if b.used == 0 {
		b.idle.wakeAll()
	}
	b.mu.Unlock()
}

// waitIdle waits until nothing is taken.
func (b *budget) waitIdle(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.used > 0 {
		if err := b.idle.wait(ctx); err != nil {
			return err
		}
	}
	return nil
}
