// Package rounds lets many callers share one piece of work that has to be done
// after each of them asked: a look at what is true now.
package rounds

import (
	"context"
	"sync"
	"time"
)

// A Rounds does work in rounds, one at a time. Whoever joins is served by a
// round that begins after he did, with everybody else who joined before it. It
// is safe for concurrent use, and runs nothing while nobody waits.
type Rounds struct {
	work     func(ctx context.Context) error
	interval time.Duration
	timeout  time.Duration

	mu      sync.Mutex
	running bool
	next    *round    // that those who join now are served by; nil for none yet
	begun   time.Time // when the last round began
	count   uint64
}

// A round is one turn of the work. Its outcome is there when done is closed.
type round struct {
	done   chan struct{}
	number uint64
	err    error
}

// New makes rounds of a work, which has the timeout to end in. Between the
// beginnings of two rounds lies the interval at least, so that it bounds how
// often the work is done, and how long who joins has to wait for it to begin.
func New(interval, timeout time.Duration, work func(ctx context.Context) error) *Rounds {
	return &Rounds{work: work, interval: interval, timeout: timeout}
}

// Join waits for a round that begins from now on, and answers with its number
// and its error. Numbers are from 1 on, and grow. When ctx ends first, the
// error is that of ctx and the number 0.
func (r *Rounds) Join(ctx context.Context) (number uint64, err error) {
	r.mu.Lock()
	if r.next == nil {
		r.next = &round{done: make(chan struct{})}
		if !r.running {
			r.running = true
			go r.run()
		}
	}
	mine := r.next
	r.mu.Unlock()
	select {
	case <-mine.done:
		return mine.number, mine.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// run does rounds for as long as somebody has joined the next one.
func (r *Rounds) run() {
	for {
		r.mu.Lock()
		if r.next == nil {
			r.running = false
			r.mu.Unlock()
			return
		}
		wait := r.interval
		if !r.begun.IsZero() {
			wait -= time.Since(r.begun)
		} else {
			wait = 0
		}
		r.mu.Unlock()
		time.Sleep(wait)

		r.mu.Lock()
		now := r.next
		r.next = nil
		r.count++
		now.number, r.begun = r.count, time.Now()
		r.mu.Unlock()
		now.err = r.once()
		close(now.done)
	}
}

func (r *Rounds) once() error {
	ctx, cancel := context.WithTimeout(context.Background(), r.timeout)
	defer cancel()
	return r.work(ctx)
}
