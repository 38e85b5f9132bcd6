package recovery

import (
	"slices"
	"testing"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/segment"
)

// create makes a segment file with these bytes and nothing more.
func (w *testWriter) create(id uint64, data []byte) {
	w.t.Helper()
	file, err := w.fs.Create(w.path(segment.FileName(id)))
	w.must(err)
	if len(data) > 0 {
		_, err = file.WriteAt(data, 0)
		w.must(err)
	}
	w.must(file.Close())
}

func TestBlankFirstSegmentIsFresh(t *testing.T) {
	for _, size := range []int{0, 1, 63, 64} {
		for _, mark := range []*segment.Mark{nil, {}, {SyncedBytes: segment.HeaderSize}} {
			m := fstest.New(1)
			w := &testWriter{t: t, fs: m}
			w.must(fs.MkdirDurable(m, testDir))
			w.create(0, make([]byte, size))
			if mark != nil {
				w.mark(*mark)
			}
			p := recovered(t, m, Options{BaseOffset: 5})
			if p.Verdict != Fresh || p.NextID != 0 || p.Tail != 5 || p.AbandonedRolls != 1 {
				t.Errorf("%d bytes, mark %v: %+v", size, mark, p)
			}
			if _, err := CreateSegment(m, testDir, p.NextID, segment.Header{BaseOffset: 5}, 0); err != nil {
				t.Errorf("%d bytes: %v", size, err)
			}
		}
	}
}

func TestBlankFirstSegmentThatWasUsedIsRefused(t *testing.T) {
	for _, test := range []struct {
		size int
		mark *segment.Mark
	}{
		{65, nil},
		{4096, nil},
		{64, &segment.Mark{SyncedBytes: 65}},
		{0, &segment.Mark{Segment: 1, SyncedBytes: 64}},
	} {
		m := fstest.New(1)
		w := &testWriter{t: t, fs: m}
		w.must(fs.MkdirDurable(m, testDir))
		w.create(0, make([]byte, test.size))
		if test.mark != nil {
			w.mark(*test.mark)
		}
		if p := inspect(t, m, Options{}); p.Verdict != Refuse {
			t.Errorf("%d bytes, mark %v: %s", test.size, test.mark, p.Verdict)
		}
	}
}

// TestMarkOfNoBytes says that all segments before the one it names are durable,
// and nothing of that one but its name.
func TestMarkOfNoBytes(t *testing.T) {
	m := fstest.New(1)
	w := &testWriter{t: t, fs: m}
	w.must(fs.MkdirDurable(m, testDir))
	w.mark(segment.Mark{})
	if p := recovered(t, m, Options{BaseOffset: 70}); p.Verdict != Fresh || p.NextID != 0 || p.Tail != 70 {
		t.Errorf("%+v", p)
	}

	// Power loss took the header of a segment that was begun in the background,
	// and left some of what was written behind it.
	for _, batches := range []int{0, 2} {
		m = fstest.New(1)
		w = threeSegments(t, m)
		w.begin(3)
		for range batches {
			w.append(4, 20)
		}
		w.mark(segment.Mark{Segment: 3})
		w.must(m.Overwrite(w.path(segment.FileName(3)), 0, make([]byte, segment.HeaderSize)))
		p := recovered(t, m.Clone(), Options{})
		if p.Verdict != Repair || p.Tail != 120 || p.Steps[0].Op != LowerMark {
			t.Errorf("%d batches: %+v", batches, p)
		}

		// The segment before it was durable to its end.
		path := w.path(segment.FileName(2))
		damaged := m.Clone()
		w.must(damaged.Cut(path, mustSize(t, damaged, path)-1))
		if p := inspect(t, damaged, Options{}); p.Verdict != Refuse || corruption(p.Err).Path != path {
			t.Errorf("%d batches, cut before: %s, %v", batches, p.Verdict, p.Err)
		}
		// And its name was.
		w.must(m.Drop(w.path(segment.FileName(3))))
		refused(t, m, Options{}, segment.BelowMark, w.path(segment.FileName(3)), 0)
	}
}

