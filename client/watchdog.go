package client

import (
	"sync"
	"time"
)

// watchdogLooks is how often a watchdog looks within its timeout.
const watchdogLooks = 4

// A watchdog notices a stream whose oldest request gets no answer. It costs
// nothing per request: while any is under way it looks a few times per
// timeout whether the oldest is still the same one.
type watchdog struct {
	mu      *sync.Mutex // the stream's
	timeout time.Duration
	oldest  func() (id uint64, waiting bool) // called with mu held
	bite    func()                           // called with mu held

	timer   *time.Timer
	running bool
	stopped bool
	mark    uint64
	same    int
}

func (w *watchdog) init(mu *sync.Mutex, timeout time.Duration, oldest func() (uint64, bool), bite func()) {
	w.mu, w.timeout, w.oldest, w.bite = mu, timeout, oldest, bite
}

// busy says that something is under way. mu is held.
func (w *watchdog) busy() {
	if w.running || w.stopped {
		return
	}
	w.running = true
	w.mark, _ = w.oldest()
	w.same = 0
	if w.timer == nil {
		w.timer = time.AfterFunc(w.timeout/watchdogLooks, w.look)
	} else {
		w.timer.Reset(w.timeout / watchdogLooks)
	}
}

func (w *watchdog) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.stopped {
		return
	}
	id, waiting := w.oldest()
	switch {
	case !waiting:
		w.running = false
		return
	case id != w.mark:
		w.mark, w.same = id, 0
	default:
		if w.same++; w.same >= watchdogLooks {
			w.bite()
			return
		}
	}
	w.timer.Reset(w.timeout / watchdogLooks)
}

// stop ends the watch. mu is held.
func (w *watchdog) stop() {
	w.stopped = true
	if w.timer != nil {
		w.timer.Stop()
	}
}
