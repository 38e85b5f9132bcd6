package shardlog

import (
	"errors"
	"fmt"
	"io"
	"sort"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/segment"
)

// Read returns batches from the one that holds offset from on, every one
// verified: as many as fit maxBytes and maxRecords, but at least one if there is
// any. Batches that are delivered to nobody (generation starts) are left out;
// Page.Next steps over them. At or past Tail the page is empty. Below Base the
// error is *TrimmedError; damaged bytes are a *segment.CorruptionError.
//
// maxRecords below 1 means Options.MaxReadRecords, which also bounds it.
func (l *Log) Read(from uint64, maxBytes, maxRecords int) (*Page, error) {
	return l.read(from, maxBytes, maxRecords, false)
}

// ReadAll is Read with generation starts, for replication.
func (l *Log) ReadAll(from uint64, maxBytes, maxRecords int) (*Page, error) {
	return l.read(from, maxBytes, maxRecords, true)
}

func (l *Log) read(from uint64, maxBytes, maxRecords int, all bool) (*Page, error) {
	start := l.opts.Clock.Now()
	if maxRecords < 1 || maxRecords > l.opts.MaxReadRecords {
		maxRecords = l.opts.MaxReadRecords
	}
	for {
		r := reader{log: l, from: from, maxBytes: maxBytes, maxRecords: maxRecords, all: all}
		cuts := l.cuts.Load()
		page, err := r.page()
		changed := cuts != l.cuts.Load()
		if err == nil && !changed {
			l.metrics.ReadRecords.Add(uint64(page.records))
			l.metrics.ReadBytes.Add(uint64(page.bytes))
			l.metrics.ReadDuration.Observe(l.opts.Clock.Now().Sub(start))
			return page, nil
		}
		if page != nil {
			page.Release()
		}
		// A cut or a trim under the reader explains any failure: read again.
		if !changed && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		if !changed && from >= l.Base() && !l.dropRemoved() {
			return nil, err // the file is missing, and nobody removed it
		}
	}
}

// reader fills one page.
type reader struct {
	log        *Log
	from       uint64
	maxBytes   int
	maxRecords int
	all        bool

	tail     uint64
	segments []*seg
	pageInto *Page
	last     uint32 // CRC of the batch before
	chained  bool   // last is known
}

func (r *reader) page() (*Page, error) {
	l := r.log
	if err := l.readable(); err != nil {
		return nil, err
	}
	// The tail first: a segment holds at least what the tail says.
	r.tail = l.Tail()
	r.segments = l.segmentList()
	base := r.segments[0].base
	if r.from < base {
		return nil, &TrimmedError{Requested: r.from, Oldest: base}
	}
	page := l.opts.Descriptors.getPage(r.from)
	r.pageInto = page
	i := sort.Search(len(r.segments), func(i int) bool { return r.segments[i].base > r.from }) - 1
	for ; i < len(r.segments) && page.Next < r.tail; i++ {
		full, err := r.segment(r.segments[i])
		if err != nil && len(page.Batches) == 0 {
			return page, err
		}
		if err != nil || full {
			break // what precedes the damage is good; the next read meets it
		}
	}
	return page, nil
}

// segment reads from one segment what the page still takes; full says that it
// takes no more.
func (r *reader) segment(s *seg) (full bool, err error) {
	d := r.log.opts.Descriptors
	file, err := d.pin(r.log, s)
	if err != nil {
		return false, r.log.fileError("open", err)
	}
	defer d.unpin(file)
	position, err := r.log.seek(s, file, r.pageInto.Next)
	if err != nil {
		return false, err
	}
	full, err = r.batches(s, file, position)
	if err == nil || position == segment.HeaderSize {
		return full, err
	}
	if damage, ok := errors.AsType[*segment.CorruptionError](err); ok && damage.Position == position {
		// The first thing an index pointed at does not decode: before the
		// segment is called damaged, the index is.
		if position, err = r.log.seekRebuilt(s, file, r.pageInto.Next); err != nil {
			return false, err
		}
		return r.batches(s, file, position)
	}
	return full, err
}

// batches reads the batches of s from position on. A chunk holds as many as it
// is long; one that a chunk cuts off begins the next.
func (r *reader) batches(s *seg, file *opened, position int64) (full bool, err error) {
	size := s.readable.Load()
	for position < size && r.pageInto.Next < r.tail {
		c, err := r.fill(s, file, position, r.window(size-position))
		if err != nil {
			return false, err
		}
		n, full, err := r.parse(s, c, position)
		if err == nil && n == 0 && !full {
			c, err = r.larger(s, file, c, position, size)
			if err == nil {
				n, full, err = r.parse(s, c, position)
			}
		}
		if err != nil || full {
			return full, err
		}
		position += int64(n)
	}
	return false, nil
}

// window is how much to read at once, of what is left in the segment.
func (r *reader) window(left int64) int {
	want := max(r.maxBytes-r.pageInto.bytes, 0)
	want = min(max(want+minReadAhead/2, minReadAhead), maxReadAhead)
	return int(min(int64(want), left))
}

// fill reads n bytes into a chunk of the page.
func (r *reader) fill(s *seg, file *opened, position int64, n int) (*chunk, error) {
	c := r.log.opts.Descriptors.getChunk(n)
	r.pageInto.chunks = append(r.pageInto.chunks, c)
	return c, readFull(r.log, s, file, c.buf, position)
}

// larger reads the batch at position, which is longer than the chunk, alone.
func (r *reader) larger(s *seg, file *opened, c *chunk, position, size int64) (*chunk, error) {
	h, err := segment.ParseBatchHeader(c.buf)
	if err != nil {
		return nil, placed(err, s, position)
	}
	n := int64(h.Size())
	if n > size-position {
		return nil, placed(&segment.CorruptionError{Kind: segment.Truncated, Needed: n, Available: size - position}, s, position)
	}
	return r.fill(s, file, position, int(n))
}

