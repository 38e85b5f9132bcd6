package cache

import (
	"slices"
	"sync"
	"sync/atomic"
)

// A hub hands the changes of one shard to the watches they match. Watches are
// found by key, and by prefix for each length there is, so that a change costs
// what it matches and not what is watched.
type hub struct {
	// count is the number of watches, read without the lock: a change that
	// finds none was committed before any later watch reads the tail.
	count atomic.Int64

	mu       sync.Mutex
	end      error // no watch is accepted any more
	keys     map[string][]*Watch
	prefixes map[string][]*Watch
	lengths  []prefixLength // ascending
	through  uint64         // every change below was pushed to the watches there were
}

// A prefixLength counts the watched prefixes of one length.
type prefixLength struct {
	bytes, prefixes int
}

// join registers w. From then on w is pushed every change it matches.
func (h *hub) join(w *Watch) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.end != nil {
		return h.end
	}
	by := &h.keys
	if w.byPrefix {
		by = &h.prefixes
	}
	if *by == nil {
		*by = make(map[string][]*Watch)
	}
	list := (*by)[w.match]
	if w.byPrefix && len(list) == 0 {
		h.countLength(len(w.match), 1)
	}
	w.slot = len(list)
	(*by)[w.match] = append(list, w)
	h.count.Add(1)
	return nil
}

// leave takes w out; a watch that has left already stays out.
func (h *hub) leave(w *Watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.remove(w)
}

// remove is leave with mu held.
func (h *hub) remove(w *Watch) {
	by := h.keys
	if w.byPrefix {
		by = h.prefixes
	}
	list := by[w.match]
	if w.slot < 0 || w.slot >= len(list) || list[w.slot] != w {
		return
	}
	last := len(list) - 1
	list[w.slot] = list[last]
	list[w.slot].slot = w.slot
	list[last] = nil
	w.slot = -1
	h.count.Add(-1)
	if last > 0 {
		by[w.match] = list[:last]
		return
	}
	delete(by, w.match)
	if w.byPrefix {
		h.countLength(len(w.match), -1)
	}
}

func (h *hub) countLength(bytes, delta int) {
	i, found := slices.BinarySearchFunc(h.lengths, bytes, func(l prefixLength, n int) int { return l.bytes - n })
	if !found {
		h.lengths = slices.Insert(h.lengths, i, prefixLength{bytes: bytes})
	}
	h.lengths[i].prefixes += delta
	if h.lengths[i].prefixes == 0 {
		h.lengths = slices.Delete(h.lengths, i, i+1)
	}
}

// changed hands one change to the watches it matches. Its key and value are
// copied once for all of them.
func (h *hub) changed(c Change) {
	if h.count.Load() == 0 {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.through = c.Offset + 1
	shared := false
	if list := h.keys[string(c.Key)]; len(list) > 0 {
		h.push(list, &c, &shared)
	}
	// From the end: a length goes with the last watch that has it.
	for i := len(h.lengths) - 1; i >= 0; i-- {
		n := h.lengths[i].bytes
		if n > len(c.Key) {
			continue
		}
		if list := h.prefixes[string(c.Key[:n])]; len(list) > 0 {
			h.push(list, &c, &shared)
		}
	}
}

// push queues c for a list of watches, which those that lag leave. mu is held.
func (h *hub) push(list []*Watch, c *Change, shared *bool) {
	if !*shared {
		*c, *shared = c.clone(), true
	}
	// From the end: a watch that leaves is replaced by one already served.
	for _, w := range slices.Backward(list) {
		if !w.push(c) {
			h.remove(w)
		}
	}
}

// finish ends all watches with err, after what they have queued.
func (h *hub) finish(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.end = err
	for _, by := range []map[string][]*Watch{h.keys, h.prefixes} {
		for _, list := range by {
			for _, w := range list {
				w.slot = -1
				w.finish(err)
			}
		}
	}
	h.keys, h.prefixes, h.lengths = nil, nil, nil
	h.count.Store(0)
}

// clone copies key and value into one piece of memory.
func (c *Change) clone() Change {
	owned := *c
	b := make([]byte, 0, len(c.Key)+len(c.Value))
	b = append(b, c.Key...)
	owned.Key = b[:len(c.Key):len(c.Key)]
	if c.Op == Updated {
		b = append(b, c.Value...)
		owned.Value = b[len(c.Key):]
	}
	return owned
}

// matches says that a watch of this pattern sees key.
func matches(key []byte, pattern string, byPrefix bool) bool {
	if byPrefix && len(key) > len(pattern) {
		key = key[:len(pattern)]
	}
	return string(key) == pattern
}