// TestAbandonedNewest: a roll that a crash interrupted leaves a file that was
// never used.
func TestAbandonedNewest(t *testing.T) {
	for name, data := range map[string][]byte{
		"empty": nil, "short": make([]byte, 20), "zero header": make([]byte, 64), "zeros": make([]byte, 5000),
		"another base": segment.Header{BaseOffset: 500}.Append(nil),
		"lower base":   segment.Header{BaseOffset: 3}.Append(nil),
		"broken chain": segment.Header{BaseOffset: 120, PrevCRC: 1}.Append(nil),
	} {
		m := fstest.New(1)
		w := threeSegments(t, m)
		w.create(3, data)
		p := recovered(t, m, Options{})
		if p.Verdict != Repair || p.AbandonedRolls != 1 || p.NextID != 3 {
			t.Errorf("%s: %s, %v", name, p.Verdict, p.Steps)
		}
		if got := contents(t, m, p); !slices.Equal(got, w.records) {
			t.Errorf("%s: %d records", name, len(got))
		}

		// What the mark names was durable, and is not abandoned.
		m = fstest.New(1)
		w = threeSegments(t, m)
		w.create(3, data)
		w.mark(segment.Mark{Segment: 3, SyncedBytes: 64})
		if p := inspect(t, m, Options{}); p.Verdict != Refuse {
			t.Errorf("%s, marked: %s", name, p.Verdict)
		}
	}
}

func TestEmptyNewestIsKept(t *testing.T) {
	m := fstest.New(1)
	w := threeSegments(t, m)
	w.begin(7) // ids may skip
	p := recovered(t, m, Options{})
	if p.Verdict != Clean || len(p.Segments) != 4 || p.Tail != 120 || p.LastCRC != w.crc || p.NextID != 8 {
		t.Errorf("%+v", p)
	}
}

// TestWithoutMarkNoRollIsAbandoned unless there is nothing in it.
func TestWithoutMarkNoRollIsAbandoned(t *testing.T) {
	m := fstest.New(1)
	w := threeSegments(t, m)
	w.create(3, segment.Header{BaseOffset: 500}.Append(nil))
	w.must(m.Drop(w.path(segment.MarkFile)))
	refused(t, m, Options{}, segment.OffsetOutOfOrder, w.path(segment.FileName(3)), 0)

	m = fstest.New(1)
	w = threeSegments(t, m)
	w.create(3, make([]byte, 64))
	w.must(m.Drop(w.path(segment.MarkFile)))
	if p := recovered(t, m, Options{}); p.Verdict != Repair || p.Tail != 120 {
		t.Errorf("%+v", p)
	}
}

// TestInteriorBlank: a file that lost the race to be rolled to lies between two
// that meet without it.
func TestInteriorBlank(t *testing.T) {
	for _, size := range []int{0, 10, 64, 1000} {
		m := fstest.New(1)
		w := newWriter(t, m)
		w.append(4, 20)
		w.flush()
		w.writeIndex()
		w.create(1, make([]byte, size))
		w.begin(2)
		w.append(4, 20)
		w.flush()
		p := recovered(t, m, Options{})
		if p.Verdict != Repair || len(p.Segments) != 2 || p.Tail != 8 {
			t.Errorf("%d bytes: %+v", size, p)
		}
	}
	m := fstest.New(1)
	w := newWriter(t, m)
	w.append(4, 20)
	w.flush()
	w.writeIndex()
	w.create(1, nil)
	w.offset += 4
	w.begin(2)
	w.append(4, 20)
	w.flush()
	refused(t, m, Options{}, segment.OffsetOutOfOrder, w.path(segment.FileName(2)), 0)
}

// backgroundRoll writes a log whose last roll ran in the background: the first
// segment is neither flushed from its third batch on nor sealed, and the second
// has batches.
func backgroundRoll(t *testing.T, batches int) (*fstest.Mem, *testWriter, []int64) {
	m := fstest.New(1)
	w := newWriter(t, m)
	w.append(4, 20)
	w.append(4, 20)
	w.flush()
	w.append(4, 20)
	w.append(4, 20)
	starts := append(slices.Clone(w.starts), w.pos)
	w.begin(1)
	for range batches {
		w.append(4, 20)
	}
	return m, w, starts
}

