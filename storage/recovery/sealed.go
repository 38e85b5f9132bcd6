package recovery

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/segment"
)

// walkSealed verifies the segments before the newest. Each must be whole and
// begin where the one before it ends. Only the last may be damaged: that can be
// a seal a crash interrupted, and is returned as a finding, with its file.
// Otherwise end is where the newest must begin.
func (p *planner) walkSealed(sealed []*file, newest *file) (end place, torn *file, found scanned, err error) {
	for i, f := range sealed {
		if f.err != nil {
			return end, nil, found, f.err
		}
		if i > 0 && !f.follows(end) {
			return end, nil, found, f.gap(end)
		}
		after := newest
		if i+1 < len(sealed) {
			after = sealed[i+1]
		}
		if found, err = p.readSealed(f, after); err != nil {
			return end, nil, found, err
		}
		if found.damage != nil {
			if i+1 < len(sealed) {
				return end, nil, found, found.damage.err
			}
			return end, f, found, nil
		}
		end = found.place
		p.keep(f, found)
	}
	return end, nil, found, nil
}

// keep adds a segment to the plan, as long as what was found in it.
func (p *planner) keep(f *file, found scanned) {
	p.plan.Segments = append(p.plan.Segments, Segment{
		ID: f.id, Base: f.header.BaseOffset, End: found.offset, Size: found.pos,
		LastCRC: found.crc, CreatedMicros: f.header.CreatedMicros, NewestMicros: found.micros,
	})
}

// readSealed verifies a sealed segment, from its last index entry on or whole.
// An index may lie, so nothing it leads to is believed that does not fit: the
// batches must reach the end of the file and the beginning of the segment
// after it, and the index must cover them as a new one would. Else the segment
// is read whole, and a wrong index is planned to be rebuilt.
func (p *planner) readSealed(f, after *file) (found scanned, err error) {
	whole := false
	err = p.withWindow(f, func(w *window) error {
		from, ok, err := p.lastEntry(w, f)
		if err != nil {
			return err
		}
		if ok {
			found, err = p.scan(w, f, from)
			if err != nil || found.damage == nil && len(found.index) == 1 && after.follows(found.place) {
				return err
			}
		}
		whole = true
		found, err = p.scan(w, f, f.start())
		return err
	})
	if err != nil || found.damage != nil || !whole {
		return found, err
	}
	return found, p.rebuildIndex(f, found.index)
}

// lastEntry finds the batch of the last entry in the index of f. It is false
// where there is none that leads to a batch of its offset, and where all of the
// segment is to be read.
func (p *planner) lastEntry(w *window, f *file) (place, bool, error) {
	if p.opts.VerifyAll {
		return place{}, false, nil
	}
	entry, ok, err := readLastEntry(p.fs, filepath.Join(p.dir, segment.IndexName(f.id)), f.header.BaseOffset)
	if err != nil || !ok {
		return place{}, false, err
	}
	if entry.Position < segment.HeaderSize || entry.Position > uint64(w.size) || w.size-int64(entry.Position) < segment.BatchHeaderSize {
		return place{}, false, nil
	}
	pos := int64(entry.Position)
	b, err := w.at(pos, segment.BatchHeaderSize)
	if err != nil {
		return place{}, false, err
	}
	h, err := segment.ParseBatchHeader(b)
	if err != nil || h.BaseOffset != entry.Offset {
		return place{}, false, nil
	}
	if pos == segment.HeaderSize {
		return f.start(), true, nil
	}
	return place{pos: pos, offset: h.BaseOffset, crc: h.PrevCRC}, true, nil
}

// readLastEntry reads the header and the last whole entry of an index.
func readLastEntry(f fs.FS, path string, base uint64) (entry segment.IndexEntry, ok bool, err error) {
	err = withFile(f, path, func(file fs.File, size int64) error {
		count := (size - segment.IndexHeaderSize) / segment.IndexEntrySize
		if size < segment.IndexHeaderSize || count < 1 {
			return nil
		}
		head, err := readFull(file, 0, segment.IndexHeaderSize)
		if err != nil {
			return err
		}
		if _, err := segment.ParseIndex(head, base); err != nil {
			return nil // unusable, which ok says
		}
		n := min(count, 2)
		tail, err := readFull(file, segment.IndexHeaderSize+(count-n)*segment.IndexEntrySize, int(n)*segment.IndexEntrySize)
		if err != nil {
			return err
		}
		last := tail[len(tail)-segment.IndexEntrySize:]
		if n == 2 && bytes.Compare(tail[:segment.IndexEntrySize], last) >= 0 {
			return nil // they are big-endian, so they ascend as bytes
		}
		entry = segment.IndexEntry{Offset: binary.BigEndian.Uint64(last), Position: binary.BigEndian.Uint64(last[8:])}
		ok = true
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return entry, ok, err
}

// scan reads the batches of a segment from a place on.
func (p *planner) scan(w *window, f *file, from place) (scanned, error) {
	return scan(w, f.path, f.id, from, segment.NewBuilder(p.opts.IndexSpacing))
}

// rebuildIndex plans to write the index of a sealed segment, unless the one
// there is the same.
func (p *planner) rebuildIndex(f *file, entries []segment.IndexEntry) error {
	have, _, err := p.readIndex(f, len(entries))
	if err != nil {
		return err
	}
	if bytes.Equal(have, segment.AppendIndex(nil, f.header.BaseOffset, entries)) {
		return nil
	}
	p.indices = append(p.indices, Step{
		Op: WriteIndex, Segment: f.id, Base: f.header.BaseOffset, Index: entries, Repairs: true,
		Why: "it is missing or does not fit the segment",
	})
	return nil
}

// readIndex reads the index of a segment that should have that many entries.
// It is nil where there is none; one that is too long is answered with as much
// of it as shows that it is.
func (p *planner) readIndex(f *file, entries int) (data []byte, exists bool, err error) {
	path := filepath.Join(p.dir, segment.IndexName(f.id))
	err = withFile(p.fs, path, func(file fs.File, size int64) error {
		exists = true
		n := min(size, int64(segment.IndexHeaderSize+entries*segment.IndexEntrySize)+1)
		data, err = readFull(file, 0, int(n))
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("read index: %w", err)
	}
	return data, exists, nil
}
