package shardlog

import "time"

// SetRetention replaces the bounds of an open log and starts or leaves its
// timer. A projection keeps everything: it compacts.
func (l *Log) SetRetention(r Retention) error {
	if err := r.check(l.opts.Name); err != nil {
		return err
	}
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return &ClosedError{Log: l.opts.Name}
	}
	l.retention = r
	arm := !l.opts.Projection && r.bounded() && l.sweepTimer.claim()
	l.mu.Unlock()
	if arm {
		l.armSweep(r)
	}
	return nil
}

// armSweep starts the timer of retention, which runs while there is a bound.
func (l *Log) armSweep(r Retention) {
	interval := r.Interval
	if interval == 0 {
		interval = DefaultSweepInterval
	}
	l.arm(&l.sweepTimer, interval, func() {
		if err := l.EnforceRetention(); err != nil {
			l.opts.Logger.Warn("retention failed, to be tried again", "log", l.opts.Name, "error", err)
		}
		l.mu.Lock()
		r := l.retention
		arm := !l.closed && r.bounded() && l.sweepTimer.claim()
		l.mu.Unlock()
		if arm {
			l.armSweep(r)
		}
	})
}

// EnforceRetention removes sealed segments, oldest first, while the log is
// larger than MaxBytes or a segment's newest record is older than MaxAge. It
// stops at the first segment that stays, and never removes the active one.
func (l *Log) EnforceRetention() error {
	l.admin.Lock()
	defer l.admin.Unlock()
	if err := l.refused(); err != nil {
		return err
	}
	l.mu.Lock()
	r := l.retention
	l.mu.Unlock()
	if l.opts.Projection || !r.bounded() {
		return nil
	}
	now := l.opts.Clock.Now()
	return l.trimOldest(func(s *seg) bool {
		return r.MaxBytes > 0 && l.Bytes() > r.MaxBytes || r.MaxAge > 0 && olderThan(s, now, r.MaxAge)
	})
}

// olderThan judges by record times, never by those of files. Without a record
// time a segment stays.
func olderThan(s *seg, now time.Time, age time.Duration) bool {
	newest := s.newest.Load()
	return newest > 0 && now.Sub(time.UnixMicro(int64(newest))) > age
}
