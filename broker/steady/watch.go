package steady

import (
	"sync"
	"time"
)

const (
	// StepOver is the least by which a clock is set. What is less is drift, and
	// its correction.
	StepOver = time.Second
	// lookEvery is how often a [Watch] looks.
	lookEvery = time.Second
)

// stepBetween is by how much the wall clock was set between two readings of it:
// what it went on, less the time that passed.
func stepBetween(from, to time.Time) time.Duration {
	return to.Round(0).Sub(from.Round(0)) - to.Sub(from)
}

// A Watch tells of steps of a wall clock. A machine that slept looks like one
// whose clock was set forward.
type Watch struct {
	source  Source
	stepped func(by time.Duration)

	mu      sync.Mutex
	last    time.Time
	cancel  func() bool // of the next look
	stopped bool
}

// NewWatch has stepped called once for each step of [StepOver] or more, on a
// goroutine of its own: by is negative for a clock that was set back. Stop it.
func NewWatch(s Source, stepped func(by time.Duration)) *Watch {
	w := &Watch{source: s, stepped: stepped, last: s.Now()}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cancel = s.AfterFunc(lookEvery, w.look)
	return w
}

func (w *Watch) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	now := w.source.Now()
	by := stepBetween(w.last, now)
	w.last = now
	if by.Abs() >= StepOver {
		w.stepped(by)
	}
	w.cancel = w.source.AfterFunc(lookEvery, w.look)
}

// Stop ends the looking; stepped is not called any more.
func (w *Watch) Stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.cancel()
}
