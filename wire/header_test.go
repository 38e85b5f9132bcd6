package wire

import (
	"bytes"
	"errors"
	"math"
	"testing"
)

func TestParseHeader(t *testing.T) {
	good := AppendHeader(nil, FlagPublishBatch|FlagPublishAcked, 0x01020304)
	if want := []byte("FLX1\x00\x01\x00\x09\x01\x02\x03\x04"); !bytes.Equal(good, want) {
		t.Fatalf("header %x, want %x", good, want)
	}
	h, err := ParseHeader(append(good, "payload"...))
	if err != nil || h.Flags != 0x0009 || h.Length != 0x01020304 || h.Unknown() {
		t.Errorf("parsed as %+v, %v", h, err)
	}
	for n := range HeaderSize {
		if _, err := ParseHeader(good[:n]); !errors.Is(err, ErrShort) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	for i, want := range []error{ErrMagic, ErrMagic, ErrMagic, ErrMagic, ErrVersion, ErrVersion} {
		bad := bytes.Clone(good)
		bad[i] ^= 0x40
		if _, err := ParseHeader(bad); !errors.Is(err, want) {
			t.Errorf("byte %d changed: %v, want %v", i, err, want)
		}
	}
	unknown, err := ParseHeader(AppendHeader(nil, 0x8001, 0))
	if err != nil || !unknown.Unknown() {
		t.Errorf("unknown flag: %+v, %v", unknown, err)
	}
	longest, err := ParseHeader(AppendHeader(nil, 0, math.MaxUint32))
	if err != nil || longest.Length != math.MaxUint32 {
		t.Errorf("longest: %+v, %v", longest, err)
	}
	for _, n := range []int{-1, math.MaxUint32 + 1} {
		if !panics(func() { AppendHeader(nil, 0, n) }) {
			t.Errorf("a length of %d was written", n)
		}
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}
