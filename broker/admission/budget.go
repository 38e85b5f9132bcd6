package admission

import (
	"container/list"
	"context"
	"sync"
)

// A budget is a bound on bytes. A cost above the whole budget is charged as
// the whole budget: it is admitted alone.
type budget struct {
	limit int64

	mu      sync.Mutex
	used    int64
	waiters list.List // of *bid, in arrival order
	closed  bool
}

// A bid waits for n bytes.
type bid struct {
	n     int64
	err   error
	ready chan struct{}
}

// tryAcquire takes n bytes if they are free and nobody was there before.
func (b *budget) tryAcquire(n int64) bool {
	n = min(n, b.limit)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.used+n > b.limit || b.waiters.Len() > 0 {
		return false
	}
	b.used += n
	return true
}

// acquire waits for n bytes until ctx ends, whose cause it then returns.
func (b *budget) acquire(ctx context.Context, n int64) error {
	if b.tryAcquire(n) {
		return nil
	}
	n = min(n, b.limit)
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return ErrConnectionClosed
	}
	w := &bid{n: n, ready: make(chan struct{})}
	elem := b.waiters.PushBack(w)
	b.grant() // room may have come back since
	b.mu.Unlock()
	select {
	case <-w.ready:
		return w.err
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-w.ready: // both at once: the answer counts
		return w.err
	default:
	}
	b.waiters.Remove(elem)
	b.grant() // a large bid at the head may have held back smaller ones
	return context.Cause(ctx)
}

// release gives n bytes back.
func (b *budget) release(n int64) {
	n = min(n, b.limit)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= n
	if b.used < 0 {
		panic("byte budget released twice")
	}
	b.grant()
}

// grant admits bids in order while there is room; mu is held.
func (b *budget) grant() {
	for b.waiters.Len() > 0 {
		front := b.waiters.Front()
		w := front.Value.(*bid)
		if b.used+w.n > b.limit {
			return
		}
		b.used += w.n
		b.waiters.Remove(front)
		close(w.ready)
	}
}

// close refuses those who wait and all who come. What is held is still given
// back.
func (b *budget) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for b.waiters.Len() > 0 {
		w := b.waiters.Remove(b.waiters.Front()).(*bid)
		w.err = ErrConnectionClosed
		close(w.ready)
	}
}

func (b *budget) inUse() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}
