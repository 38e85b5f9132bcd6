package cache

import (
	"container/heap"
	"math"
	"sync"
	"sync/atomic"
)

// A shard is one part of the map, under its own lock.
type shard struct {
	mu    sync.Mutex
	index map[scoped]*entry
	// entries holds the same entries densely, for sampling.
	entries []*entry
	expiry  expiryOrder
	// earliest is the first deadline, MaxInt64 when there is none; it is read
	// without the lock.
	earliest atomic.Int64

	hits, misses, puts, deletes uint64
}

func (sh *shard) init() {
	sh.index = make(map[scoped]*entry)
	sh.earliest.Store(math.MaxInt64)
}

func (sh *shard) insert(name scoped) *entry {
	e := &entry{name: name, slot: len(sh.entries), order: -1}
	sh.index[name] = e
	sh.entries = append(sh.entries, e)
	return e
}

func (sh *shard) setDeadline(e *entry, deadline int64) {
	e.deadline = deadline
	switch {
	case deadline != 0 && e.order >= 0:
		heap.Fix(&sh.expiry, e.order)
	case deadline != 0:
		heap.Push(&sh.expiry, e)
	case e.order >= 0:
		heap.Remove(&sh.expiry, e.order)
	default:
		return
	}
	sh.noteEarliest()
}

func (sh *shard) noteEarliest() {
	earliest := int64(math.MaxInt64)
	if len(sh.expiry) > 0 {
		earliest = sh.expiry[0].deadline
	}
	sh.earliest.Store(earliest)
}

func (sh *shard) remove(e *entry) {
	delete(sh.index, e.name)
	last := len(sh.entries) - 1
	sh.entries[e.slot] = sh.entries[last]
	sh.entries[e.slot].slot = e.slot
	sh.entries[last] = nil
	sh.entries = sh.entries[:last]
	e.slot = -1
	if e.order >= 0 {
		heap.Remove(&sh.expiry, e.order)
		sh.noteEarliest()
	}
}

// removeScope lets go of all entries of one scope.
func (sh *shard) removeScope(s *Store, scope uint64) {
	sh.mu.Lock()
	defer sh.mu.Unlock()
	for i := len(sh.entries) - 1; i >= 0; i-- {
		if e := sh.entries[i]; e.name.scope == scope {
			s.drop(sh, e)
		}
	}
}
