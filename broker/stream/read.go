package stream

import (
	"context"

	"github.com/felixlog/felix/storage/segment"
)

// MaxReadBytes bounds the payloads of one [Shard.Read] (wire 10).
const MaxReadBytes = 4 << 20

// maxRecordsPerRead bounds a read that names no bound of its own.
const maxRecordsPerRead = 10_000

// usualRecord is the guess of a record's length in the log, in bytes.
const usualRecord = 512

// ReadOptions ask for one page of committed records.
type ReadOptions struct {
	// From is the offset of the first record wanted.
	From uint64
	// End, if not 0, is the offset to stop before.
	End uint64
	// MaxRecords and MaxBytes (of payload) bound the page; 0, or more than the
	// broker's own bounds, means those. One record is returned whatever its
	// size.
	MaxRecords, MaxBytes int
}

// A Record is one record as it was published.
type Record struct {
	Offset  uint64
	Payload []byte
	// Publisher is empty where it was not recorded.
	Publisher string
	// TimestampMicros is when its batch was appended.
	TimestampMicros uint64
}

// Records are a page.
type Records struct {
	Items []Record
	// Next is where to read on. It steps over offsets that hold no record; an
	// empty page with Next as asked says that nothing is committed there yet.
	Next uint64

	room []byte // what the next payloads are copied into
}

// roomBytes is how much is made at once for the payloads of a page.
const roomBytes = 32 << 10

// keep copies a payload. Those of a page share their memory, wanted more being
// about to come: a page costs a few allocations, not one a record.
func (r *Records) keep(payload []byte, wanted int) []byte {
	n := len(payload)
	if r.room == nil || n > cap(r.room)-len(r.room) { // an empty payload is not nil
		r.room = make([]byte, 0, max(n, min(n*wanted, roomBytes)))
	}
	at := len(r.room)
	r.room = append(r.room, payload...)
	return r.room[at:len(r.room):len(r.room)]
}

// Read returns one page of committed records and never waits for more. Errors:
// [*CursorError], [*NeedsLogError], [*UnavailableError], why the shard serves
// no longer.
func (sh *Shard) Read(ctx context.Context, o ReadOptions) (Records, error) {
	log, err := sh.serving(ctx, "reading records")
	if err != nil {
		return Records{}, err
	}
	if tail := log.Tail(); o.From > tail {
		return Records{}, &CursorError{Reason: InFuture, Requested: o.From, Available: tail}
	}
	if o.MaxBytes <= 0 || o.MaxBytes > MaxReadBytes {
		o.MaxBytes = MaxReadBytes
	}
	if o.MaxRecords <= 0 || o.MaxRecords > maxRecordsPerRead {
		o.MaxRecords = maxRecordsPerRead
	}
	if o.End == 0 {
		o.End = 1<<64 - 1
	}
	out := Records{Next: o.From}
	// How long the records are shows only as they are read: what is asked of
	// the log begins with a guess and grows, so that a short page costs a short
	// read.
	ahead := usualRecord * o.MaxRecords
	for size := 0; ; ahead *= 2 {
		ahead = min(ahead, o.MaxBytes)
		page, err := log.Read(out.Next, ahead, 0)
		if err != nil {
			return Records{}, sh.readError(out.Next, err)
		}
		before := out.Next
		more := out.fill(page.Batches, o, &size)
		if more {
			out.Next = max(out.Next, min(page.Next, o.End))
		}
		page.Release()
		if !more || out.Next == before {
			return out, nil
		}
	}
}

// fill copies records, size bytes so far, until a bound is reached; it reports
// whether none was.
func (r *Records) fill(batches []segment.Batch, o ReadOptions, size *int) (more bool) {
	for i := range batches {
		b := &batches[i]
		if b.BaseOffset >= o.End {
			return false
		}
		publisher := string(b.Publisher)
		for offset, payload := range b.All() {
			if offset < r.Next {
				continue
			}
			if offset >= o.End || len(r.Items) > 0 && *size+len(payload) > o.MaxBytes {
				return false
			}
			*size += len(payload)
			r.Items = append(r.Items, Record{
				Offset: offset, Payload: r.keep(payload, o.MaxRecords-len(r.Items)),
				Publisher: publisher, TimestampMicros: b.TimestampMicros,
			})
			r.Next = offset + 1
			if len(r.Items) == o.MaxRecords || *size >= o.MaxBytes {
				return false
			}
		}
	}
	return true
}

// OffsetForTime is the offset of the first record whose batch was appended at
// or after the given Unix microseconds; ok is false when there is none yet.
// Errors: [*NeedsLogError], [*UnavailableError], why the shard serves no
// longer.
func (sh *Shard) OffsetForTime(ctx context.Context, micros uint64) (offset uint64, ok bool, err error) {
	log, err := sh.serving(ctx, "finding an offset by time")
	if err != nil {
		return 0, false, err
	}
	if offset, ok, err = log.OffsetForTime(micros); err != nil {
		return 0, false, sh.readError(0, err)
	}
	return offset, ok, nil
}
