package queue

import (
	"sync"
	"sync/atomic"
)

// waiters are polls that found nothing, in the order of arrival. Each event
// wakes one, and one that leaves something wakes the next.
type waiters struct {
	group *group
	// joined counts polls between join and leave.
	joined atomic.Int64

	mu          sync.Mutex
	first, last *waiter
}

// A waiter is one poll.
type waiter struct {
	woken      chan struct{} // capacity 1
	prev, next *waiter
	parked     bool
	// owes: it was woken, and has not looked yet for what woke it. Its own.
	owes bool
}

// join adds a poll, which from then on misses nothing.
func (ws *waiters) join() *waiter {
	w := &waiter{woken: make(chan struct{}, 1)}
	ws.joined.Add(1)
	ws.park(w, false)
	ws.group.shard.appends.listen(ws.group)
	return w
}

// again parks a poll that was woken where it stood, so that it misses nothing
// while it looks.
func (ws *waiters) again(w *waiter) {
	w.owes = true
	ws.park(w, true)
}

func (ws *waiters) park(w *waiter, front bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.parked = true
	switch {
	case ws.first == nil:
		ws.first, ws.last = w, w
	case front:
		w.next, ws.first.prev = ws.first, w
		ws.first = w
	default:
		w.prev, ws.last.next = ws.last, w
		ws.last = w
	}
}

// leave ends a poll's waiting. A wake that it did not use goes to the next.
func (ws *waiters) leave(w *waiter) {
	ws.mu.Lock()
	if w.parked {
		ws.remove(w)
	}
	ws.mu.Unlock()
	select {
	case <-w.woken:
		w.owes = true
	default:
	}
	if w.owes {
		ws.wake()
	}
	if ws.joined.Add(-1) == 0 {
		ws.group.shard.appends.unlisten(ws.group)
	}
}

// remove takes a parked waiter out; mu is held.
func (ws *waiters) remove(w *waiter) {
	if w.prev != nil {
		w.prev.next = w.next
	} else {
		ws.first = w.next
	}
	if w.next != nil {
		w.next.prev = w.prev
	} else {
		ws.last = w.prev
	}
	w.prev, w.next, w.parked = nil, nil, false
}

// wake wakes one.
func (ws *waiters) wake() {
	if ws.joined.Load() == 0 {
		return
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w := ws.first; w != nil {
		ws.remove(w)
		ws.group.shard.store.count.wakeups.Add(1)
		w.woken <- struct{}{}
	}
}

// wake wakes one poll that waits if there is something for it below tail. The
// group's lock is held.
func (g *group) wake(tail uint64) {
	if g.waiters.joined.Load() > 0 && g.tracker.Available(tail) {
		g.waiters.wake()
	}
}

// An appendWatch hears of appends to a shard while polls of its groups wait.
type appendWatch struct {
	src  Source
	mu   sync.Mutex
	stop func()
	// waiting are the groups with a poll that waits.
	waiting map[*group]struct{}
}

// listen is for a poll that waits.
func (a *appendWatch) listen(g *group) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.waiting == nil {
		a.waiting = make(map[*group]struct{})
	}
	a.waiting[g] = struct{}{}
	if a.stop == nil {
		a.stop = a.src.OnAppend(a.appended)
	}
}

// unlisten is for the last poll of a group, unless another has joined.
func (a *appendWatch) unlisten(g *group) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if g.waiters.joined.Load() > 0 {
		return
	}
	delete(a.waiting, g)
	if len(a.waiting) == 0 && a.stop != nil {
		a.stop()
		a.stop = nil
	}
}

func (a *appendWatch) appended() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for g := range a.waiting {
		g.waiters.wake()
	}
}
