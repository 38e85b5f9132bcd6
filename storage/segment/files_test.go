package segment

import (
	"math"
	"testing"
)

func TestFileNames(t *testing.T) {
	for id, name := range map[uint64]string{
		0: "00000000000000000000.log", 42: "00000000000000000042.log", math.MaxUint64: "18446744073709551615.log",
	} {
		if got := FileName(id); got != name {
			t.Errorf("%d is named %s", id, got)
		}
		if got, ok := ParseFileName(name); !ok || got != id {
			t.Errorf("%s is read as %d, %v", name, got, ok)
		}
	}
	if got, ok := ParseIndexName(IndexName(7)); !ok || got != 7 {
		t.Errorf("index name read as %d, %v", got, ok)
	}
	for _, name := range []string{
		"", ".log", "0.log", "00000000000000000000", "00000000000000000000.index", "00000000000000000000.log.tmp",
		"+0000000000000000000.log", "18446744073709551616.log", "0000000000000000000a.log", "000000000000000000000.log",
	} {
		if id, ok := ParseFileName(name); ok {
			t.Errorf("%q is read as segment %d", name, id)
		}
	}
}

func TestCorruptionIsNamedAndPlaced(t *testing.T) {
	c := truncated(80, 3).At("a/b.log", 7, 100)
	if got, want := c.Error(), "corrupt log: truncated in a/b.log, segment 7, byte 100: 80 bytes needed, 3 there"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for k := SegmentMagic; k <= CounterRecord; k++ {
		if corruptionNames[k] == "" {
			t.Errorf("kind %d has no name", k)
		}
	}
}
