package wire

import (
	"io"
)

const (
	minReadBuffer = 4 << 10
	maxReadBuffer = 256 << 10
	maxEmptyReads = 100
)

// A FrameReader cuts frames out of a byte stream (wire 3). One goroutine uses
// it. It holds what it has read in one buffer that starts at 4 KiB, grows only
// when arriving bytes have filled it (to 256 KiB, and beyond only for a larger
// frame) and shrinks again after such a frame. It never reads while a whole
// frame is at hand.
type FrameReader struct {
	r   io.Reader
	max int

	buf        []byte // its whole length is room; start..end holds unread bytes
	start, end int
	filled     bool  // the last read left no room: the next may be larger
	pending    error // came together with bytes; reported by the next Fill
}

// NewFrameReader reads frames from r whose payload is at most maxPayload bytes.
func NewFrameReader(r io.Reader, maxPayload int) *FrameReader {
	return &FrameReader{r: r, max: maxPayload}
}

// SetMax changes the cap on payloads, in bytes, for the frames to come.
func (r *FrameReader) SetMax(maxPayload int) { r.max = maxPayload }

// Next returns the next frame. The payload is valid until the next call of
// Next or Fill. Unknown flags are no error here: see [Header.Unknown].
//
// Errors: io.EOF at a clean end, which is before a header or inside one;
// io.ErrUnexpectedEOF inside a payload; [ErrMagic], [ErrVersion] and
// [*TooLargeError], after which every call fails the same way; and those of the
// reader. After an error of the reader, such as a deadline, nothing that has
// arrived is lost and Next may be called again.
func (r *FrameReader) Next() (Header, []byte, error) {
	for {
		h, whole, err := r.peek()
		if err != nil {
			return Header{}, nil, err
		}
		if whole {
			from := r.start + HeaderSize
			to := from + int(h.Length)
			r.start = to
			return h, r.buf[from:to:to], nil
		}
		if err := r.Fill(); err != nil {
			return Header{}, nil, err
		}
	}
}

// Buffered reports whether Next would return without a read.
func (r *FrameReader) Buffered() bool {
	_, whole, err := r.peek()
	return whole || err != nil
}

// Partial reports whether a part of a frame or of its header has been received
// and the rest is owed. Such a wait deserves a deadline; a wait between frames
// may be long.
func (r *FrameReader) Partial() bool { return r.end > r.start && !r.Buffered() }

// Fill reads once, blocking as the reader does, and adds what arrives to the
// buffer. It is for callers that set deadlines between reads:
//
//	for !fr.Buffered() {
//		setDeadline(fr.Partial())
//		if err := fr.Fill(); err != nil { ... }
//	}
//	h, payload, err := fr.Next()
//
// The errors are those of [FrameReader.Next]. With a whole frame at hand it does nothing.
func (r *FrameReader) Fill() error {
	h, whole, err := r.peek()
	if err != nil || whole {
		return err
	}
	if r.pending != nil {
		err, r.pending = r.pending, nil
		return r.ended(err)
	}
	r.makeRoom(HeaderSize + int(h.Length))
	room := r.buf[r.end:min(len(r.buf), r.end+maxReadBuffer)]
	for range maxEmptyReads {
		n, err := r.r.Read(room)
		r.end += n
		r.filled = n == len(room)
		switch {
		case n > 0:
			r.pending = err
			return nil
		case err != nil:
			return r.ended(err)
		}
	}
	return io.ErrNoProgress
}

// peek looks at the frame at the start of the buffer. The header is zero until
// it is complete.
func (r *FrameReader) peek() (h Header, whole bool, err error) {
	if r.end-r.start < HeaderSize {
		return Header{}, false, nil
	}
	h, err = ParseHeader(r.buf[r.start:r.end])
	if err == nil && int64(h.Length) > int64(r.max) {
		err = &TooLargeError{Declared: h.Length, Max: r.max}
	}
	if err != nil {
		return Header{}, false, err // and again at the next call: these bytes stay
	}
	return h, r.end-r.start-HeaderSize >= int(h.Length), nil
}

// ended turns the end of input into the right kind of end (wire 3.2).
func (r *FrameReader) ended(err error) error {
	if err == io.EOF && r.end-r.start >= HeaderSize {
		return io.ErrUnexpectedEOF
	}
	return err
}

// makeRoom makes sure that a read has room, for a frame of need bytes of which
// less has arrived.
func (r *FrameReader) makeRoom(need int) {
	held := r.end - r.start
	if held == 0 {
		r.start, r.end = 0, 0
	}
	switch {
	case len(r.buf) == 0:
		r.resize(minReadBuffer)
	case len(r.buf) > maxReadBuffer && need <= maxReadBuffer:
		r.resize(maxReadBuffer) // a huge frame has passed
	case r.filled && len(r.buf) < maxReadBuffer:
		r.resize(min(4*len(r.buf), maxReadBuffer))
	case held == len(r.buf):
		r.resize(min(2*len(r.buf), need))
	case r.start > 0 && len(r.buf)-r.end < len(r.buf)/2:
		r.compact(r.buf)
	}
}

func (r *FrameReader) resize(size int) {
	r.compact(make([]byte, size))
}

// compact moves what is held to the start of buf, which becomes the buffer.
func (r *FrameReader) compact(buf []byte) {
	r.end = copy(buf, r.buf[r.start:r.end])
	r.start = 0
	r.buf = buf
}
