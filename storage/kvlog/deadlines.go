package kvlog

import (
	"cmp"
	"container/heap"
	"slices"
)

// A deadline says that a slot's entry lapses. It is stale when the entry has
// another deadline by now; stale ones leave when they are met.
type deadline struct {
	at   int64 // Unix milliseconds
	slot uint32
}

// deadlines is a heap, the earliest first.
type deadlines []deadline

var _ heap.Interface = (*deadlines)(nil)

func (d deadlines) Len() int           { return len(d) }
func (d deadlines) Less(i, j int) bool { return d[i].at < d[j].at }
func (d deadlines) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }

func (d *deadlines) Push(x any) { *d = append(*d, x.(deadline)) }

func (d *deadlines) Pop() any {
	last := len(*d) - 1
	x := (*d)[last]
	*d = (*d)[:last]
	return x
}

func (x *index) valid(d deadline) bool {
	return x.at(d.slot).entry.expires == d.at
}

// staleAllowance is how many stale deadlines a small index may carry.
const staleAllowance = 64

// addDeadline bounds the stale ones to the valid ones and a few.
func (x *index) addDeadline(at int64, n uint32) {
	heap.Push(&x.deadlines, deadline{at, n})
	if len(x.deadlines) <= 2*x.expiring+staleAllowance {
		return
	}
	kept := slices.DeleteFunc(x.deadlines, func(d deadline) bool { return !x.valid(d) })
	slices.SortFunc(kept, func(a, b deadline) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.slot, b.slot))
	})
	x.deadlines = slices.Compact(kept) // sorted, hence a heap
}

// nextDeadline is the earliest valid one.
func (x *index) nextDeadline() (deadline, bool) {
	for len(x.deadlines) > 0 {
		if d := x.deadlines[0]; x.valid(d) {
			return d, true
		}
		heap.Pop(&x.deadlines)
	}
	return deadline{}, false
}

// popLapsed takes the earliest deadline if it has passed. Who takes one either
// removes the entry or puts the deadline back.
func (x *index) popLapsed(nowMillis int64) (deadline, bool) {
	d, ok := x.nextDeadline()
	if !ok || d.at > nowMillis {
		return deadline{}, false
	}
	heap.Pop(&x.deadlines)
	return d, true
}

// restoreDeadline puts back what popLapsed took, for whatever entry the key
// has by now.
func (x *index) restoreDeadline(key string) {
	if n, ok := x.byKey[key]; ok && x.at(n).entry.expires != 0 {
		x.addDeadline(x.at(n).entry.expires, n)
	}
}
