package shardlog

import (
	"errors"
	"sort"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/segment"
)

// OffsetForTime is the first offset whose record time is at or after micros
// (Unix microseconds); ok is false if no record is that new. Record times never
// decrease, so a binary search finds it: over the segments, over the index,
// and then header by header.
func (l *Log) OffsetForTime(micros uint64) (offset uint64, ok bool, err error) {
	for {
		if err := l.readable(); err != nil {
			return 0, false, err
		}
		cuts := l.cuts.Load()
		offset, ok, err = l.offsetForTime(micros)
		changed := cuts != l.cuts.Load()
		gone := errors.Is(err, fs.ErrNotExist)
		if err == nil && ok && !changed && offset < l.Base() {
			gone = true // trimmed while it was looked for
		}
		if !changed && !gone {
			return offset, ok, err
		}
		if gone && err != nil && !changed && offset >= l.Base() {
			return 0, false, err // missing, and nobody removed it
		}
	}
}

// offsetForTime answers, with an error, the base of the segment it came from.
func (l *Log) offsetForTime(micros uint64) (uint64, bool, error) {
	tail := l.Tail()
	segs := l.segmentList()
	i := sort.Search(len(segs), func(i int) bool {
		newest := segs[i].newest.Load()
		return newest >= micros || newest == 0 // an active one without records
	})
	for ; i < len(segs) && segs[i].base < tail; i++ {
		offset, ok, err := l.timeIn(segs[i], micros)
		if err != nil {
			return segs[i].base, false, err
		}
		if ok && offset < tail {
			return offset, true, nil
		}
	}
	return 0, false, nil
}

// timeIn looks in one segment.
func (l *Log) timeIn(s *seg, micros uint64) (uint64, bool, error) {
	d := l.opts.Descriptors
	file, err := d.pin(l, s)
	if err != nil {
		return 0, false, l.fileError("open", err)
	}
	defer d.unpin(file)
	entries, err := l.indexOf(s, file)
	if err != nil {
		return 0, false, err
	}
	w := walker{log: l, seg: s, file: file, position: segment.HeaderSize}
	defer w.release()
	if w.position, err = l.lastBefore(s, file, entries, micros); err != nil {
		return 0, false, err
	}
	for {
		h, _, ok, err := w.next()
		if err != nil || !ok {
			return 0, false, err
		}
		if h.TimestampMicros >= micros {
			return h.BaseOffset, true, nil
		}
	}
}

// lastBefore is the position of the last index entry whose batch is older than
// micros, or where the batches begin.
func (l *Log) lastBefore(s *seg, file *opened, entries []segment.IndexEntry, micros uint64) (int64, error) {
	var failed error
	var header [segment.BatchHeaderSize]byte
	size := s.readable.Load()
	n := sort.Search(len(entries), func(i int) bool {
		at := int64(entries[i].Position)
		if failed != nil || at+segment.BatchHeaderSize > size {
			return true
		}
		if failed = readFull(l, s, file, header[:], at); failed != nil {
			return true
		}
		h, err := segment.ParseBatchHeader(header[:])
		if err != nil {
			failed = placed(err, s, at)
			return true
		}
		return h.TimestampMicros >= micros
	})
	if failed != nil || n == 0 {
		return segment.HeaderSize, failed
	}
	return int64(entries[n-1].Position), nil
}
