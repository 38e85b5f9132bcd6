package tracker

import "slices"

// deadline is when a record moves by itself.
type deadline struct {
	at     Time
	offset uint64
}

func (d deadline) before(o deadline) bool {
	return d.at < o.at || d.at == o.at && d.offset < o.offset
}

// place is an owed offset.
type place uint64

func (p place) before(o place) bool { return p < o }

type ordered[T any] interface {
	comparable
	before(T) bool
}

// heap is a binary heap whose items are outdated in place: whoever pops asks
// whether an item still holds, and compact drops those that do not.
type heap[T ordered[T]] struct{ items []T }

// slack is how long a heap with this many items that hold may be.
func slack(live int) int { return 2*live + 64 }

func (h *heap[T]) len() int { return len(h.items) }

func (h *heap[T]) push(x T) {
	h.items = append(h.items, x)
	i := len(h.items) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !x.before(h.items[up]) {
			break
		}
		h.items[i] = h.items[up]
		i = up
	}
	h.items[i] = x
}

func (h *heap[T]) min() (x T, ok bool) {
	if len(h.items) == 0 {
		return x, false
	}
	return h.items[0], true
}

func (h *heap[T]) pop() {
	last := len(h.items) - 1
	x := h.items[last]
	h.items = h.items[:last]
	if last == 0 {
		return
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= last {
			break
		}
		if down+1 < last && h.items[down+1].before(h.items[down]) {
			down++
		}
		if !h.items[down].before(x) {
			break
		}
		h.items[i] = h.items[down]
		i = down
	}
	h.items[i] = x
}

func (h *heap[T]) clear() { h.items = h.items[:0] }

// compact keeps each item that holds once. What is sorted is a heap.
func (h *heap[T]) compact(holds func(T) bool) {
	h.items = slices.DeleteFunc(h.items, func(x T) bool { return !holds(x) })
	slices.SortFunc(h.items, func(a, b T) int {
		switch {
		case a.before(b):
			return -1
		case b.before(a):
			return 1
		}
		return 0
	})
	h.items = slices.Compact(h.items)
}
