package wire

import (
	"encoding/binary"
	"fmt"
	"iter"
	"unicode/utf8"
)

// An EventBatch is records on their way to a subscriber (wire 4.5):
//
//	u64 subscription_id         unless Shared
//	u64 base_offset             when HasOffsets
//	u64 skipped_before          when HasSkipped; needs HasOffsets
//	u8 length, publisher        when HasPublisher
//	block                       or, when HasTimestamps,
//	u32 count, count x { u64 timestamp_micros, u32 length, bytes }
//
// Record i has offset BaseOffset + i.
type EventBatch struct {
	Shared        bool // the form without a subscription id, 0x0004
	HasOffsets    bool
	HasSkipped    bool
	HasPublisher  bool
	HasTimestamps bool

	SubscriptionID uint64
	BaseOffset     uint64
	// SkippedBefore counts the offsets directly below BaseOffset that hold
	// nothing to deliver; they are no loss.
	SkippedBefore uint64
	// Publisher is the principal that published the records, at most
	// MaxPublisher bytes. A view of the payload after ParseEventBatch.
	Publisher []byte

	// Block is the records without timestamps; a view of the payload after
	// ParseEventBatch.
	Block Block
	// Timed is the records with timestamps; a view likewise. Only bytes that
	// ParseEventBatch or AppendTimed made may stand here.
	Timed []byte
}

// An Event is one record of a batch.
type Event struct {
	TimestampMicros uint64 // append time in Unix microseconds; 0 without timestamps
	Payload         []byte
}

const (
	eventName      = "event batch"
	timedHeadBytes = 8 + recordSizeBytes
)

// ParseEventBatch reads an event batch into e, whose byte fields become views
// of payload. Bytes after the last field are ignored. An error is [ErrFlags] or
// [ErrMalformed].
func ParseEventBatch(f Flags, payload []byte, e *EventBatch) error {
	*e = EventBatch{}
	if f.Kind() != FrameEvents {
		return &FieldError{Message: eventName, Field: "flags", Problem: "illegal combination", kind: ErrFlags}
	}
	e.Shared = f.Has(FlagEventBatchShared)
	e.HasOffsets = f.Has(FlagEventOffsets)
	e.HasSkipped = f.Has(FlagEventSkipped)
	e.HasPublisher = f.Has(FlagEventPublisher)
	e.HasTimestamps = f.Has(FlagEventTimestamps)

	c := cursor{rest: payload}
	if !e.Shared {
		e.SubscriptionID = c.u64("subscription_id")
	}
	if e.HasOffsets {
		e.BaseOffset = c.u64("base_offset")
	}
	if e.HasSkipped {
		e.SkippedBefore = c.u64("skipped_before")
	}
	if e.HasPublisher {
		e.Publisher = c.take("publisher", int(c.u8("publisher")))
		if !utf8.Valid(e.Publisher) {
			c.fail("publisher", "not valid UTF-8")
		}
	}
	if e.HasTimestamps {
		e.Timed = c.timed()
	} else {
		e.Block = c.block()
	}
	return c.err(eventName, ErrMalformed)
}

// timed reads the records with timestamps at the cursor.
func (c *cursor) timed() []byte {
	b := c.rest
	if len(b) < blockCountSize {
		c.fail("count", "longer than the payload")
		return nil
	}
	count := binary.BigEndian.Uint32(b)
	if uint64(count) > uint64(len(b)-blockCountSize)/timedHeadBytes {
		c.fail("count", "more records than the payload holds")
		return nil
	}
	at := blockCountSize
	for range count {
		if len(b)-at < timedHeadBytes {
			c.fail("payload", "longer than the payload")
			return nil
		}
		n := binary.BigEndian.Uint32(b[at+8:])
		at += timedHeadBytes
		if uint64(n) > uint64(len(b)-at) {
			c.fail("payload", "longer than the payload")
			return nil
		}
		at += int(n)
	}
	c.rest = b[at:]
	return b[:at:at]
}

