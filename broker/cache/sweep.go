package cache

import (
	"maps"
	"sync"
	"time"

	"github.com/felixlog/felix/storage/kvlog"
)

const (
	// sweepEvery is the time between two looks for expired entries, after
	// which watches hear of them (storage 16.4).
	sweepEvery = time.Second
	// sweepLimit bounds what one look removes of a shard. After a look that
	// came to it the next one is sooner.
	sweepLimit = 1024
	sweepAgain = sweepEvery / 8
)

// A sweeper removes the expired entries of all open shards on the log. It
// sleeps on one timer, and on none while there is no shard.
type sweeper struct {
	store *Store

	mu     sync.Mutex
	shards map[*logShard]*kvlog.Map
	timer  func() bool   // stops the one that runs, nil without one
	idle   chan struct{} // closed when the pass that runs is over, nil without one
	closed bool
}

func (w *sweeper) add(s *logShard, m *kvlog.Map) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.shards == nil {
		w.shards = make(map[*logShard]*kvlog.Map)
	}
	w.shards[s] = m
	w.arm(sweepEvery)
}

func (w *sweeper) remove(s *logShard) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.shards, s)
}

// arm starts the timer unless it runs, or a pass does. mu is held.
func (w *sweeper) arm(after time.Duration) {
	if w.closed || w.timer != nil || w.idle != nil || len(w.shards) == 0 {
		return
	}
	w.timer = w.store.clock.AfterFunc(after, w.pass)
}

// pass looks at every shard once.
func (w *sweeper) pass() {
	w.mu.Lock()
	w.timer = nil
	if w.closed || w.idle != nil {
		w.mu.Unlock()
		return
	}
	idle := make(chan struct{})
	w.idle = idle
	shards := maps.Clone(w.shards)
	w.mu.Unlock()

	next := sweepEvery
	now := w.store.clock.Now().UnixMilli()
	for s, m := range shards {
		if first, ok := m.NextExpiry(); !ok || first > now {
			continue
		}
		n, err := m.Expire(now, sweepLimit)
		if n == sweepLimit {
			next = sweepAgain
		}
		s.noteExpiry(err)
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	w.idle = nil
	close(idle)
	w.arm(next)
}

// close stops the timer and waits for the pass that runs.
func (w *sweeper) close() {
	w.mu.Lock()
	w.closed = true
	if w.timer != nil {
		w.timer()
		w.timer = nil
	}
	idle := w.idle
	w.mu.Unlock()
	if idle != nil {
		<-idle
	}
}

// noteExpiry logs the first of a run of failures: the pass comes again each
// second.
func (s *logShard) noteExpiry(err error) {
	if err == nil || s.cause.Load() != nil {
		s.expiryFailing.Store(false)
		return
	}
	if !s.expiryFailing.Swap(true) {
		s.cache.store.cfg.Logger.Warn("expiry not written", "cache", s.cache.name.String(), "shard", s.index, "error", err)
	}
}
