package stream

// A Piece is a subscription's hold on an envelope, from one record on: the
// whole batch unless the subscription starts inside it.
//
// Release it once, when its bytes have been handed on. Until then it also
// occupies its place in the subscription's queue, so that the queue's bounds
// cover what the consumer has taken but not finished.
type Piece struct {
	Envelope *Envelope
	// First is the index of the first record to deliver.
	First int

	queue      *Subscription // nil for history, which occupies no place
	generation uint32
}

// Whole says that all records of the envelope are to be delivered, so that its
// shared frame serves.
func (p Piece) Whole() bool { return p.First == 0 }

// Offset is the offset of the first record to deliver.
func (p Piece) Offset() uint64 { return p.Envelope.meta.BaseOffset + uint64(p.First) }

// Count is the number of records to deliver.
func (p Piece) Count() int { return p.Envelope.meta.Count - p.First }

// Records is the bytes of the records to deliver, each a u32 length and its
// payload. Read only, valid until Release.
func (p Piece) Records() []byte { return p.Envelope.records(p.First) }

// Release gives the envelope and the place in the queue back. The piece and
// everything read from it are invalid afterwards.
func (p Piece) Release() {
	size := p.Envelope.Size()
	p.Envelope.releaseOf(p.generation)
	if p.queue != nil {
		p.queue.leave(size)
	}
}
