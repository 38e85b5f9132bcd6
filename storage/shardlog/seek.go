package shardlog

import (
	"path/filepath"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/segment"
)

// seek finds where in a segment to start reading for offset.
func (l *Log) seek(s *seg, file *opened, offset uint64) (int64, error) {
	entries, err := l.indexOf(s, file)
	if err != nil {
		return 0, err
	}
	return positionOf(entries, offset), nil
}

func positionOf(entries []segment.IndexEntry, offset uint64) int64 {
	if e, ok := segment.Lookup(entries, offset); ok {
		return int64(e.Position)
	}
	return segment.HeaderSize
}

// indexOf is the index of a segment. That of a sealed one is loaded when it is
// first needed, and lives as long as its descriptor.
func (l *Log) indexOf(s *seg, file *opened) ([]segment.IndexEntry, error) {
	if entries, ok := s.entries(); ok {
		return entries, nil
	}
	file.loading.Lock()
	defer file.loading.Unlock()
	if file.loaded {
		return file.entries, nil
	}
	entries, err := l.loadIndex(s)
	if err != nil {
		if entries, err = l.rebuildIndex(s, file); err != nil {
			return nil, err
		}
	}
	file.entries, file.loaded = entries, true
	return entries, nil
}

// loadIndex reads an index file. Any error means that it has to be rebuilt.
func (l *Log) loadIndex(s *seg) ([]segment.IndexEntry, error) {
	// An entry covers at least one batch, so that a right index is smaller.
	limit := segment.IndexHeaderSize + s.readable.Load()/segment.BatchHeaderSize*segment.IndexEntrySize
	data, err := fs.ReadFile(l.fs, filepath.Join(l.dir, segment.IndexName(s.id)), limit)
	if err != nil {
		return nil, err
	}
	entries, err := segment.ParseIndex(data, s.base)
	if err != nil {
		return nil, err
	}
	if n := len(entries); n > 0 && (entries[n-1].Position >= uint64(s.readable.Load()) || entries[n-1].Offset >= s.end.Load()) {
		return nil, &segment.CorruptionError{Kind: segment.IndexOrder, Path: s.path, Segment: s.id, Detail: "an entry past the end"}
	}
	return entries, nil
}

// rebuildIndex makes the index of a segment anew, and replaces the file.
func (l *Log) rebuildIndex(s *seg, file *opened) ([]segment.IndexEntry, error) {
	l.metrics.IndexRebuilds.Add(1)
	entries, err := l.scanIndex(s, file)
	if err == nil {
		l.writeIndex(s, entries)
	}
	return entries, err
}

// scanIndex makes the index of a segment from its batch headers.
func (l *Log) scanIndex(s *seg, file *opened) ([]segment.IndexEntry, error) {
	b := segment.NewBuilder(l.opts.IndexSpacing)
	w := walker{log: l, seg: s, file: file, position: segment.HeaderSize}
	defer w.release()
	for {
		h, at, ok, err := w.next()
		if err != nil || !ok {
			return b.Entries(), err
		}
		b.Add(h.BaseOffset, uint64(at), h.Size())
	}
}

// seekRebuilt seeks after the index of a sealed segment proved wrong. That of an
// active one was made from what was written and is not.
func (l *Log) seekRebuilt(s *seg, file *opened, offset uint64) (int64, error) {
	if entries, ok := s.entries(); ok {
		return positionOf(entries, offset), nil
	}
	file.loading.Lock()
	defer file.loading.Unlock()
	entries, err := l.rebuildIndex(s, file)
	if err != nil {
		return 0, err
	}
	file.entries, file.loaded = entries, true
	return positionOf(entries, offset), nil
}

// walker goes from batch header to batch header of a segment.
type walker struct {
	log      *Log
	seg      *seg
	file     *opened
	position int64
	chunk    *chunk
	start    int64 // position of the chunk
	filled   int
}

// next is the header at the walker's position; ok is false at the end.
func (w *walker) next() (h segment.BatchHeader, at int64, ok bool, err error) {
	size := w.seg.readable.Load()
	at = w.position
	if at >= size {
		return h, at, false, nil
	}
	b, err := w.bytes(at, size)
	if err != nil {
		return h, at, false, err
	}
	h, err = segment.ParseBatchHeader(b)
	if err != nil {
		return h, at, false, placed(err, w.seg, at)
	}
	w.position += int64(h.Size())
	if w.position > size {
		short := &segment.CorruptionError{Kind: segment.Truncated, Needed: int64(h.Size()), Available: size - at}
		return h, at, false, placed(short, w.seg, at)
	}
	return h, at, true, nil
}

// bytes are a header's at a position, or fewer at the end of the segment.
func (w *walker) bytes(at, size int64) ([]byte, error) {
	if w.chunk == nil {
		w.chunk = w.log.opts.Descriptors.getChunk(minReadAhead)
	}
	if at < w.start || at+segment.BatchHeaderSize > w.start+int64(w.filled) {
		n := min(int64(len(w.chunk.buf)), size-at)
		if err := readFull(w.log, w.seg, w.file, w.chunk.buf[:n], at); err != nil {
			return nil, err
		}
		w.start, w.filled = at, int(n)
	}
	return w.chunk.buf[at-w.start : w.filled], nil
}

func (w *walker) release() {
	if w.chunk != nil {
		w.log.opts.Descriptors.putChunk(w.chunk)
		w.chunk = nil
	}
}
