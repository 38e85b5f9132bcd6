package memory

// A feed is the log of changes of one kind (control plane 5.2, 5.3): the newest
// of them, with dense sequences.
type feed[C any] struct {
	next    uint64 // the head: the sequence of the next change
	changes ring[C]
}

// add appends what change makes of its sequence.
func (f *feed[C]) add(change func(seq uint64) C) {
	f.changes.add(change(f.next))
	f.next++
}

// since is a page: changes from a sequence on, or from the oldest there is.
func (f *feed[C]) since(seq uint64, limit int) []C {
	if seq >= f.next {
		return nil
	}
	oldest := f.next - uint64(f.changes.len())
	skip := int(max(seq, oldest) - oldest)
	return f.changes.slice(skip, min(limit, f.changes.len()-skip))
}

// restore sets the head and the changes before it.
func (f *feed[C]) restore(next uint64, changes []C) {
	f.next = next
	f.changes.fill(changes)
}
