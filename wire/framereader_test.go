package wire

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"testing"
	"testing/iotest"
)

func frame(f Flags, payload []byte) []byte {
	return append(AppendHeader(nil, f, len(payload)), payload...)
}

// A step is one answer of a scripted reader.
type step struct {
	data []byte
	err  error
}

// script is a reader that gives its steps one by one and counts reads.
type script struct {
	steps []step
	reads int
	room  []int // what each read offered
}

func (s *script) Read(p []byte) (int, error) {
	s.reads++
	s.room = append(s.room, len(p))
	if len(s.steps) == 0 {
		return 0, io.EOF
	}
	next := &s.steps[0]
	n := copy(p, next.data)
	if n < len(next.data) {
		next.data = next.data[n:]
		return n, nil
	}
	err := next.err
	s.steps = s.steps[1:]
	return n, err
}

func TestFrameReaderChunks(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	var want [][]byte
	var all []byte
	for _, n := range []int{0, 1, 11, 12, 13, 100, 4083, 4084, 4085, 4096, 70_000, 0, 300_000, 5, 1_000_000, 0, 0, 3, 2_000_000, 7} {
		payload := make([]byte, n)
		for i := range payload {
			payload[i] = byte(rnd.Uint32())
		}
		want = append(want, payload)
		all = append(all, frame(Flags(len(want)), payload)...)
	}
	readers := map[string]func() io.Reader{
		"whole":    func() io.Reader { return bytes.NewReader(all) },
		"one byte": func() io.Reader { return iotest.OneByteReader(bytes.NewReader(all[:600_000])) },
		"half":     func() io.Reader { return iotest.HalfReader(bytes.NewReader(all)) },
		"with EOF": func() io.Reader { return iotest.DataErrReader(bytes.NewReader(all)) },
		"random": func() io.Reader {
			s := &script{}
			for rest := all; len(rest) > 0; {
				n := min(1+rnd.IntN(20_000), len(rest))
				s.steps = append(s.steps, step{data: rest[:n]})
				if rnd.IntN(4) == 0 {
					s.steps = append(s.steps, step{}) // an empty read
				}
				rest = rest[n:]
			}
			return s
		},
	}
	for name, open := range readers {
		t.Run(name, func(t *testing.T) {
			r := NewFrameReader(open(), MaxFramePayload)
			for i := 0; ; i++ {
				h, payload, err := r.Next()
				if name == "one byte" && err == io.ErrUnexpectedEOF && i > 10 {
					return
				}
				if i == len(want) {
					if err != io.EOF {
						t.Errorf("at the end: %v", err)
					}
					return
				}
				if err != nil || h.Flags != Flags(i+1) || int(h.Length) != len(want[i]) || !bytes.Equal(payload, want[i]) {
					t.Fatalf("frame %d: %+v, %d bytes, %v", i, h, len(payload), err)
				}
				if cap(payload) != len(payload) {
					t.Errorf("frame %d: the payload has room for the next frame", i)
				}
			}
		})
	}
}

func TestFrameReaderEnds(t *testing.T) {
	whole := frame(0, []byte("payload"))
	for n := range whole {
		r := NewFrameReader(bytes.NewReader(append(bytes.Clone(whole), whole[:n]...)), 100)
		if _, _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
		want := io.EOF
		if n >= HeaderSize {
			want = io.ErrUnexpectedEOF
		}
		for range 2 {
			if _, _, err := r.Next(); err != want {
				t.Errorf("%d bytes of a frame: %v, want %v", n, err, want)
			}
		}
		if r.Partial() != (n > 0) || r.Buffered() {
			t.Errorf("%d bytes of a frame: partial %v, buffered %v", n, r.Partial(), r.Buffered())
		}
	}
}

