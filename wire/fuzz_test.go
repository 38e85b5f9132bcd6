package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"
	"unicode"
	"unicode/utf8"
)

// seedFrames gives every vector's flags and payload to add.
func seedFrames(f *testing.F, add func(flags Flags, payload []byte)) {
	for _, v := range allVectors(f) {
		if len(v.frame) >= HeaderSize {
			add(Flags(binary.BigEndian.Uint16(v.frame[6:])), v.frame[HeaderSize:])
		}
	}
}

func FuzzHeader(f *testing.F) {
	for _, v := range allVectors(f) {
		f.Add(v.frame)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ParseHeader(b)
		if err != nil {
			return
		}
		if again := AppendHeader(nil, h.Flags, int(h.Length)); !bytes.Equal(again, b[:HeaderSize]) {
			t.Errorf("%x written as %x", b[:HeaderSize], again)
		}
		if h.Unknown() && h.Flags.Kind() != FrameIllegal {
			t.Errorf("%#04x is unknown and legal", uint16(h.Flags))
		}
	})
}

func FuzzBlock(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0})
	f.Add(AppendBlock(nil, nil, []byte("a"), []byte("bb")))
	f.Add(append(u32(1<<31-1), make([]byte, 20)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		block, rest, err := ParseBlock(b)
		if err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Errorf("untyped error %v", err)
			}
			return
		}
		if len(block)+len(rest) != len(b) {
			t.Fatalf("%d and %d bytes of %d", len(block), len(rest), len(b))
		}
		var payloads [][]byte
		size := 0
		for _, p := range block.All() {
			payloads = append(payloads, p)
			size += len(p)
		}
		if again := AppendBlock(nil, payloads...); !bytes.Equal(again, block) {
			t.Errorf("%x written as %x", block, again)
		}
		if block.Count() != len(payloads) || block.PayloadBytes() != size || BlockSize(payloads...) != len(block) {
			t.Errorf("count %d, payload bytes %d", block.Count(), block.PayloadBytes())
		}
	})
}

// reencode checks that what was read from payload is written as its start:
// what follows the last field has been ignored.
func reencode(t *testing.T, flags Flags, payload, frame []byte) {
	t.Helper()
	h, err := ParseHeader(frame)
	if err != nil || h.Flags != flags || int(h.Length) != len(frame)-HeaderSize {
		t.Fatalf("header %+v of a frame of %d bytes with flags %#04x: %v", h, len(frame), uint16(flags), err)
	}
	if !bytes.HasPrefix(payload, frame[HeaderSize:]) {
		t.Errorf("%x written as %x", payload, frame[HeaderSize:])
	}
}

func FuzzPublish(f *testing.F) {
	seedFrames(f, func(flags Flags, payload []byte) { f.Add(uint16(flags), payload) })
	f.Fuzz(func(t *testing.T, flags uint16, payload []byte) {
		var p Publish
		err := ParsePublish(Flags(flags), payload, &p)
		switch {
		case err == nil:
			reencode(t, Flags(flags), payload, p.Append(nil))
			if head := p.AppendHead(nil, len(p.Block)); len(head)+len(p.Block) != p.Size() {
				t.Errorf("head of %d bytes, size %d", len(head), p.Size())
			}
			if !utf8.Valid(p.Tenant) || !utf8.Valid(p.Namespace) || !utf8.Valid(p.Stream) {
				t.Error("a name is not UTF-8")
			}
		case errors.Is(err, ErrMalformedBody):
			if p.Acked && p.RequestID != binary.BigEndian.Uint64(payload) {
				t.Errorf("request id %d of %x", p.RequestID, payload)
			}
		case errors.Is(err, ErrMalformedPrefix):
			if !p.Acked {
				t.Error("an unacked batch has no prefix")
			}
		case !errors.Is(err, ErrFlags):
			t.Errorf("untyped error %v", err)
		}
		if err != nil && !errors.Is(err, ErrMalformed) {
			t.Errorf("%v is not malformed", err)
		}
	})
}

func FuzzAck(f *testing.F) {
	seedFrames(f, func(flags Flags, payload []byte) { f.Add(uint16(flags), payload) })
	f.Fuzz(func(t *testing.T, flags uint16, payload []byte) {
		a := Ack{Message: "old", OwnerNode: "old", Detail: Detail{Reason: "old"}}
		if err := ParseAck(Flags(flags), payload, &a); err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Errorf("untyped error %v", err)
			}
			return
		}
		if len(a.Message) <= MaxAckMessage {
			reencode(t, Flags(flags), payload, a.Append(nil))
		}
		var fresh Ack
		if err := ParseAck(Flags(flags), payload, &fresh); err != nil || fresh != a {
			t.Errorf("%+v, %v; over an old ack %+v", fresh, err, a)
		}
		if class := a.Failure().Class; class != 0 && !class.Known() {
			t.Errorf("class %d", class)
		}
	})
}

