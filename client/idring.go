package client

// An idRing holds what is under way on a stream by its number there. Numbers
// are consecutive, so each is found at its number modulo the ring's size.
// The ring grows to the span between the oldest and the newest, which its
// user bounds.
type idRing[T any] struct {
	slots        []*T   // length a power of two
	oldest, next uint64 // oldest..next-1 may be held
}

const minRing = 16

// span is how many numbers lie between the oldest held and the next.
func (q *idRing[T]) span() int { return int(q.next - q.oldest) }

// push holds v under the next number.
func (q *idRing[T]) push(v *T) {
	if q.span() == len(q.slots) {
		q.grow()
	}
	*q.slot(q.next) = v
	q.next++
}

// pop takes back the last push.
func (q *idRing[T]) pop() {
	q.next--
	*q.slot(q.next) = nil
}

func (q *idRing[T]) slot(id uint64) **T { return &q.slots[id&uint64(len(q.slots)-1)] }

func (q *idRing[T]) grow() {
	bigger := idRing[T]{slots: make([]*T, max(minRing, 2*len(q.slots)))}
	for id := q.oldest; id < q.next; id++ {
		*bigger.slot(id) = *q.slot(id)
	}
	q.slots = bigger.slots
}

// first is what is held under the oldest number; nil when the ring is empty.
func (q *idRing[T]) first() *T {
	if q.span() == 0 {
		return nil
	}
	return *q.slot(q.oldest)
}

// take removes what is held under id; nil when that is nothing.
func (q *idRing[T]) take(id uint64) *T {
	if id < q.oldest || id >= q.next {
		return nil
	}
	v := *q.slot(id)
	*q.slot(id) = nil
	for q.oldest < q.next && *q.slot(q.oldest) == nil {
		q.oldest++
	}
	return v
}

// takeAll removes everything, in order.
func (q *idRing[T]) takeAll() []*T {
	var out []*T
	for id := q.oldest; id < q.next; id++ {
		if v := *q.slot(id); v != nil {
			out = append(out, v)
		}
	}
	clear(q.slots)
	q.oldest = q.next
	return out
}
