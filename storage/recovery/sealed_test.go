package recovery

import (
	"bytes"
	"slices"
	"testing"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/segment"
)

// TestSealedDamageIsRefused: others were written behind it, so all of a sealed
// segment was durable.
func TestSealedDamageIsRefused(t *testing.T) {
	for _, h := range harms {
		for _, repair := range []bool{false, true} {
			m := fstest.New(1)
			w := threeSegments(t, m)
			first := threeSegments(t, fstest.New(1)).starts
			path := w.path(segment.FileName(1))
			if err := h.do(m, path, first[7], first[8], mustSize(t, m, path)); err != nil {
				t.Fatal(err)
			}
			if h.name == "magic flipped" || h.name == "body flipped" || h.name == "length flipped" || h.name == "the batch before, again" {
				// Only the last index interval is read on an open that trusts.
				refused(t, m, Options{VerifyAll: true, RepairChecksumTail: repair}, h.kind, path, first[7])
				continue
			}
			refused(t, m, Options{RepairChecksumTail: repair}, h.kind, path, first[7])
		}
	}
}

func TestSealedLastBatchIsVerified(t *testing.T) {
	for _, h := range harms {
		m := fstest.New(1)
		w := threeSegments(t, m)
		first := threeSegments(t, fstest.New(1)).starts
		path := w.path(segment.FileName(0))
		size := mustSize(t, m, path)
		if err := h.do(m, path, first[9], size, size); err != nil {
			t.Fatal(err)
		}
		refused(t, m, Options{}, h.kind, path, first[9])
	}
}

func mustSize(t *testing.T, m fs.FS, path string) int64 {
	t.Helper()
	info, err := m.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size
}

