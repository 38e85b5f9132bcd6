package producer

import (
	"encoding/binary"
	"testing"
)

func block(records ...string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(records)))
	for _, r := range records {
		b = binary.BigEndian.AppendUint32(b, uint32(len(r)))
		b = append(b, r...)
	}
	return b
}

// The vectors of storage 15.
func TestDigestVectors(t *testing.T) {
	for _, c := range []struct {
		block []byte
		want  uint64
	}{
		{block("hi"), 0x336fc58e77f7f78d},
		{block("hi", "yo"), 0x5950e931116250ae},
		{block(), 0},
	} {
		if got := Digest(c.block); got != c.want {
			t.Errorf("%q: %016x, want %016x", c.block, got, c.want)
		}
	}
}

func TestDigestTellsBatchesApart(t *testing.T) {
	seen := map[uint64][]byte{}
	for _, b := range [][]byte{
		block("ab"), block("a", "b"), block("b", "a"), block("", "ab"), block("ab", ""), block(""), block("", ""),
	} {
		d := Digest(b)
		if other, ok := seen[d]; ok {
			t.Errorf("%x and %x have one digest", b, other)
		}
		seen[d] = b
	}
}

func TestDigestOfAnyBytesEnds(t *testing.T) {
	b := block("hi", "yo")
	for n := range b {
		Digest(b[:n])
	}
	Digest([]byte{0, 0, 0, 9, 0xff, 0xff, 0xff, 0xff, 1})
	if n := testing.AllocsPerRun(100, func() { Digest(b) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
