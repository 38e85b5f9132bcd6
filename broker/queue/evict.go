package queue

import (
	"errors"
	"sync"
)

// errEvicted ends a group that nobody uses.
var errEvicted = errors.New("group evicted from memory")

// An evictor drops groups that nobody has used for a while and that lose nothing
// by it: they are built again from disk. It sleeps on one timer, and on none
// while there is no group.
type evictor struct {
	store *Store

	mu     sync.Mutex
	cancel func() bool // stops the timer that runs, nil without one
	closed bool
}

// arm starts the timer unless it runs.
func (e *evictor) arm() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed || e.cancel != nil {
		return
	}
	e.cancel = e.store.clock.AfterFunc(e.store.cfg.IdleAfter, e.pass)
}

// pass looks at every group once.
func (e *evictor) pass() {
	e.mu.Lock()
	e.cancel = nil
	closed := e.closed
	e.mu.Unlock()
	if closed {
		return
	}
	s := e.store
	before := s.now() - int64(s.cfg.IdleAfter)
	left := false
	for _, sh := range s.all() {
		for _, g := range sh.all() {
			if !sh.evict(g, before, false) {
				left = true
			}
		}
	}
	if left {
		e.arm()
	}
}

func (e *evictor) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	if e.cancel != nil {
		e.cancel()
		e.cancel = nil
	}
}

// admit takes a place for one more group in memory. Where none is left, the
// group that was not used for the longest time makes room, if there is one that
// is not in use; that one may forget which records were acked ahead of a gap.
func (s *Store) admit() error {
	if s.groups.Add(1) <= int64(s.cfg.MaxGroups) {
		return nil
	}
	if s.evictOldest() {
		return nil
	}
	s.groups.Add(-1)
	return &GroupLimitError{Limit: s.cfg.MaxGroups}
}

func (s *Store) evictOldest() bool {
	now := s.now()
	for {
		var oldest *group
		for _, sh := range s.all() {
			for _, g := range sh.all() {
				if (oldest == nil || g.lastUse.Load() < oldest.lastUse.Load()) && g.evictable(now, true) {
					oldest = g
				}
			}
		}
		if oldest == nil {
			return false
		}
		if oldest.shard.evict(oldest, now, true) {
			return true
		}
	}
}

// evict drops a group that was last used before a time, unless it is in use.
func (sh *shard) evict(g *group, before int64, forced bool) bool {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	if sh.groups[g.name] != g {
		return true
	}
	// No request finds it from here on: users only falls.
	if !g.evictable(before, forced) {
		return false
	}
	g.mu.Lock()
	g.ended = errEvicted
	g.timer.stop()
	g.mu.Unlock()
	sh.dropLocked(g)
	sh.store.count.evicted.Add(1)
	return true
}

// evictable says that nobody uses the group since a time, that it has nothing to
// do and, unless forced, that it remembers nothing the disk does not.
func (g *group) evictable(before int64, forced bool) bool {
	if !g.isBuilt() || g.users.Load() > 0 || g.lastUse.Load() > before {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	busy := g.tracker.Busy() || g.outbox.pending > 0 || g.outbox.issuing || g.exclusive != nil || len(g.outbox.answers) > 0
	if busy || forced {
		return !busy
	}
	if g.tracker.Ahead() || !g.marked() {
		return false
	}
	for _, finished := range g.letters.redriven {
		if finished {
			return false
		}
	}
	return true
}
