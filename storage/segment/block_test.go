package segment

import (
	"slices"
	"testing"
)

func TestAllYieldsRecordsWithTheirOffsets(t *testing.T) {
	b := Batch{Count: 3, BaseOffset: 40, Block: block("a", "", "ccc")}
	var offsets []uint64
	var records []string
	for offset, record := range b.All() {
		offsets, records = append(offsets, offset), append(records, string(record))
	}
	if !slices.Equal(offsets, []uint64{40, 41, 42}) || !slices.Equal(records, []string{"a", "", "ccc"}) {
		t.Errorf("offsets %v, records %q", offsets, records)
	}
	for offset := range b.All() {
		if offset == 41 {
			break
		}
	}
}

func TestCheckBlock(t *testing.T) {
	good := block("a", "", "ccc")
	cut := func(n int) []byte { return good[:n] }
	for _, c := range []struct {
		name  string
		block []byte
		kind  CorruptionKind
	}{
		{"empty", nil, Truncated},
		{"other count", block("a"), BatchCount},
		{"cut in a length", cut(len(good) - 5), BatchLength},
		{"cut in a record", cut(len(good) - 1), BatchLength},
		{"more behind", append(slices.Clone(good), 0), BatchLength},
		{"huge length", append(cut(4), 0xff, 0xff, 0xff, 0xff), BatchLength},
	} {
		b := Batch{Count: 3, Block: slices.Clone(c.block)}
		t.Run(c.name, func(t *testing.T) { wantKind(t, b.CheckBlock(), c.kind) })
		for range b.All() { // ends, whatever the block
		}
	}
	if err := (&Batch{Count: 3, Block: block("a", "", "ccc")}).CheckBlock(); err != nil {
		t.Error(err)
	}
}
