package shardlog

import (
	"math"
	"time"
)

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
// stops at the first segment that stays, and never removes the active one. A
// clock that is set while the process runs makes no record older.
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
	passed := l.since(now)
	return l.trimOldest(func(s *seg) bool {
		return r.MaxBytes > 0 && l.Bytes() > r.MaxBytes || r.MaxAge > 0 && olderThan(s, now, passed, r.MaxAge)
	})
}

// olderThan judges by record times, never by those of files, and by the time
// that has passed in this process. What is from before it must be old by the clock
// as it is now too, which may have been wrong at the start and right since; a
// record time that is still to come says nothing. Without one a segment stays.
func olderThan(s *seg, now time.Time, passed, age time.Duration) bool {
	newest, at := s.newest.Load(), time.Duration(s.newestAt.Load())
	if newest == 0 || passed-at <= age {
		return false
	}
	byClock := now.Sub(time.UnixMicro(int64(newest)))
	return at >= 0 || byClock < 0 || byClock > age
}

// since is the time from the beginning of the process to a reading of its clock.
func (l *Log) since(now time.Time) time.Duration { return now.Sub(l.began) }

// appendedAt is when a record of that time was appended, as since tells it: at
// the latest now, whatever its time says.
func (l *Log) appendedAt(micros uint64) time.Duration {
	by := time.UnixMicro(int64(min(micros, math.MaxInt64))).Sub(l.began)
	return min(by, l.since(l.opts.Clock.Now()))
}
