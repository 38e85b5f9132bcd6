package journal

import (
	"cmp"
	"errors"
	"io"
	"path/filepath"
	"slices"

	"github.com/felixlog/felix/storage/fs"
)

// A found is a round that verifies.
type found struct {
	roundHeader
	file     int
	position int64
}

// A scan is what one file holds.
type scan struct {
	rounds []found // in the order of the file
	// first is the header that stands at the beginning, whether or not the
	// round verifies, and blank says that there is none: the file was about to
	// be written over, or is empty.
	first roundHeader
	blank bool
}

// scanFile reads every round of a file. A missing file has none.
func scanFile(f fs.FS, path string, n int) (s scan, err error) {
	s.blank = true
	file, err := f.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size, err := file.Size()
	if err != nil {
		return s, err
	}
	var head [roundHeaderSize]byte
	var whole []byte
	for at := int64(0); at+roundHeaderSize <= size; {
		if err := readAt(file, head[:], at); err != nil {
			return s, err
		}
		if at == 0 {
			s.blank = head == [roundHeaderSize]byte{}
			s.first, _ = parseHeader(head[:])
		}
		h, ok := parseHeader(head[:])
		if !ok || int64(h.length) > size-at-roundHeaderSize {
			at += alignment
			continue
		}
		if whole, err = readRound(file, whole, at, h); err != nil {
			return s, err
		}
		if _, _, ok := parseRound(whole); !ok {
			at += alignment
			continue
		}
		s.rounds = append(s.rounds, found{roundHeader: h, file: n, position: at})
		at += aligned(int64(len(whole)))
	}
	return s, nil
}

// readRound reads the round at a position, whose header is h, into buf or a
// larger buffer. The caller has checked that the file is long enough.
func readRound(f fs.File, buf []byte, at int64, h roundHeader) ([]byte, error) {
	size := roundHeaderSize + int(h.length)
	if cap(buf) < size {
		buf = make([]byte, size)
	}
	return buf[:size], readAt(f, buf[:size], at)
}

func readAt(f fs.File, b []byte, at int64) error {
	n, err := f.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// scanAll reads both files and judges whether something is missing. The rounds
// are in the order of their numbers.
func scanAll(f fs.FS, dir string) ([]found, error) {
	var scans [2]scan
	var all []found
	for n := range scans {
		var err error
		if scans[n], err = scanFile(f, filepath.Join(dir, fileName(n)), n); err != nil {
			return nil, err
		}
		all = append(all, scans[n].rounds...)
	}
	slices.SortFunc(all, func(a, b found) int { return cmp.Compare(a.number, b.number) })
	return all, judge(dir, scans, all)
}

// judge finds damage: see the package comment.
func judge(dir string, scans [2]scan, all []found) error {
	if len(all) == 0 {
		return nil // empty, or torn before the first round was on the device
	}
	newest := all[len(all)-1].roundHeader
	for n, s := range scans {
		if s.blank || len(s.rounds) > 0 && s.rounds[0].position == 0 {
			continue
		}
		// The first round does not verify. It may be the next one of all, torn.
		if s.first.number == newest.number+1 && s.first.epoch == newest.epoch+1 {
			continue
		}
		return &DamagedError{Path: filepath.Join(dir, fileName(n))}
	}
	for i := 1; i < len(all); i++ {
		a, b := all[i-1], all[i]
		if b.epoch+1 < newest.epoch || a.epoch+1 < newest.epoch {
			continue // left from an earlier turn, partly written over
		}
		if b.number != a.number+1 {
			return &DamagedError{Path: filepath.Join(dir, fileName(b.file)), Position: b.position}
		}
	}
	return nil
}