// Flags is the frame flags that the fields call for. Skipped offsets without
// offsets are left out.
func (e *EventBatch) Flags() Flags {
	f := FlagEventBatch
	if e.Shared {
		f = FlagEventBatchShared
	}
	if e.HasOffsets {
		f |= FlagEventOffsets
		if e.HasSkipped {
			f |= FlagEventSkipped
		}
	}
	if e.HasPublisher {
		f |= FlagEventPublisher
	}
	if e.HasTimestamps {
		f |= FlagEventTimestamps
	}
	return f
}

// Count is the number of records.
func (e *EventBatch) Count() int {
	if e.HasTimestamps {
		return Block(e.Timed).Count()
	}
	return e.Block.Count()
}

// All yields each record's position and event; payloads are views of the batch.
func (e *EventBatch) All() iter.Seq2[int, Event] {
	// So small that it is inlined, and the loop's state stays on the stack.
	return func(yield func(int, Event) bool) { e.each(yield) }
}

func (e *EventBatch) each(yield func(int, Event) bool) {
	rest := e.Block.Records()
	if e.HasTimestamps {
		rest = Block(e.Timed).Records()
	}
	for i := range e.Count() {
		var event Event
		if e.HasTimestamps {
			event.TimestampMicros = binary.BigEndian.Uint64(rest)
			rest = rest[8:]
		}
		event.Payload, rest = firstRecord(rest)
		if !yield(i, event) {
			return
		}
	}
}

// Append appends the whole frame.
func (e *EventBatch) Append(dst []byte) []byte {
	records := e.Block
	if e.HasTimestamps {
		records = Block(e.Timed)
	}
	dst = AppendEventHead(dst, e.Flags(), e.SubscriptionID, e.BaseOffset, e.SkippedBefore, e.Publisher, records.size())
	return records.append(dst)
}

// AppendEventHead appends an event frame up to its records, of which blockLen
// bytes must follow: a [Block], or with [FlagEventTimestamps] what
// [AppendTimed] makes. Arguments whose flag is not set are ignored. It panics
// when f is no event batch or the publisher is longer than [MaxPublisher].
func AppendEventHead(dst []byte, f Flags, subscriptionID, baseOffset, skipped uint64, publisher []byte, blockLen int) []byte {
	if f.Kind() != FrameEvents {
		panic(fmt.Sprintf("wire: event batch with flags %#04x", uint16(f)))
	}
	size := blockLen
	if f.Has(FlagEventBatch) {
		size += 8
	}
	if f.Has(FlagEventOffsets) {
		size += 8
	}
	if f.Has(FlagEventSkipped) {
		size += 8
	}
	if f.Has(FlagEventPublisher) {
		if len(publisher) > MaxPublisher {
			panic(fmt.Sprintf("wire: publisher of %d bytes, at most %d", len(publisher), MaxPublisher))
		}
		size += 1 + len(publisher)
	}
	dst = AppendHeader(dst, f, size)
	if f.Has(FlagEventBatch) {
		dst = binary.BigEndian.AppendUint64(dst, subscriptionID)
	}
	if f.Has(FlagEventOffsets) {
		dst = binary.BigEndian.AppendUint64(dst, baseOffset)
	}
	if f.Has(FlagEventSkipped) {
		dst = binary.BigEndian.AppendUint64(dst, skipped)
	}
	if f.Has(FlagEventPublisher) {
		dst = append(dst, byte(len(publisher)))
		dst = append(dst, publisher...)
	}
	return dst
}

// AppendTimed appends the records of b with one timestamp for all of them: a
// publish batch has one append time.
func AppendTimed(dst []byte, b Block, micros uint64) []byte {
	dst = binary.BigEndian.AppendUint32(dst, uint32(b.Count()))
	for _, p := range b.All() {
		dst = binary.BigEndian.AppendUint64(dst, micros)
		dst = binary.BigEndian.AppendUint32(dst, uint32(len(p)))
		dst = append(dst, p...)
	}
	return dst
}

// TimedSize is the length of what [AppendTimed] makes of b.
func TimedSize(b Block) int { return b.size() + 8*b.Count() }
