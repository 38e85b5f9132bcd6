package stream

import (
	"errors"
	"sync"

	"github.com/felixlog/felix/storage/shardlog"
)

// Retention bounds what each shard of a durable stream keeps. A bound of zero
// is the broker's.
type Retention = shardlog.Retention

// retention is the bound of one stream and the logs it reaches.
type retention struct {
	mu     sync.Mutex
	bounds Retention
	logs   map[*Shard]*shardlog.Log
}

func (r *retention) get() Retention {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bounds
}

// join adds a log that was opened with the given bounds.
func (r *retention) join(sh *Shard, log *shardlog.Log, opened Retention) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.logs == nil {
		r.logs = make(map[*Shard]*shardlog.Log)
	}
	r.logs[sh] = log
	if r.bounds == opened {
		return nil
	}
	return log.SetRetention(sh.hub.retention(r.bounds))
}

// leave forgets the log of a shard that is closed.
func (r *retention) leave(sh *Shard) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.logs, sh)
}

// Retention is the stream's own bounds.
func (s *Stream) Retention() Retention { return s.retention.get() }

// SetRetention changes the stream's own bounds; those of logs that are open
// change at once. Error: [*NeedsLogError], or what a log says to the bounds.
func (s *Stream) SetRetention(bounds Retention) error {
	if !s.opts.Durable {
		return &NeedsLogError{Stream: s.name.String(), Request: "retention"}
	}
	r := &s.retention
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bounds = bounds
	var errs []error
	for sh, log := range r.logs {
		if err := log.SetRetention(sh.hub.retention(bounds)); err != nil && !errors.Is(err, shardlog.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// retention completes a stream's bounds by the broker's, one by one.
func (h *Hub) retention(r Retention) Retention {
	broker := h.cfg.Retention
	if r.MaxBytes == 0 {
		r.MaxBytes = broker.MaxBytes
	}
	if r.MaxAge == 0 {
		r.MaxAge = broker.MaxAge
	}
	if r.Interval == 0 {
		r.Interval = broker.Interval
	}
	return r
}