// TestUnfinishedSeal: power loss took the end of a segment that the newest was
// already begun behind.
func TestUnfinishedSeal(t *testing.T) {
	for name, harm := range map[string]func(m *fstest.Mem, path string, starts []int64) error{
		"shorter by a batch":   func(m *fstest.Mem, path string, s []int64) error { return m.Cut(path, s[3]) },
		"cut within a batch":   func(m *fstest.Mem, path string, s []int64) error { return m.Cut(path, s[3]+50) },
		"zeros for its end":    func(m *fstest.Mem, path string, s []int64) error { return m.Overwrite(path, s[3], make([]byte, 50)) },
		"damage in its end":    func(m *fstest.Mem, path string, s []int64) error { return m.FlipBit(path, (s[3]+90)*8) },
		"damage in its header": func(m *fstest.Mem, path string, s []int64) error { return m.FlipBit(path, (s[3]+3)*8) },
	} {
		for batches := range 3 {
			m, w, starts := backgroundRoll(t, batches)
			if err := harm(m, w.path(segment.FileName(0)), starts); err != nil {
				t.Fatal(err)
			}
			p := recovered(t, m, Options{})
			if p.Verdict != Repair || p.Tail != 12 || len(p.Segments) != 1 {
				t.Errorf("%s, %d batches behind: %+v", name, batches, p)
			}
			if got := contents(t, m, p); !slices.Equal(got, w.records[:12]) {
				t.Errorf("%s: %d records", name, len(got))
			}
		}
	}
}

// TestUnfinishedSealKeepsWhatFollows: only junk behind the end is cut, and the
// newest begins where that ends.
func TestUnfinishedSealKeepsWhatFollows(t *testing.T) {
	m, w, starts := backgroundRoll(t, 2)
	w.must(m.Overwrite(w.path(segment.FileName(0)), starts[4], []byte("a write that was undone")))
	p := recovered(t, m, Options{})
	if p.Verdict != Repair || p.Tail != 24 || len(p.Segments) != 2 {
		t.Errorf("%+v", p)
	}
	if got := contents(t, m, p); !slices.Equal(got, w.records) {
		t.Errorf("%d records", len(got))
	}
}

// TestSealThatWasFinishedIsRefused: the mark, or a batch written after the next
// flush, says that the segment before was whole.
func TestSealThatWasFinishedIsRefused(t *testing.T) {
	m, w, starts := backgroundRoll(t, 1)
	w.flush()
	path := w.path(segment.FileName(0))
	w.must(m.FlipBit(path, (starts[3]+90)*8))
	refused(t, m, Options{}, segment.BatchChecksum, path, starts[3])

	m, w, starts = backgroundRoll(t, 1)
	mark := segment.Mark{Segment: 0, SyncedBytes: uint64(starts[2])}
	w.flush()
	w.append(1, 20) // knows
	w.mark(mark)    // the mark lags, as after power loss
	w.must(m.FlipBit(path, (starts[3]+90)*8))
	refused(t, m, Options{}, segment.BatchChecksum, path, starts[3])

	m, w, starts = backgroundRoll(t, 1)
	w.flush()
	w.append(1, 20)
	w.mark(mark)
	w.must(m.Cut(path, starts[3]))
	refused(t, m, Options{}, segment.OffsetOutOfOrder, w.path(segment.FileName(1)), 0)

	m, w, starts = backgroundRoll(t, 1)
	w.must(m.Cut(path, starts[1])) // below the mark
	refused(t, m, Options{}, segment.BelowMark, path, starts[1])
}

// TestHalfMadeSegmentIsRemoved: a full disk leaves no file behind (storage 27).
func TestHalfMadeSegmentIsRemoved(t *testing.T) {
	for _, op := range []fstest.Op{fstest.OpWrite, fstest.OpSync, fstest.OpSyncDir} {
		m := fstest.New(1)
		w := threeSegments(t, m)
		faults := fstest.NewFaults(m)
		faults.Inject(fstest.Rule{Ops: []fstest.Op{op}, Times: 1, Err: fstest.ErrNoSpace})
		if file, err := CreateSegment(faults, testDir, 3, segment.Header{BaseOffset: 120, PrevCRC: w.crc}, 1<<20); err == nil || file != nil || !fs.IsFull(err) {
			t.Errorf("%s: %v, %v", op, file, err)
		}
		if _, err := m.Stat(w.path(segment.FileName(3))); err == nil {
			t.Errorf("%s: the file was left", op)
		}
		if p := inspect(t, m, Options{}); p.Verdict != Clean || p.Tail != 120 {
			t.Errorf("%s: %s", op, p.Verdict)
		}
	}
}
