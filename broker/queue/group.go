package queue

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/felixlog/felix/broker/queue/tracker"
)

// A group is one group on one shard, in memory.
type group struct {
	shard *shard
	name  string
	// built is closed when the group can be used, or failed says why not.
	built  chan struct{}
	failed error
	// users are requests under way, lastUse when the last one ended.
	users   atomic.Int64
	lastUse atomic.Int64
	waiters waiters

	mu      sync.Mutex
	tracker *tracker.Tracker
	cursor  cursor
	outbox  outbox
	letters letters
	burials burials
	graves  graves
	skips   skips
	timer   lapseTimer
	// trimmed is the base of the stream's log that the tracker knows, lost how
	// many unfinished records went with what lay below.
	trimmed, lost uint64
	// era counts what voided all claims: seeks and deletions.
	era uint64
	// exclusive is closed when the operation that has the group for itself is
	// over; nil without one.
	exclusive chan struct{}
	ended     error
}

func newGroup(sh *shard, name string) *group {
	g := &group{shard: sh, name: name, built: make(chan struct{})}
	g.waiters.group = g
	g.lastUse.Store(sh.store.now())
	return g
}

// isBuilt says that the group can be used.
func (g *group) isBuilt() bool {
	select {
	case <-g.built:
		return g.failed == nil
	default:
		return false
	}
}

// release ends a use of the group.
func (g *group) release() {
	g.lastUse.Store(g.shard.store.now())
	g.users.Add(-1)
}

// enter locks the group for a request, once no exclusive operation runs.
// Error: why the group ended, or the cause of ctx. [group.leave] unlocks.
func (g *group) enter(ctx context.Context) error {
	for {
		g.mu.Lock()
		if err := g.ended; err != nil {
			g.mu.Unlock()
			return err
		}
		if g.exclusive == nil {
			return nil
		}
		over := g.exclusive
		g.mu.Unlock()
		select {
		case <-over:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// leave unlocks the group, gives the answers that were decided and issues the
// writes.
func (g *group) leave(to teller) {
	g.timer.arm(g)
	answers, issue := g.outbox.takeAnswers(), g.outbox.claim()
	g.mu.Unlock()
	to.tell(answers)
	if issue {
		g.issue(to)
	}
}

// end lets go of everybody who waits. What is written ends by itself.
func (g *group) end(cause error) {
	g.mu.Lock()
	if g.ended == nil {
		g.ended = cause
	}
	g.timer.stop()
	g.leave(teller{})
}
