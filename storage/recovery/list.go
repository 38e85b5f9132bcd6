package recovery

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/segment"
)

// A file is a segment as it was found.
type file struct {
	id   uint64
	path string
	size int64
	// blank is true where the header was never written: the file is shorter
	// than one, or has zeros in its place.
	blank  bool
	header segment.Header
	err    *segment.CorruptionError // of a header that is neither whole nor blank
}

// start is the place of the first batch.
func (f *file) start() place {
	return place{pos: segment.HeaderSize, offset: f.header.BaseOffset, crc: f.header.PrevCRC}
}

// follows reports whether the segment begins where at ends, by offset and by
// chain.
func (f *file) follows(at place) bool {
	return f.header.BaseOffset == at.offset && f.header.PrevCRC == at.crc
}

// gap is what is wrong with a segment that does not follow.
func (f *file) gap(at place) *segment.CorruptionError {
	if f.header.BaseOffset != at.offset {
		return &segment.CorruptionError{
			Kind: segment.OffsetOutOfOrder, Path: f.path, Segment: f.id, Expected: at.offset, Found: f.header.BaseOffset,
			Detail: "the segment does not begin where the one before it ends",
		}
	}
	return &segment.CorruptionError{
		Kind: segment.Chain, Path: f.path, Segment: f.id, Expected: uint64(at.crc), Found: uint64(f.header.PrevCRC),
		Detail: "the segment was not begun after the last batch of the one before it",
	}
}

// list finds the segments, in the order of their ids, and the indices that
// have none. Other names mean nothing here.
func (p *planner) list() error {
	names, err := p.fs.List(p.dir)
	if err != nil {
		return fmt.Errorf("list segments: %w", err)
	}
	ids := make(map[uint64]bool)
	var indices []uint64
	for _, name := range names {
		if id, ok := segment.ParseFileName(name); ok {
			ids[id] = true
			found, err := p.readFile(id)
			if err != nil {
				return err
			}
			p.files = append(p.files, found)
		} else if id, ok := segment.ParseIndexName(name); ok {
			indices = append(indices, id)
		}
	}
	slices.SortFunc(p.files, func(a, b *file) int { return cmp.Compare(a.id, b.id) })
	slices.Sort(indices)
	for _, id := range indices {
		if !ids[id] {
			p.orphans = append(p.orphans, id)
		}
	}
	return nil
}

// readFile reads the header of a segment.
func (p *planner) readFile(id uint64) (*file, error) {
	f := &file{id: id, path: filepath.Join(p.dir, segment.FileName(id))}
	info, err := p.fs.Stat(f.path)
	if err != nil {
		return nil, fmt.Errorf("read segment: %w", err)
	}
	if info.Dir {
		f.err = &segment.CorruptionError{Kind: segment.SegmentMagic, Path: f.path, Segment: id, Detail: "a directory is in the place of a segment"}
		return f, nil
	}
	err = withFile(p.fs, f.path, func(file fs.File, size int64) error {
		if f.size = size; size < segment.HeaderSize {
			f.blank = true
			return nil
		}
		b, err := readFull(file, 0, segment.HeaderSize)
		if err != nil {
			return err
		}
		header, err := segment.ParseHeader(b)
		switch {
		case err == nil:
			f.header = header
		case allZero(b):
			f.blank = true
			f.err = corruption(err).At(f.path, id, 0)
		default:
			f.err = corruption(err).At(f.path, id, 0)
		}
		return nil
	})
	return f, err
}

// withWindow opens a segment for reading while use runs.
func (p *planner) withWindow(f *file, use func(*window) error) error {
	return withFile(p.fs, f.path, func(file fs.File, size int64) error {
		f.size = size
		return use(newWindow(file, size))
	})
}

// withFile opens a file for reading while use runs.
func withFile(f fs.FS, path string, use func(fs.File, int64) error) (err error) {
	file, err := f.Open(path)
	if err != nil {
		return fmt.Errorf("read segment: %w", err)
	}
	defer func() {
		if cerr := file.Close(); err == nil {
			err = cerr
		}
	}()
	size, err := file.Size()
	if err == nil {
		err = use(file, size)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// allZero reports whether every byte is zero.
func allZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}
