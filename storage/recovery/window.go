package recovery

import (
	"errors"
	"io"

	"github.com/felixlog/felix/storage/fs"
)

// windowBytes is how much of a file is read at once. It is also all the memory
// a scan takes, but for a batch that is larger.
const windowBytes = 1 << 20

// A window reads a file forward, a piece at a time.
type window struct {
	file fs.File
	size int64 // of the file, in bytes
	buf  []byte
	pos  int64 // where in the file buf begins
}

// newWindow reads file, of size bytes.
func newWindow(file fs.File, size int64) *window {
	return &window{file: file, size: size}
}

// at returns what is read from pos on, at least need bytes of it. The caller
// has checked that the file has them: that, and not a length in the file, is
// what may make the buffer grow.
func (w *window) at(pos int64, need int) ([]byte, error) {
	if end := w.pos + int64(len(w.buf)); pos >= w.pos && pos+int64(need) <= end {
		return w.buf[pos-w.pos:], nil
	}
	n := max(need, int(min(w.size-pos, windowBytes)))
	if cap(w.buf) < n {
		w.buf = make([]byte, n)
	}
	w.buf = w.buf[:n]
	w.pos = pos
	got, err := w.file.ReadAt(w.buf, pos)
	w.buf = w.buf[:got]
	if err != nil && !errors.Is(err, io.EOF) {
		w.buf = w.buf[:0]
		return nil, err
	}
	if got < need {
		w.buf = w.buf[:0]
		return nil, io.ErrUnexpectedEOF // it got shorter while being read
	}
	return w.buf, nil
}

// zeroFrom returns where the run of zero bytes begins that ends the file,
// looking no further back than from. It is the file's size where the last byte
// is not zero.
func (w *window) zeroFrom(from int64) (int64, error) {
	start := w.size
	for start > from {
		piece := max(from, start-windowBytes)
		b, err := w.at(piece, int(start-piece))
		if err != nil {
			return 0, err
		}
		b = b[:start-piece]
		for len(b) > 0 && b[len(b)-1] == 0 {
			b = b[:len(b)-1]
		}
		if len(b) > 0 {
			return piece + int64(len(b)), nil
		}
		start = piece
	}
	return from, nil
}

// readFull reads n bytes at pos, which the caller knows the file to have.
func readFull(file fs.File, pos int64, n int) ([]byte, error) {
	b := make([]byte, n)
	got, err := file.ReadAt(b, pos)
	if got == n {
		return b, nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return nil, err
}
