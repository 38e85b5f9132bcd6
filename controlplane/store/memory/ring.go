package memory

import "slices"

// A ring keeps the newest of what is added to it, at most kept.
type ring[T any] struct {
	kept  int
	start int // place of the oldest, once the ring is full
	items []T
}

// add appends, and answers with what had to leave for it.
func (r *ring[T]) add(v T) (evicted T, full bool) {
	if len(r.items) < r.kept {
		r.items = append(r.items, v)
		return evicted, false
	}
	evicted = r.items[r.start]
	r.items[r.start] = v
	r.start = (r.start + 1) % r.kept
	return evicted, true
}

func (r *ring[T]) len() int { return len(r.items) }

// slice copies n items from the i-th oldest on.
func (r *ring[T]) slice(i, n int) []T {
	list := make([]T, 0, n)
	if n == 0 {
		return list
	}
	at := (r.start + i) % len(r.items)
	list = append(list, r.items[at:min(at+n, len(r.items))]...)
	return append(list, r.items[:n-len(list)]...)
}

// all items, oldest first; later additions leave the list alone. It is never nil.
func (r *ring[T]) all() []T { return r.slice(0, len(r.items)) }

// fill replaces everything, by the newest of list.
func (r *ring[T]) fill(list []T) {
	if extra := len(list) - r.kept; extra > 0 {
		list = list[extra:]
	}
	r.start, r.items = 0, slices.Clone(list)
}
