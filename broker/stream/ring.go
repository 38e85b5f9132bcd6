package stream

import "sort"

// A ring holds the newest batches of a shard, whole, oldest first. The shard's
// lock guards it.
type ring struct {
	maxRecords int
	maxBytes   int64

	slots   []*Envelope // circular; the length is a power of two
	head, n int
	records int
	bytes   int64
}

func (r *ring) at(i int) *Envelope { return r.slots[(r.head+i)&(len(r.slots)-1)] }

// push takes over a reference to e and lets go of what no longer fits. At
// least maxRecords records stay, or as many as maxBytes allows.
func (r *ring) push(e *Envelope) {
	if r.n == len(r.slots) {
		r.grow()
	}
	r.slots[(r.head+r.n)&(len(r.slots)-1)] = e
	r.n++
	r.records += e.meta.Count
	r.bytes += e.Size()
	for r.n > 0 && (r.bytes > r.maxBytes || r.records-r.at(0).meta.Count >= r.maxRecords) {
		r.pop()
	}
}

func (r *ring) pop() {
	e := r.at(0)
	r.slots[r.head] = nil
	r.head = (r.head + 1) & (len(r.slots) - 1)
	r.n--
	r.records -= e.meta.Count
	r.bytes -= e.Size()
	e.release()
}

func (r *ring) grow() {
	slots := make([]*Envelope, max(8, 2*len(r.slots)))
	for i := range r.n {
		slots[i] = r.at(i)
	}
	r.slots, r.head = slots, 0
}

func (r *ring) clear() {
	for r.n > 0 {
		r.pop()
	}
}

// oldest is the offset of the first record held, or tail when there is none.
func (r *ring) oldest(tail uint64) uint64 {
	if r.n == 0 {
		return tail
	}
	return r.at(0).meta.BaseOffset
}

// from returns pieces of everything held from offset on, each with its own
// reference.
func (r *ring) from(offset uint64) []Piece {
	i := sort.Search(r.n, func(i int) bool { return r.at(i).end() > offset })
	if i == r.n {
		return nil
	}
	pieces := make([]Piece, 0, r.n-i)
	for ; i < r.n; i++ {
		e := r.at(i)
		e.retain(1)
		first := 0
		if offset > e.meta.BaseOffset {
			first = int(offset - e.meta.BaseOffset)
		}
		pieces = append(pieces, Piece{Envelope: e, First: first, generation: e.generation()})
	}
	return pieces
}