func TestSealedFilesMustMeet(t *testing.T) {
	copyFile := func(t *testing.T, m *fstest.Mem, from, to string) {
		t.Helper()
		data, err := fs.ReadFile(m, from, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Cut(to, 0); err != nil {
			t.Fatal(err)
		}
		if err := m.Overwrite(to, 0, data); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("one is missing", func(t *testing.T) {
		m := fstest.New(1)
		w := threeSegments(t, m)
		w.must(m.Drop(w.path(segment.FileName(1))))
		refused(t, m, Options{}, segment.OffsetOutOfOrder, w.path(segment.FileName(2)), 0)
	})
	t.Run("the oldest is missing", func(t *testing.T) { // retention does that
		m := fstest.New(1)
		w := threeSegments(t, m)
		w.must(m.Drop(w.path(segment.FileName(0))))
		if p := recovered(t, m, Options{}); p.Base != 40 || p.Tail != 120 {
			t.Errorf("%+v", p)
		}
		if _, err := m.Stat(w.path(segment.IndexName(0))); err == nil {
			t.Error("an index without a segment was left")
		}
	})
	t.Run("the newest is missing", func(t *testing.T) {
		m := fstest.New(1)
		w := threeSegments(t, m)
		w.must(m.Drop(w.path(segment.FileName(2))))
		refused(t, m, Options{}, segment.BelowMark, w.path(segment.FileName(2)), 0)
	})
	t.Run("all are missing", func(t *testing.T) {
		m := fstest.New(1)
		w := threeSegments(t, m)
		for id := range uint64(3) {
			w.must(m.Drop(w.path(segment.FileName(id))))
		}
		refused(t, m, Options{}, segment.BelowMark, w.path(segment.FileName(2)), 0)
	})
	t.Run("one is another's copy", func(t *testing.T) {
		m := fstest.New(1)
		w := threeSegments(t, m)
		copyFile(t, m, w.path(segment.FileName(0)), w.path(segment.FileName(1)))
		refused(t, m, Options{}, segment.OffsetOutOfOrder, w.path(segment.FileName(1)), 0)
	})
	t.Run("the same offsets, other batches", func(t *testing.T) {
		m, other := fstest.New(1), fstest.New(1)
		w := threeSegments(t, m)
		o := newWriter(t, other)
		o.append(40, 20)
		o.roll()
		o.append(40, 20)
		o.close()
		data, err := fs.ReadFile(other, o.path(segment.FileName(0)), 1<<20)
		w.must(err)
		path := w.path(segment.FileName(0))
		w.must(m.Cut(path, 0))
		w.must(m.Overwrite(path, 0, data))
		refused(t, m, Options{}, segment.Chain, w.path(segment.FileName(1)), 0)
	})
	t.Run("a header is damaged", func(t *testing.T) {
		for id := range uint64(3) {
			m := fstest.New(1)
			w := threeSegments(t, m)
			w.must(m.FlipBit(w.path(segment.FileName(id)), 100))
			refused(t, m, Options{RepairChecksumTail: true}, segment.SegmentHeaderChecksum, w.path(segment.FileName(id)), 0)
		}
	})
	t.Run("a header is zero", func(t *testing.T) {
		for id := range uint64(3) {
			m := fstest.New(1)
			w := threeSegments(t, m)
			w.must(m.Overwrite(w.path(segment.FileName(id)), 0, make([]byte, segment.HeaderSize)))
			p := inspect(t, m, Options{RepairChecksumTail: true})
			if p.Verdict != Refuse {
				t.Errorf("segment %d: %s, steps %v", id, p.Verdict, p.Steps)
			}
		}
	})
}

// TestIndexIsAHint (BR-14): whatever becomes of an index, the log opens, and
// the index is as good as new, byte for byte.
func TestIndexIsAHint(t *testing.T) {
	for id := range uint64(3) {
		good := fstest.New(1)
		w := threeSegments(t, good)
		name := w.path(segment.IndexName(id))
		want, err := fs.ReadFile(good, name, 1<<20)
		w.must(err)
		entries := (len(want) - segment.IndexHeaderSize) / segment.IndexEntrySize
		last := int64(len(want) - segment.IndexEntrySize)
		replace := func(m *fstest.Mem, data []byte) error {
			if err := m.Cut(name, 0); err != nil {
				return err
			}
			return m.Overwrite(name, 0, data)
		}
		other, err := fs.ReadFile(good, w.path(segment.IndexName((id+1)%3)), 1<<20)
		w.must(err)
		for what, harm := range map[string]func(*fstest.Mem) error{
			"missing":            func(m *fstest.Mem) error { return m.Drop(name) },
			"empty":              func(m *fstest.Mem) error { return m.Cut(name, 0) },
			"header only":        func(m *fstest.Mem) error { return m.Cut(name, segment.IndexHeaderSize) },
			"last entry cut":     func(m *fstest.Mem) error { return m.Cut(name, last+3) },
			"last entry gone":    func(m *fstest.Mem) error { return m.Cut(name, last) },
			"random":             func(m *fstest.Mem) error { return replace(m, bytes.Repeat([]byte{0xA5, 3}, 500)) },
			"another segment's":  func(m *fstest.Mem) error { return replace(m, other) },
			"past the end":       func(m *fstest.Mem) error { return m.Overwrite(name, last+8, []byte{0x7F, 0xFF}) },
			"into a batch":       func(m *fstest.Mem) error { return m.FlipBit(name, (last+15)*8+3) },
			"into the header":    func(m *fstest.Mem) error { return m.Overwrite(name, last+8, make([]byte, 8)) },
			"another offset":     func(m *fstest.Mem) error { return m.FlipBit(name, (last+7)*8+2) },
			"bad header":         func(m *fstest.Mem) error { return m.FlipBit(name, 9) },
			"junk behind":        func(m *fstest.Mem) error { return m.Overwrite(name, int64(len(want)), make([]byte, 64)) },
			"one more, the last": func(m *fstest.Mem) error { return m.Overwrite(name, int64(len(want)), want[last:]) },
		} {
			m := good.Clone()
			w.must(harm(m))
			p := recovered(t, m, Options{})
			if got := contents(t, m, p); !slices.Equal(got, w.records) {
				t.Errorf("index %d %s: %d records", id, what, len(got))
			}
			data, err := fs.ReadFile(m, name, 1<<20)
			w.must(err)
			if !bytes.Equal(data, want) {
				t.Errorf("index %d %s: the rebuilt one has %d bytes and differs from the %d of a new one (%d entries)", id, what, len(data), len(want), entries)
			}
		}
	}
}

// TestMiddleOfAnIndex: what an open does not look at, a full verification does.
func TestMiddleOfAnIndex(t *testing.T) {
	m := fstest.New(1)
	w := threeSegments(t, m)
	name := w.path(segment.IndexName(0))
	w.must(m.FlipBit(name, (segment.IndexHeaderSize+segment.IndexEntrySize+15)*8))
	if p := inspect(t, m, Options{}); p.Verdict != Clean {
		t.Errorf("%s: %v", p.Verdict, p.Steps)
	}
	if p := recovered(t, m, Options{VerifyAll: true}); p.Verdict != Repair || p.IndexRebuilds != 1 {
		t.Errorf("%s: %v", p.Verdict, p.Steps)
	}
}