func TestFrameReaderRefuses(t *testing.T) {
	good := frame(0, []byte("ok"))
	for name, row := range map[string]struct {
		bad  []byte
		want error
	}{
		"magic":   {[]byte("GET / HTTP/1.1\r\n"), ErrMagic},
		"version": {append([]byte("FLX1\x00\x02"), make([]byte, 6)...), ErrVersion},
	} {
		r := NewFrameReader(bytes.NewReader(append(bytes.Clone(good), row.bad...)), 100)
		if _, payload, err := r.Next(); err != nil || string(payload) != "ok" {
			t.Errorf("%s: the frame before: %q, %v", name, payload, err)
		}
		for range 2 {
			if _, _, err := r.Next(); !errors.Is(err, row.want) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if !r.Buffered() || r.Partial() {
			t.Errorf("%s: a refusal needs no read", name)
		}
	}
	// A frame that is too large is refused on its header alone, for good.
	s := &script{steps: []step{{data: AppendHeader(nil, 0, 101)}, {data: make([]byte, 101)}}}
	r := NewFrameReader(s, 100)
	for range 2 {
		_, _, err := r.Next()
		var tooLarge *TooLargeError
		if !errors.As(err, &tooLarge) || *tooLarge != (TooLargeError{Declared: 101, Max: 100}) || err.Error() == "" {
			t.Errorf("too large: %v", err)
		}
	}
	if s.reads != 1 {
		t.Errorf("%d reads for a refused header", s.reads)
	}
	// The cap may be raised between frames.
	r = NewFrameReader(bytes.NewReader(append(frame(0, make([]byte, 100)), frame(0, make([]byte, 101))...)), 100)
	if _, _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	r.SetMax(101)
	if _, payload, err := r.Next(); err != nil || len(payload) != 101 {
		t.Errorf("after SetMax: %d bytes, %v", len(payload), err)
	}
	// Unknown flags are the caller's to refuse, and the stream goes on.
	r = NewFrameReader(bytes.NewReader(append(frame(0x8001, []byte("skip me")), good...)), 100)
	if h, payload, err := r.Next(); err != nil || !h.Unknown() || string(payload) != "skip me" {
		t.Errorf("unknown flag: %+v, %q, %v", h, payload, err)
	}
	if h, payload, err := r.Next(); err != nil || h.Unknown() || string(payload) != "ok" {
		t.Errorf("after an unknown flag: %+v, %q, %v", h, payload, err)
	}
}

func TestFrameReaderReads(t *testing.T) {
	one, two, three := frame(1, []byte("one")), frame(2, []byte("two")), frame(3, []byte("three"))
	s := &script{steps: []step{{data: bytes.Join([][]byte{one, two, three[:5]}, nil)}, {data: three[5:14]}, {data: three[14:]}}}
	r := NewFrameReader(s, 100)
	if r.Buffered() || r.Partial() || s.reads != 0 {
		t.Error("a new reader holds something")
	}
	next := func(want string, reads int, buffered, partial bool) {
		t.Helper()
		_, payload, err := r.Next()
		if err != nil || string(payload) != want {
			t.Fatalf("%q, %v; want %q", payload, err, want)
		}
		if s.reads != reads || r.Buffered() != buffered || r.Partial() != partial {
			t.Errorf("after %s: %d reads, buffered %v, partial %v", want, s.reads, r.Buffered(), r.Partial())
		}
		if string(payload) != want {
			t.Errorf("asking changed the payload to %q", payload)
		}
	}
	next("one", 1, true, false)
	if err := r.Fill(); err != nil || s.reads != 1 {
		t.Errorf("Fill read while a frame was at hand: %d reads, %v", s.reads, err)
	}
	next("two", 1, false, true)
	if err := r.Fill(); err != nil || s.reads != 2 || !r.Partial() || r.Buffered() {
		t.Errorf("Fill: %d reads, %v", s.reads, err)
	}
	next("three", 3, false, false)
}

// TestFrameReaderDeadlines: an error of the reader loses nothing.
func TestFrameReaderDeadlines(t *testing.T) {
	one, two := frame(1, []byte("one")), frame(2, []byte("two"))
	all := append(bytes.Clone(one), two...)
	s := &script{}
	for i, c := range all {
		s.steps = append(s.steps, step{err: os.ErrDeadlineExceeded})
		last := step{data: []byte{c}}
		if i%2 == 0 {
			last.err = os.ErrDeadlineExceeded // together with a byte
		}
		s.steps = append(s.steps, last)
	}
	r := NewFrameReader(s, 100)
	var got []string
	failures := 0
	for {
		_, payload, err := r.Next()
		if err == io.EOF {
			break
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			failures++
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, string(payload))
	}
	if len(got) != 2 || got[0] != "one" || got[1] != "two" || failures != len(all)+len(all)/2 {
		t.Errorf("frames %q, %d failures", got, failures)
	}
	idle := NewFrameReader(&script{steps: make([]step, 1000)}, 100)
	if _, _, err := idle.Next(); err != io.ErrNoProgress {
		t.Errorf("a reader that gives nothing: %v", err)
	}
}

// TestFrameReaderBuffer: the buffer starts small, grows with what arrives, and
// shrinks after a huge frame.
func TestFrameReaderBuffer(t *testing.T) {
	const huge = 3 << 20
	header := AppendHeader(nil, 0, huge)
	s := &script{steps: []step{{data: header}}}
	r := NewFrameReader(s, MaxFramePayload)
	if err := r.Fill(); err != nil {
		t.Fatal(err)
	}
	if len(r.buf) != minReadBuffer {
		t.Errorf("a declared length made a buffer of %d bytes", len(r.buf))
	}
	arrived := len(header)
	for arrived < len(header)+huge {
		chunk := min(50_000, len(header)+huge-arrived)
		s.steps = []step{{data: make([]byte, chunk)}}
		for len(s.steps) > 0 {
			if err := r.Fill(); err != nil {
				t.Fatal(err)
			}
		}
		arrived += chunk
		if len(r.buf) > max(2*arrived, maxReadBuffer) {
			t.Fatalf("a buffer of %d bytes for %d that arrived", len(r.buf), arrived)
		}
	}
	if !r.Buffered() || len(r.buf) > HeaderSize+huge {
		t.Errorf("buffered %v in %d bytes", r.Buffered(), len(r.buf))
	}
	if _, payload, err := r.Next(); err != nil || len(payload) != huge {
		t.Fatalf("%d bytes, %v", len(payload), err)
	}
	s.steps = []step{{data: header[:5]}}
	if err := r.Fill(); err != nil || len(r.buf) > maxReadBuffer {
		t.Errorf("a buffer of %d bytes after a huge frame, %v", len(r.buf), err)
	}
	for _, n := range s.room {
		if n > maxReadBuffer || n == 0 {
			t.Errorf("a read of %d bytes", n)
		}
	}
	// Bulk makes reads large.
	bulk := &script{steps: []step{{data: bytes.Repeat(frame(0, make([]byte, 1000)), 2000)}}}
	r = NewFrameReader(bulk, MaxFramePayload)
	for range 2000 {
		if _, _, err := r.Next(); err != nil {
			t.Fatal(err)
		}
	}
	if bulk.reads > 14 || bulk.room[0] != minReadBuffer {
		t.Errorf("%d reads for 2 MB, the first of %d bytes", bulk.reads, bulk.room[0])
	}
	steady := NewFrameReader(&loop{data: frame(0, make([]byte, 1000))}, MaxFramePayload)
	if n := testing.AllocsPerRun(1000, func() {
		if _, _, err := steady.Next(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations in steady state", n)
	}
}

// A loop is a reader that gives the same bytes again and again.
type loop struct {
	data []byte
	at   int
}

func (l *loop) Read(p []byte) (int, error) {
	n := copy(p, l.data[l.at:])
	l.at = (l.at + n) % len(l.data)
	return n, nil
}
