package schedule

import (
	"container/list"
	"context"
	"slices"
)

// A waiter is one publish that waits to enter a lane.
type waiter struct {
	lane *Lane
	// pass and err are the answer, set before ready is closed.
	pass  Pass
	err   error
	ready chan struct{}
}

func (w *waiter) answer(p Pass, err error) {
	w.pass, w.err = p, err
	close(w.ready)
}

// A waitList is a tenant's membership in one of the two lists of tenants that
// have waiters.
type waitList struct {
	list *list.List
	elem *list.Element
}

// admits says whether t may have one more slot (broker 4.2): its guaranteed
// share always, subject to capacity; beyond it, never the last share slots.
func (s *Scheduler) admits(t *Tenant) bool {
	if t.queued < s.cfg.Share {
		return s.queued < s.capacity
	}
	return s.queued < s.capacity-s.cfg.Share
}

// TryEnter asks for a pass without waiting. Errors: [ErrFull], [ErrClosed].
func (s *Scheduler) TryEnter(l *Lane) (Pass, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.tryEnter(l)
}

func (s *Scheduler) tryEnter(l *Lane) (Pass, error) {
	if s.closing {
		return noPass, ErrClosed
	}
	if !l.held && l.head == nil {
		l.held = true
		s.held++
		return Inline, nil
	}
	if !s.admits(l.tenant) {
		return noPass, ErrFull
	}
	s.takeSlot(l.tenant)
	return Slot, nil
}

// Enter asks for a pass and waits for it until ctx ends, whose cause it then
// returns. Error otherwise: [ErrClosed].
func (s *Scheduler) Enter(ctx context.Context, l *Lane) (Pass, error) {
	s.mu.Lock()
	pass, err := s.tryEnter(l)
	if err != ErrFull {
		s.mu.Unlock()
		return pass, err
	}
	w := &waiter{lane: l, ready: make(chan struct{})}
	t := l.tenant
	t.waiters = append(t.waiters, w)
	l.waiters++
	s.waiting++
	s.fileWaiting(t)
	s.mu.Unlock()

	select {
	case <-w.ready:
		return w.pass, w.err
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-w.ready: // both at once: the answer counts
		return w.pass, w.err
	default:
	}
	s.removeWaiter(w)
	return noPass, context.Cause(ctx)
}

func (s *Scheduler) takeSlot(t *Tenant) {
	t.queued++
	s.queued++
	s.fileWaiting(t)
}

// freeSlot gives back a slot of t and lets in whoever may have it. One slot
// admits at most one: before it was free nobody who waited was eligible.
func (s *Scheduler) freeSlot(t *Tenant) {
	t.queued--
	s.queued--
	s.fileWaiting(t)
	list := &s.underShare
	if list.Len() == 0 {
		list = &s.overShare
	}
	if list.Len() == 0 {
		return
	}
	next := list.Front().Value.(*Tenant)
	if !s.admits(next) {
		return
	}
	w := next.waiters[0]
	s.removeWaiter(w)
	s.takeSlot(next)
	if next.waiting.elem != nil {
		next.waiting.list.MoveToBack(next.waiting.elem)
	}
	w.answer(Slot, nil)
}

// removeWaiter takes w off its tenant and lane.
func (s *Scheduler) removeWaiter(w *waiter) {
	t := w.lane.tenant
	i := slices.Index(t.waiters, w)
	t.waiters = slices.Delete(t.waiters, i, i+1)
	w.lane.waiters--
	s.waiting--
	s.fileWaiting(t)
}

// fileWaiting keeps t in the list that says whether its waiters want
// guaranteed slots or borrowed ones. Two lists, so that a waiter that may be
// let in is never behind one that may not.
func (s *Scheduler) fileWaiting(t *Tenant) {
	var want *list.List
	if len(t.waiters) > 0 {
		want = &s.overShare
		if t.queued < s.cfg.Share {
			want = &s.underShare
		}
	}
	if want == t.waiting.list {
		return
	}
	if t.waiting.list != nil {
		t.waiting.list.Remove(t.waiting.elem)
	}
	t.waiting = waitList{list: want}
	if want != nil {
		t.waiting.elem = want.PushBack(t)
	}
}

// handOver gives a lane that has become free and empty to the first publish
// that waits for a slot for it; it reports whether there was one.
func (s *Scheduler) handOver(l *Lane) bool {
	if l.waiters == 0 {
		return false
	}
	for _, w := range l.tenant.waiters {
		if w.lane == l {
			s.removeWaiter(w)
			w.answer(Inline, nil)
			return true
		}
	}
	return false
}
