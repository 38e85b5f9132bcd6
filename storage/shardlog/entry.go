package shardlog

import "github.com/felixlog/felix/storage/segment"

// Entry is one batch to append. Append copies what it keeps before it returns.
type Entry struct {
	Kind  segment.Kind
	Count int // records in Block
	// Block is the wire's record block: u32 count, count x {u32 length, bytes}.
	// The caller has checked it.
	Block []byte
	// Extra is what the kind carries beside the block.
	Extra     []byte
	Publisher string // at most segment.MaxPublisher bytes
	// Generation wrote the batch.
	Generation uint64
	// HasProducer makes the append idempotent under ProducerID and Sequence.
	HasProducer bool
	ProducerID  uint64
	Sequence    uint64
}

// Location is where a batch lies.
type Location struct {
	Segment  uint64 // segment id
	Position int64  // byte position of the batch header in the segment's file
	Length   int    // bytes of the batch, header included
}

// Appended tells where a batch went.
type Appended struct {
	// First is the offset of the batch's first record.
	First uint64
	Count int
	// TimestampMicros is the record time: Unix microseconds, never decreasing
	// within a log.
	TimestampMicros uint64
	// Where is set when the batch is committed; Append itself leaves it zero,
	// and so does a duplicate.
	Where Location
	// Duplicate: the log held the batch already, at First. Nothing was written.
	Duplicate bool
}

// Completion hears of a batch's end. Committed is called once, in offset order,
// on the committer's goroutine, or in the modes None and Periodic on the
// appending goroutine when nothing is ahead of it. It may append and read; it
// must not wait for the log.
//
// A nil error means committed as the mode promises. A *SyncFailedError with
// Unknown set means the batch may or may not survive a restart; any other error
// means that nothing of it was kept.
type Completion interface {
	Committed(Appended, error)
}
