package queue

import (
	"maps"
	"slices"
	"sync/atomic"
)

// counters count what happens in all groups.
type counters struct {
	capped, trimmed, deadLettered, lapsed atomic.Uint64
	delivered, redelivered                atomic.Uint64
	marks, wakeups, timers, evicted       atomic.Uint64
}

// Stats are the totals of a broker's groups.
type Stats struct {
	// Groups are in memory, each counted once for every shard; Waiting are
	// polls that wait, Claims the claims that stand.
	Groups, Waiting, Claims int
	// PollsCapped were answered empty because as many records were unsettled as
	// may be.
	PollsCapped uint64
	// Trimmed records were taken by retention before a group had finished them.
	Trimmed uint64
	// DeadLettered records were given up, Redelivered handed out for the second
	// time or more, Delivered counts every hand-out, Lapsed claims that ended
	// by their deadline.
	DeadLettered, Redelivered, Delivered, Lapsed uint64
	// CursorWrites were begun, Wakeups let a poll that waited look again,
	// Timers fired for claims to lapse, Evicted groups left memory unused.
	CursorWrites, Wakeups, Timers, Evicted uint64
}

// Stats reads the totals.
func (s *Store) Stats() Stats {
	c := &s.count
	st := Stats{
		PollsCapped: c.capped.Load(), Trimmed: c.trimmed.Load(), DeadLettered: c.deadLettered.Load(),
		Redelivered: c.redelivered.Load(), Delivered: c.delivered.Load(), Lapsed: c.lapsed.Load(),
		CursorWrites: c.marks.Load(), Wakeups: c.wakeups.Load(), Timers: c.timers.Load(), Evicted: c.evicted.Load(),
	}
	for _, sh := range s.all() {
		for _, g := range sh.all() {
			if !g.isBuilt() {
				continue
			}
			st.Groups++
			st.Waiting += int(g.waiters.joined.Load())
			g.mu.Lock()
			st.Claims += g.tracker.Counts().Claimed
			g.mu.Unlock()
		}
	}
	return st
}

// all lists the shards.
func (s *Store) all() []*shard {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Collect(maps.Values(s.shards))
}
