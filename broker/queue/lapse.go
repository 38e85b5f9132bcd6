package queue

import "time"

// A lapseTimer fires at the earliest end of a claim or a delay, so that a record
// comes back, or to its dead letter, whether anybody polls or not. One that is
// set too early, because the claim it was set for is settled, looks again. The
// group's lock guards it.
type lapseTimer struct {
	at      int64 // nanoseconds, 0: not set
	cancel  func() bool
	settled uint64 // counts the settings, to know a late firing
}

// arm sets the timer for the earliest that the tracker has.
func (t *lapseTimer) arm(g *group) {
	if g.ended != nil || g.tracker == nil {
		return
	}
	at, ok := g.tracker.Next()
	switch {
	case !ok:
		t.stop()
	case t.at == 0 || at < t.at:
		t.stop()
		t.at = at
		t.settled++
		setting := t.settled
		store := g.shard.store
		t.cancel = store.clock.AfterFunc(time.Duration(max(at-store.now(), 0)), func() { g.due(setting) })
	}
}

// stop cancels it.
func (t *lapseTimer) stop() {
	if t.at != 0 {
		t.cancel()
		t.at, t.cancel = 0, nil
	}
}

// due is the timer.
func (g *group) due(setting uint64) {
	g.mu.Lock()
	if t := &g.timer; t.settled == setting && t.at != 0 {
		t.at, t.cancel = 0, nil
	}
	g.shard.store.count.timers.Add(1)
	if g.ended == nil && g.exclusive == nil {
		g.lapse()
		_, tail := g.shard.src.Bounds()
		g.wake(tail)
	}
	g.leave(teller{})
}

// lapse moves what is due. The group's lock is held.
func (g *group) lapse() {
	before := g.tracker.Lapsed()
	g.buryAll(g.tracker.Lapse(g.shard.store.now(), nil))
	g.shard.store.count.lapsed.Add(g.tracker.Lapsed() - before)
}
