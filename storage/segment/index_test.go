package segment

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The rule by hand: spacing 100, batches of 40. The first has an entry, then
// each whose start is at least 100 past the last entry's: the third after it.
func TestBuilderSpacing(t *testing.T) {
	b := NewBuilder(100)
	var chosen []uint64
	for i := range uint64(9) {
		if b.Add(10*i, HeaderSize+40*i, 40) {
			chosen = append(chosen, i)
		}
	}
	if want := []uint64{0, 3, 6}; !slices.Equal(chosen, want) {
		t.Errorf("entries for batches %v, want %v", chosen, want)
	}
	if got := b.Entries()[1]; got != (IndexEntry{Offset: 30, Position: HeaderSize + 120}) {
		t.Errorf("second entry %+v", got)
	}
}

func TestBuilderExactSpacing(t *testing.T) {
	b := NewBuilder(100)
	for i, size := range []int{100, 99, 1, 500, 1} {
		if got, want := b.Add(uint64(i), uint64(i), size), []bool{true, true, false, true, true}[i]; got != want {
			t.Errorf("batch %d: %v", i, got)
		}
	}
}

type placed struct {
	offset, position uint64
	size             int
}

func drawBatches(t *rapid.T) []placed {
	offset, position := rapid.Uint64Max(1000).Draw(t, "base"), uint64(HeaderSize)
	var all []placed
	for _, size := range rapid.SliceOfN(rapid.IntRange(89, 600), 1, 40).Draw(t, "sizes") {
		all = append(all, placed{offset, position, size})
		offset += rapid.Uint64Range(1, 9).Draw(t, "count")
		position += uint64(size)
	}
	return all
}

// A builder that was cut and went on has what a rebuild finds.
func TestBuilderCutIsARebuild(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spacing := rapid.IntRange(1, 1000).Draw(t, "spacing")
		batches := drawBatches(t)
		keep := rapid.IntRange(0, len(batches)-1).Draw(t, "keep")
		b := NewBuilder(spacing)
		for _, p := range batches {
			b.Add(p.offset, p.position, p.size)
		}
		b.Cut(batches[keep].offset, batches[keep].position)
		for _, p := range batches[keep:] {
			b.Add(p.offset, p.position, p.size)
		}
		rebuilt := NewBuilder(spacing)
		for _, p := range batches {
			rebuilt.Add(p.offset, p.position, p.size)
		}
		base := batches[0].offset
		if got, want := AppendIndex(nil, base, b.Entries()), AppendIndex(nil, base, rebuilt.Entries()); !slices.Equal(got, want) {
			t.Fatalf("\n got %v\nwant %v", b.Entries(), rebuilt.Entries())
		}
	})
}

// From where Lookup says, no batch is skipped, and less than the spacing and
// one batch is walked.
func TestLookup(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spacing := rapid.IntRange(1, 1000).Draw(t, "spacing")
		batches := drawBatches(t)
		b := NewBuilder(spacing)
		for _, p := range batches {
			b.Add(p.offset, p.position, p.size)
		}
		i := rapid.IntRange(0, len(batches)-1).Draw(t, "batch")
		e, ok := Lookup(b.Entries(), batches[i].offset)
		if !ok || e.Offset > batches[i].offset || e.Position > batches[i].position {
			t.Fatalf("batch %+v from %+v", batches[i], e)
		}
		if walk := batches[i].position - e.Position; walk >= uint64(spacing)+600 {
			t.Fatalf("%d bytes to walk with spacing %d", walk, spacing)
		}
	})
	if _, ok := Lookup([]IndexEntry{{Offset: 5, Position: 64}}, 4); ok {
		t.Error("an entry for what is below the base")
	}
	if _, ok := Lookup(nil, 4); ok {
		t.Error("an entry of none")
	}
}

func TestIndexCutAnywhere(t *testing.T) {
	whole := golden(t, "index")
	for n := range whole {
		entries, err := ParseIndex(whole[:n], 7)
		if n < IndexHeaderSize {
			wantKind(t, err, Truncated)
			continue
		}
		if err != nil || len(entries) != (n-IndexHeaderSize)/IndexEntrySize {
			t.Errorf("cut at %d: %d entries, %v", n, len(entries), err)
		}
	}
}

func TestIndexUnusable(t *testing.T) {
	entries := func(e ...IndexEntry) []byte { return AppendIndex(nil, 7, e) }
	first := IndexEntry{Offset: 7, Position: 64}
	damaged := func(at int) []byte {
		b := golden(t, "index")
		b[at] ^= 1
		return b
	}
	for _, c := range []struct {
		name string
		b    []byte
		kind CorruptionKind
	}{
		{"magic", damaged(0), IndexMagic},
		{"version", damaged(5), IndexVersion},
		{"flags", damaged(7), IndexVersion},
		{"base", damaged(15), IndexBase},
		{"reserved", damaged(23), IndexVersion},
		{"not the first batch", entries(IndexEntry{Offset: 8, Position: 64}), IndexOrder},
		{"not the first position", entries(IndexEntry{Offset: 7, Position: 65}), IndexOrder},
		{"same offset", entries(first, IndexEntry{Offset: 7, Position: 100}), IndexOrder},
		{"same position", entries(first, IndexEntry{Offset: 8, Position: 64}), IndexOrder},
		{"zeros behind", append(entries(first), make([]byte, 16)...), IndexOrder},
	} {
		_, err := ParseIndex(c.b, 7)
		t.Run(c.name, func(t *testing.T) { wantKind(t, err, c.kind) })
	}
}

func FuzzIndex(f *testing.F) {
	f.Add(golden(f, "index"), uint64(7), uint64(50))
	f.Add(AppendIndex(nil, 0, nil), uint64(0), uint64(0))
	f.Fuzz(func(t *testing.T, b []byte, base, offset uint64) {
		entries, err := ParseIndex(b, base)
		if err != nil {
			return
		}
		written := AppendIndex(nil, base, entries)
		wantBytes(t, "written again", written, b[:len(written)])
		if len(b)-len(written) >= IndexEntrySize {
			t.Error("a whole entry was left out")
		}
		if e, ok := Lookup(entries, offset); ok && (e.Offset > offset || e.Position < HeaderSize) {
			t.Errorf("%d is looked for at %+v", offset, e)
		}
	})
}
