package recovery

import (
	"errors"

	"github.com/felixlog/felix/storage/segment"
)

// A place is a point between two batches of a segment.
type place struct {
	pos    int64
	offset uint64
	crc    uint32 // of the batch before
	micros uint64 // of the batch before
}

// A damage is the first thing in a segment that is no batch.
type damage struct {
	place
	err *segment.CorruptionError
	// end is where the damaged batch ends, 0 where its header does not verify
	// and so nothing says.
	end int64
	// foreign is true where the checksums are right and the batch still is
	// none that this version writes. No torn write does that.
	foreign bool
}

// A scanned is what a segment was found to hold.
type scanned struct {
	place   // after the last good batch
	batches int
	index   []segment.IndexEntry // those that the scan passed
	damage  *damage              // nil where the batches reach the end of the file
}

// scan verifies the batches of a file from a place on: checksums, chain, and
// offsets without a gap. The builder collects the index on the way. The error
// is one of reading; damage is a result.
func scan(w *window, path string, id uint64, from place, index *segment.Builder) (scanned, error) {
	at := from
	out := scanned{place: at}
	var batch segment.Batch
	for at.pos < w.size {
		found, n, err := next(w, at, &batch)
		if err != nil {
			return out, err
		}
		if found != nil {
			found.err = found.err.At(path, id, at.pos)
			out.damage = found
			break
		}
		index.Add(batch.BaseOffset, uint64(at.pos), n)
		at = place{pos: at.pos + int64(n), offset: batch.End(), crc: batch.CRC, micros: batch.TimestampMicros}
		out.place = at
		out.batches++
	}
	out.index = index.Entries()
	return out, nil
}

// next reads the batch at a place. What is wrong with it comes as a damage
// whose error knows positions within the batch.
func next(w *window, at place, batch *segment.Batch) (*damage, int, error) {
	left := w.size - at.pos
	b, err := w.at(at.pos, int(min(left, segment.BatchHeaderSize)))
	if err != nil {
		return nil, 0, err
	}
	bad := func(err error) *damage { return &damage{place: at, err: corruption(err)} }
	h, err := segment.ParseBatchHeader(b)
	if err != nil {
		d := bad(err)
		d.foreign = isForeign(d.err.Kind)
		return d, 0, nil
	}
	n := h.Size()
	if left < int64(n) {
		d := bad(&segment.CorruptionError{Kind: segment.Truncated, Needed: int64(n), Available: left})
		d.end = at.pos + int64(n)
		return d, 0, nil
	}
	if b, err = w.at(at.pos, n); err != nil {
		return nil, 0, err
	}
	if _, err = segment.ParseBatch(b, batch); err == nil {
		err = continues(&h, at)
	}
	if err != nil {
		d := bad(err)
		d.end = at.pos + int64(n)
		d.foreign = isForeign(d.err.Kind)
		return d, 0, nil
	}
	return nil, n, nil
}

// continues checks that a batch is the one that belongs at a place.
func continues(h *segment.BatchHeader, at place) error {
	switch {
	case h.BaseOffset != at.offset:
		return &segment.CorruptionError{Kind: segment.OffsetOutOfOrder, Expected: at.offset, Found: h.BaseOffset}
	case h.PrevCRC != at.crc:
		return &segment.CorruptionError{Kind: segment.Chain, Expected: uint64(at.crc), Found: uint64(h.PrevCRC)}
	}
	return nil
}

// isForeign tells the kinds that are found only behind a checksum that is
// right.
func isForeign(kind segment.CorruptionKind) bool {
	switch kind {
	case segment.BatchFlags, segment.BatchKind, segment.BatchCount, segment.BatchLength, segment.BatchTooLarge:
		return true
	}
	return false
}

// corruption is the error of a parser, all of which are of this type.
func corruption(err error) *segment.CorruptionError {
	if c, ok := errors.AsType[*segment.CorruptionError](err); ok {
		return c
	}
	return &segment.CorruptionError{Kind: segment.Truncated, Err: err}
}

// provenThrough looks at [from, to) of a file for headers of batches that
// verify, and returns the greatest offset that one of them says is durable, and
// whether there is any. It skips what a verified length says is a payload, so
// that no payload is taken for a batch where that can be told.
func provenThrough(w *window, from int64) (through uint64, found bool, err error) {
	for from < w.size {
		left := w.size - from
		if left < segment.BatchHeaderSize {
			break
		}
		b, err := w.at(from, segment.BatchHeaderSize)
		if err != nil {
			return 0, false, err
		}
		position, h, ok := segment.FindBatch(b)
		if !ok {
			// The last bytes may be the beginning of a header.
			from += int64(len(b) - segment.BatchHeaderSize + 1)
			continue
		}
		through, found = max(through, h.DurableThrough), true
		from += int64(position) + int64(h.Size())
	}
	return through, found, nil
}
