package client

import (
	"iter"
	"time"

	"github.com/felixlog/felix/wire"
)

// An Event is one record of a subscription.
type Event struct {
	// Payload is the record. An empty payload is a record like any other.
	Payload []byte
	// Offset is the record's place in its shard, if HasOffset. Brokers that
	// predate offsets send none.
	Offset    uint64
	HasOffset bool
	// Shard is the shard the record came from.
	Shard uint32
	// SkippedBefore counts offsets right before this one that hold no
	// record. They are not a loss.
	SkippedBefore uint64
	// Gap counts records right before this one that were lost to this
	// subscription: dropped by the broker for a slow reader, or by the
	// subscription's own buffer. It is zero where offsets are unknown.
	Gap uint64
	// Publisher is the principal that published the record, where the broker
	// recorded it and [WithPublishers] asked for it.
	Publisher string
	// Time is when the broker appended the record, where known and
	// [WithTimestamps] asked for it; else zero.
	Time time.Time
}

// A Batch is a run of records of one shard, as they arrived together.
type Batch struct {
	// Shard is the shard the records came from.
	Shard uint32
	// BaseOffset is the first record's offset, if HasOffset; the others
	// follow it one by one.
	BaseOffset uint64
	HasOffset  bool
	// SkippedBefore and Gap are those of the first record: see [Event].
	SkippedBefore, Gap uint64
	// Publisher is that of all records: see [Event].
	Publisher string

	events wire.EventBatch
	first  int // records of events that come before this batch
}

// Len is the number of records.
func (b *Batch) Len() int { return b.events.Count() - b.first }

// PayloadBytes is the sum of the payloads' lengths.
func (b *Batch) PayloadBytes() int {
	n := 0
	for ev := range b.Events() {
		n += len(ev.Payload)
	}
	return n
}

// Events ranges over the records. Their payloads are views of the batch and
// end with it: copy what has to last.
func (b *Batch) Events() iter.Seq[Event] {
	return func(yield func(Event) bool) {
		for i, e := range b.events.All() {
			if i < b.first {
				continue
			}
			if !yield(b.event(i-b.first, e)) {
				return
			}
		}
	}
}

// event is the i-th record.
func (b *Batch) event(i int, e wire.Event) Event {
	ev := Event{
		Payload:   e.Payload,
		HasOffset: b.HasOffset,
		Shard:     b.Shard,
		Publisher: b.Publisher,
	}
	if b.HasOffset {
		ev.Offset = b.BaseOffset + uint64(i)
	}
	if i == 0 {
		ev.SkippedBefore, ev.Gap = b.SkippedBefore, b.Gap
	}
	if e.TimestampMicros != 0 {
		ev.Time = time.UnixMicro(int64(e.TimestampMicros))
	}
	return ev
}

// appendEvents appends the records with payloads that are theirs to keep,
// all in one allocation.
func (b *Batch) appendEvents(dst []Event) []Event {
	own := make([]byte, 0, b.PayloadBytes())
	for ev := range b.Events() {
		from := len(own)
		own = append(own, ev.Payload...)
		ev.Payload = own[from:len(own):len(own)]
		dst = append(dst, ev)
	}
	return dst
}

// drop takes the first n records away; the ones behind follow without a gap.
func (b *Batch) drop(n int) {
	b.first += n
	b.BaseOffset += uint64(n)
	b.SkippedBefore, b.Gap = 0, 0
}
