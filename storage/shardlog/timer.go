package shardlog

import "time"

// timer is one pending call of the clock. The log's mu guards it.
type timer struct {
	armed bool
	stop  func() bool
}

// claim says whether the caller is to arm the timer: it is not armed, and now
// counts as if it were.
func (t *timer) claim() bool {
	if t.armed {
		return false
	}
	t.armed = true
	return true
}

// arm has the clock call f, for a timer that was claimed. The caller does not
// hold mu.
func (l *Log) arm(t *timer, d time.Duration, f func()) {
	stop := l.opts.Clock.AfterFunc(d, func() {
		l.mu.Lock()
		t.armed, t.stop = false, nil
		closed := l.closed
		l.mu.Unlock()
		if !closed {
			f()
		}
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if !t.armed {
		return // it has fired
	}
	t.stop = stop
	if l.closed {
		stop()
	}
}

// stopTimers keeps the timers from firing. The caller holds mu and has set
// closed.
func (l *Log) stopTimers() {
	for _, t := range []*timer{&l.flushTimer, &l.sweepTimer, &l.commitTimer} {
		if t.stop != nil {
			t.stop()
		}
		*t = timer{}
	}
}
