package client

import (
	"context"
	"sync"
)

// A waitList parks goroutines until a condition guarded by mu may have
// changed. Each may give up with its context, and a wake-up given to one
// that gives up goes to the next: none is lost. It holds no more goroutines
// than callers.
type waitList struct {
	mu          *sync.Mutex
	first, last *waiting
	free        *waiting // one spare, so that a lone waiter does not allocate
}

type waiting struct {
	ready      chan struct{}
	next, prev *waiting
	woken      bool
}

// wait parks the caller, which holds mu, and returns with mu held. It
// returns an error only when ctx ended, and then the caller was not woken.
func (l *waitList) wait(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w := l.free
	l.free = nil
	if w == nil {
		w = &waiting{ready: make(chan struct{}, 1)}
	}
	w.woken = false
	w.prev, w.next = l.last, nil
	if l.last != nil {
		l.last.next = w
	} else {
		l.first = w
	}
	l.last = w
	l.mu.Unlock()

	var err error
	select {
	case <-w.ready:
		l.mu.Lock()
	case <-ctx.Done():
		err = ctx.Err()
		l.mu.Lock()
		if w.woken {
			<-w.ready
			l.wake(1)
		} else {
			l.unlink(w)
		}
	}
	l.free = w
	return err
}

func (l *waitList) unlink(w *waiting) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		l.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		l.last = w.prev
	}
	w.next, w.prev = nil, nil
}

// wake lets up to n of them look again, the longest waiting first. mu is
// held.
func (l *waitList) wake(n int) {
	for ; n > 0 && l.first != nil; n-- {
		w := l.first
		l.unlink(w)
		w.woken = true
		w.ready <- struct{}{}
	}
}

// wakeAll lets all of them look again. mu is held.
func (l *waitList) wakeAll() {
	for l.first != nil {
		l.wake(1)
	}
}

// empty says that nobody waits. mu is held.
func (l *waitList) empty() bool { return l.first == nil }
