package cache

import "errors"

// Position is the offset from which another watch of the same keys tells all
// that Next and Poll have not returned yet, and none of the changes that they
// have; ok is false when the watch ended in a way that leaves it unknown. It is
// past every change of the shard that this watch did not match, so that the
// place is not one that compaction reclaimed long ago. While current values are
// delivered it is behind the last of them: the others were put after it.
//
// It is for the goroutine that consumes.
func (w *Watch) Position() (offset uint64, ok bool) {
	h := &w.shard.hub
	h.mu.Lock() // no change is on its way to the queue
	defer h.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	var lagged *LaggedError
	switch {
	case len(w.queue) > 0 && w.joined:
		return w.queue[0].Offset, true
	case errors.As(w.end, &lagged):
		return lagged.ResumeFrom, true
	case w.end == ErrWatchClosed:
		return 0, false
	case w.left, !w.joined:
		return w.seen, true
	case w.end != nil && !w.finished:
		return 0, false
	}
	return max(w.live, h.through), true
}
