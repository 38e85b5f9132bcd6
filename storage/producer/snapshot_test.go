package producer

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"os"
	"strings"
	"testing"
)

func sample() *Table {
	table := NewTable(4, 4)
	table.Record(0x11, 5, 0xd1, 7, 2)
	table.Record(0x22, 0, 0xd2, 9, 1)
	table.Record(0x11, 6, 0xd3, 12, 3)
	return table
}

func golden(t testing.TB) []byte {
	t.Helper()
	text, err := os.ReadFile("testdata/producers.hex")
	if err != nil {
		t.Fatal(err)
	}
	var digits strings.Builder
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		digits.WriteString(strings.TrimSpace(line))
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestSnapshotVector(t *testing.T) {
	want := golden(t)
	if got := sample().AppendSnapshot(nil, 15); !bytes.Equal(got, want) {
		t.Errorf("\n got %x\nwant %x", got, want)
	}
	table, asOf, err := Restore(want, 4, 4)
	if err != nil || asOf != 15 || table.Len() != 2 {
		t.Fatalf("as of %d: %v", asOf, err)
	}
	if v := table.Check(0x11, 5, 0xd1); v != (Verdict{Outcome: Duplicate, First: 7, Count: 2, Expected: 7}) {
		t.Errorf("got %+v", v)
	}
}

func TestSnapshotAppends(t *testing.T) {
	got := sample().AppendSnapshot([]byte("before"), 15)
	if !bytes.Equal(got, append([]byte("before"), golden(t)...)) {
		t.Errorf("got %x", got)
	}
}

func TestRestoreIntoASmallerTable(t *testing.T) {
	table, _, err := Restore(golden(t), 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if table.Len() != 1 || table.Check(0x11, 7, 0).Outcome != Next || table.Check(0x11, 5, 0xd1).Outcome != Expired {
		t.Error("the warmest producer's newest batch is not what is left")
	}
}

func TestSnapshotCutLongerOrDamagedIsRefused(t *testing.T) {
	whole := golden(t)
	refuse := func(what string, n int, b []byte) {
		t.Helper()
		if _, _, err := Restore(b, 4, 4); !errors.Is(err, ErrSnapshot) {
			t.Errorf("%s %d: %v", what, n, err)
		}
	}
	for n := range whole {
		refuse("cut at", n, whole[:n])
	}
	refuse("longer by", 1, append(whole[:len(whole):len(whole)], 0))
	for bit := range len(whole) * 8 {
		whole[bit/8] ^= 1 << (bit % 8)
		refuse("inverted bit", bit, whole)
		whole[bit/8] ^= 1 << (bit % 8)
	}
}

func sealed(b []byte) []byte {
	if len(b) >= snapshotHeader {
		binary.BigEndian.PutUint32(b[20:], snapshotSum(b))
	}
	return b
}

// What has a right checksum is still checked: a count is no reason to allocate,
// and an order no reason to believe.
func TestSnapshotThatNoWriterMakes(t *testing.T) {
	const first, second = snapshotHeader, snapshotHeader + producerSize + batchSize
	for _, c := range []struct {
		name string
		at   int
		b    []byte
	}{
		{"version", 4, []byte{0, 2}},
		{"reserved", 6, []byte{1}},
		{"more producers", 16, []byte{0xff, 0xff, 0xff, 0xff}},
		{"fewer producers", 16, []byte{0, 0, 0, 1}},
		{"no batches", first + 16, []byte{0, 0}},
		{"more batches", first + 16, []byte{0xff, 0xff}},
		{"more batches than sequences", second + 8, make([]byte, 8)},
		{"same producer", first, []byte{0, 0, 0, 0, 0, 0, 0, 0x11}},
		{"no records", first + producerSize + 8, make([]byte, 4)},
		{"past as of", first + producerSize + 8, []byte{0, 0, 0, 7}},
		{"offset wraps", first + producerSize, bytes.Repeat([]byte{0xff}, 8)},
		{"out of order", first + producerSize, []byte{0, 0, 0, 0, 0, 0, 0, 13}},
		{"batches out of order", second + producerSize, []byte{0, 0, 0, 0, 0, 0, 0, 13}},
	} {
		b := golden(t)
		copy(b[c.at:], c.b)
		if _, _, err := Restore(sealed(b), 4, 4); !errors.Is(err, ErrSnapshot) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestMaxSnapshot(t *testing.T) {
	table := NewTable(3, 2)
	var tail uint64
	for seq := range uint64(9) {
		for id := range uint64(4) {
			table.Record(id, seq, 0, tail, 1)
			tail++
		}
	}
	if n := int64(len(table.AppendSnapshot(nil, tail))); n > MaxSnapshot(3, 2) {
		t.Errorf("%d bytes", n)
	}
}

func FuzzProducerSnapshot(f *testing.F) {
	f.Add(golden(f), false)
	f.Add(golden(f), true)
	f.Add(NewTable(0, 0).AppendSnapshot(nil, 0), true)
	f.Fuzz(func(t *testing.T, b []byte, fix bool) {
		if fix {
			sealed(b)
		}
		// So large that nothing is left out.
		table, asOf, err := Restore(b, 1<<30, 1<<16)
		if err != nil {
			return
		}
		if again := table.AppendSnapshot(nil, asOf); !bytes.Equal(again, b) {
			t.Errorf("\n got %x\nfrom %x", again, b)
		}
	})
}