func FuzzEventBatch(f *testing.F) {
	seedFrames(f, func(flags Flags, payload []byte) { f.Add(uint16(flags), payload) })
	f.Fuzz(func(t *testing.T, flags uint16, payload []byte) {
		var e EventBatch
		if err := ParseEventBatch(Flags(flags), payload, &e); err != nil {
			if !errors.Is(err, ErrMalformed) {
				t.Errorf("untyped error %v", err)
			}
			return
		}
		reencode(t, Flags(flags), payload, e.Append(nil))
		n := 0
		for i := range e.All() {
			if i != n {
				t.Fatalf("event %d is number %d", n, i)
			}
			n++
		}
		if n != e.Count() || n > len(payload)/recordSizeBytes {
			t.Errorf("%d events, count %d", n, e.Count())
		}
	})
}

// FuzzFrameReader: frames come out the same however the bytes come in.
func FuzzFrameReader(f *testing.F) {
	for _, v := range allVectors(f) {
		f.Add(v.frame, uint64(1))
	}
	f.Add(append(frame(1, []byte("one")), frame(0, make([]byte, 5000))...), uint64(2))
	f.Fuzz(func(t *testing.T, stream []byte, seed uint64) {
		const limit = 8 << 10
		rnd := rand.New(rand.NewPCG(seed, 0))
		s := &script{}
		for rest := stream; len(rest) > 0; {
			n := min(1+rnd.IntN(40), len(rest))
			s.steps = append(s.steps, step{data: rest[:n]})
			if rnd.IntN(3) == 0 {
				s.steps = append(s.steps, step{err: iotest.ErrTimeout})
			}
			rest = rest[n:]
		}
		r := NewFrameReader(s, limit)
		at := 0
		for {
			before, held, reads := r.Partial(), r.Buffered(), s.reads
			h, payload, err := r.Next()
			if errors.Is(err, iotest.ErrTimeout) {
				continue
			}
			if held && s.reads != reads || before && held {
				t.Fatal("a read although a frame was at hand")
			}
			rest := stream[at:]
			want, headerErr := ParseHeader(rest)
			switch {
			case errors.Is(headerErr, ErrShort):
				if err != io.EOF {
					t.Errorf("%d bytes of a header: %v", len(rest), err)
				}
				return
			case headerErr != nil:
				if !errors.Is(err, headerErr) {
					t.Errorf("%v, want %v", err, headerErr)
				}
				return
			case want.Length > limit:
				var tooLarge *TooLargeError
				if !errors.As(err, &tooLarge) || tooLarge.Declared != want.Length {
					t.Errorf("%d bytes declared: %v", want.Length, err)
				}
				return
			case int(want.Length) > len(rest)-HeaderSize:
				if err != io.ErrUnexpectedEOF {
					t.Errorf("inside a payload: %v", err)
				}
				return
			}
			end := HeaderSize + int(want.Length)
			if err != nil || h != want || !bytes.Equal(payload, rest[HeaderSize:end]) {
				t.Fatalf("%+v %x, %v; want %+v %x", h, payload, err, want, rest[HeaderSize:end])
			}
			at += end
		}
	})
}

// FuzzNames: the grammar rune by rune, as the text of it says.
func FuzzNames(f *testing.F) {
	for _, s := range []string{"", ".", "..", "a/b", "a b", "é", "\xff", "\u2028", "orders", "\u200f"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		valid := len(s) >= 1 && len(s) <= 253 && utf8.ValidString(s) && s != "." && s != ".."
		for _, r := range s {
			if unicode.In(r, unicode.Cc, unicode.White_Space) || r == '/' || r == ':' || r == '*' || r == '#' {
				valid = false
			}
		}
		err := ValidateName("stream", s)
		if (err == nil) != valid {
			t.Errorf("%q: %v", s, err)
		}
		if err != nil && !utf8.ValidString(err.Error()) {
			t.Errorf("%q: error text %q", s, err)
		}
		if keyErr := ValidateKey([]byte(s)); (keyErr == nil) != (len(s) >= 1 && len(s) <= 65535 && utf8.ValidString(s)) {
			t.Errorf("key %q: %v", s, keyErr)
		}
	})
}