// parse takes the batches of a chunk that the page still takes. n is how many
// bytes of whole batches were passed.
func (r *reader) parse(s *seg, c *chunk, position int64) (n int, full bool, err error) {
	page := r.pageInto
	for n < len(c.buf) && page.Next < r.tail {
		rest := c.buf[n:]
		if len(rest) < segment.BatchHeaderSize {
			break
		}
		h, err := segment.ParseBatchHeader(rest)
		if err != nil {
			return n, false, placed(err, s, position+int64(n))
		}
		if err := r.follows(&h); err != nil {
			return n, false, placed(err, s, position+int64(n))
		}
		size := h.Size()
		if h.End() <= page.Next { // before what was asked for
			n += size
			r.last, r.chained = h.CRC, true
			continue
		}
		wanted := r.all || h.Kind != segment.GenerationStart
		if wanted && len(page.Batches) > 0 && (page.bytes+size > r.maxBytes || page.records+int(h.Count) > r.maxRecords) {
			return n, true, nil
		}
		if size > len(rest) {
			break
		}
		if wanted {
			if err := page.add(rest[:size], Location{Segment: s.id, Position: position + int64(n), Length: size}); err != nil {
				return n, false, placed(err, s, position+int64(n))
			}
		}
		page.Next = h.End()
		r.last, r.chained = h.CRC, true
		n += size
	}
	return n, false, nil
}

// follows checks that a batch is the one that belongs there.
func (r *reader) follows(h *segment.BatchHeader) error {
	switch {
	case h.BaseOffset > r.pageInto.Next:
		return &segment.CorruptionError{Kind: segment.OffsetOutOfOrder, Expected: r.pageInto.Next, Found: h.BaseOffset}
	case r.chained && h.PrevCRC != r.last:
		return &segment.CorruptionError{Kind: segment.Chain, Expected: uint64(r.last), Found: uint64(h.PrevCRC)}
	}
	return nil
}

// add verifies a batch and puts it on the page.
func (p *Page) add(b []byte, where Location) error {
	if len(p.Batches) < cap(p.Batches) {
		p.Batches = p.Batches[:len(p.Batches)+1]
	} else {
		p.Batches = append(p.Batches, segment.Batch{})
	}
	batch := &p.Batches[len(p.Batches)-1]
	if _, err := segment.ParseBatch(b, batch); err != nil {
		p.Batches = p.Batches[:len(p.Batches)-1]
		return err
	}
	p.Where = append(p.Where, where)
	p.records += int(batch.Count)
	p.bytes += len(b)
	return nil
}

// ReadAt reads the one batch at a place that a completion or a page named, with
// a single read.
func (l *Log) ReadAt(at Location) (*Page, error) {
	for {
		cuts := l.cuts.Load()
		page, err := l.readAt(at)
		if err == nil || cuts == l.cuts.Load() {
			return page, err
		}
		// What was there is being cut off: that is not damage.
	}
}

func (l *Log) readAt(at Location) (*Page, error) {
	if err := l.readable(); err != nil {
		return nil, err
	}
	s, err := l.segmentByID(at)
	if err != nil {
		return nil, err
	}
	d := l.opts.Descriptors
	file, err := d.pin(l, s)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &TrimmedError{Requested: s.base, Oldest: l.Base()}
		}
		return nil, l.fileError("open", err)
	}
	defer d.unpin(file)
	page := d.getPage(0)
	c := d.getChunk(at.Length)
	page.chunks = append(page.chunks, c)
	if err := readFull(l, s, file, c.buf, at.Position); err != nil {
		page.Release()
		return nil, err
	}
	if err := page.add(c.buf, at); err != nil {
		page.Release()
		return nil, placed(err, s, at.Position)
	}
	page.Next = page.Batches[0].End()
	l.metrics.ReadRecords.Add(uint64(page.records))
	l.metrics.ReadBytes.Add(uint64(page.bytes))
	return page, nil
}

// segmentByID finds the segment of a place, and checks that the place is in it.
func (l *Log) segmentByID(at Location) (*seg, error) {
	segs := l.segmentList()
	if at.Segment < segs[0].id {
		return nil, &TrimmedError{Oldest: l.Base()}
	}
	i := sort.Search(len(segs), func(i int) bool { return segs[i].id >= at.Segment })
	if i == len(segs) || segs[i].id != at.Segment {
		return nil, fmt.Errorf("log %s: no segment %d", l.opts.Name, at.Segment)
	}
	if at.Length < segment.BatchHeaderSize || at.Length > segment.MaxBatchBytes ||
		at.Position < segment.HeaderSize || at.Position > segs[i].readable.Load()-int64(at.Length) {
		return nil, fmt.Errorf("log %s: no batch of %d bytes at %d in segment %d", l.opts.Name, at.Length, at.Position, at.Segment)
	}
	return segs[i], nil
}

// readFull fills b from a position where the segment is known to have as much.
func readFull(l *Log, s *seg, file *opened, b []byte, position int64) error {
	n, err := file.file.ReadAt(b, position)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return placed(&segment.CorruptionError{Kind: segment.Truncated, Needed: int64(len(b)), Available: int64(n)}, s, position)
	}
	return l.fileError("read", err)
}

// placed adds the file to an error about bytes.
func placed(err error, s *seg, position int64) error {
	if damage, ok := errors.AsType[*segment.CorruptionError](err); ok {
		return damage.At(s.path, s.id, position)
	}
	return err
}

// readable is why the log cannot be read: it was closed.
func (l *Log) readable() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return &ClosedError{Log: l.opts.Name}
	}
	return nil
}
