package recovery

import (
	"slices"
	"testing"

	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/segment"
)

// A harm is one way in which a batch that starts at one position and ends at
// another comes to be damaged.
type harm struct {
	name string
	do   func(m *fstest.Mem, path string, start, end, size int64) error
	kind segment.CorruptionKind
}

var harms = []harm{
	{"cut within the header", func(m *fstest.Mem, path string, start, _, _ int64) error {
		return m.Cut(path, start+30)
	}, segment.Truncated},
	{"cut within the body", func(m *fstest.Mem, path string, start, end, _ int64) error {
		return m.Cut(path, end-1)
	}, segment.Truncated},
	{"magic flipped", func(m *fstest.Mem, path string, start, _, _ int64) error {
		return m.FlipBit(path, start*8)
	}, segment.BatchMagic},
	{"length flipped", func(m *fstest.Mem, path string, start, _, _ int64) error {
		return m.FlipBit(path, (start+24)*8+6)
	}, segment.BatchHeaderChecksum},
	{"body flipped", func(m *fstest.Mem, path string, start, _, _ int64) error {
		return m.FlipBit(path, (start+segment.BatchHeaderSize+9)*8)
	}, segment.BatchChecksum},
	{"zeros to the end", func(m *fstest.Mem, path string, start, _, size int64) error {
		return m.Overwrite(path, start, make([]byte, size-start))
	}, segment.BatchMagic},
	{"the batch before, again", func(m *fstest.Mem, path string, start, end, _ int64) error {
		b := make([]byte, end-start)
		f, err := m.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err := f.ReadAt(b, start-(end-start)); err != nil {
			return err
		}
		return m.Overwrite(path, start, b)
	}, segment.OffsetOutOfOrder},
}

// tailLog writes a segment of synced batches, which the mark covers, and of
// loose ones behind them. Every batch is as long as the others.
func tailLog(t *testing.T, synced, loose int) (*fstest.Mem, *testWriter) {
	m := fstest.New(1)
	w := newWriter(t, m)
	for range synced {
		w.append(4, 30)
		w.flush()
	}
	w.writeIndex()
	for range loose {
		w.append(4, 30)
	}
	w.must(w.file.Sync())
	w.must(w.file.Close())
	w.starts = append(w.starts, w.pos)
	return m, w
}

func (h harm) inflict(t *testing.T, m *fstest.Mem, w *testWriter, batch int) {
	t.Helper()
	if err := h.do(m, w.path(segment.FileName(w.id)), w.starts[batch], w.starts[batch+1], w.pos); err != nil {
		t.Fatal(err)
	}
}

// TestDamagePastTheMarkIsATornTail: nothing says that it was durable, so it was
// not answered, and goes.
func TestDamagePastTheMarkIsATornTail(t *testing.T) {
	for _, h := range harms {
		for batch := 5; batch < 8; batch++ {
			m, w := tailLog(t, 5, 3)
			h.inflict(t, m, w, batch)
			p := recovered(t, m, Options{})
			if p.Verdict != Repair || p.Tail != uint64(4*batch) || p.CutBytes <= 0 {
				t.Errorf("%s, batch %d: %s, tail %d, cut %d", h.name, batch, p.Verdict, p.Tail, p.CutBytes)
			}
			if got := contents(t, m, p); !slices.Equal(got, w.records[:4*batch]) {
				t.Errorf("%s, batch %d: %d records", h.name, batch, len(got))
			}
		}
	}
}

// TestDamageBelowTheMarkIsRefused: whatever it looks like, it was durable.
func TestDamageBelowTheMarkIsRefused(t *testing.T) {
	for _, h := range harms {
		for _, batch := range []int{1, 4} {
			m, w := tailLog(t, 5, 3)
			h.inflict(t, m, w, batch)
			refused(t, m, Options{}, h.kind, w.path(segment.FileName(0)), w.starts[batch])
		}
	}
}

// TestEndBelowTheMarkIsRefused: a file that ends cleanly between two batches is
// as short as any other.
func TestEndBelowTheMarkIsRefused(t *testing.T) {
	m, w := tailLog(t, 5, 0)
	path := w.path(segment.FileName(0))
	if err := m.Cut(path, w.starts[4]); err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{}, {RepairChecksumTail: true}} {
		refused(t, m, o, segment.BelowMark, path, w.starts[4])
	}
}

func TestEndPastTheMarkIsClean(t *testing.T) {
	m, w := tailLog(t, 5, 3)
	p := recovered(t, m, Options{})
	if p.Verdict != Clean || p.Tail != 32 || p.Mark.SyncedBytes != uint64(w.starts[5]) {
		t.Fatalf("%+v", p)
	}
	if got := contents(t, m, p); !slices.Equal(got, w.records) {
		t.Fatalf("%d records", len(got))
	}
}

// TestLaterBatchProvesDurability: the mark lags, as after power loss, and a
// batch behind the damage was written when the damaged one was durable.
func TestLaterBatchProvesDurability(t *testing.T) {
	for _, h := range harms {
		if h.name == "zeros to the end" || h.kind == segment.Truncated {
			continue // these leave no later batch
		}
		m, w := tailLog(t, 5, 1)
		w.mark(segment.Mark{Segment: 0, SyncedBytes: uint64(w.starts[1])})
		h.inflict(t, m, w, 3)
		refused(t, m, Options{}, h.kind, w.path(segment.FileName(0)), w.starts[3])

		// The batch flushed last has only one behind it that knows.
		m, w = tailLog(t, 5, 1)
		w.mark(segment.Mark{Segment: 0, SyncedBytes: uint64(w.starts[1])})
		h.inflict(t, m, w, 4)
		refused(t, m, Options{}, h.kind, w.path(segment.FileName(0)), w.starts[4])
	}
}

// TestWithoutMarkOnlyTornWritesGo: nothing that could be anything else than an
// unfinished write is deleted.
func TestWithoutMarkOnlyTornWritesGo(t *testing.T) {
	damageMark := func(m *fstest.Mem) error { return m.FlipBit(testDir+"/"+segment.MarkFile, 100) }
	dropMark := func(m *fstest.Mem) error { return m.Drop(testDir + "/" + segment.MarkFile) }
	for _, lose := range []func(*fstest.Mem) error{damageMark, dropMark} {
		for _, h := range harms {
			m, w := tailLog(t, 3, 3)
			if err := lose(m); err != nil {
				t.Fatal(err)
			}
			h.inflict(t, m, w, 5)
			if h.kind == segment.Truncated || h.name == "zeros to the end" {
				if p := recovered(t, m, Options{}); p.Verdict != Repair || p.Tail != 20 {
					t.Errorf("%s: %s, tail %d", h.name, p.Verdict, p.Tail)
				}
				continue
			}
			refused(t, m, Options{}, h.kind, w.path(segment.FileName(0)), w.starts[5])
		}
	}
}

// TestZerosBehindABatchAreTorn: the device wrote the first sectors of a batch
// and not the others.
func TestZerosBehindABatchAreTorn(t *testing.T) {
	for _, zero := range []struct {
		sectors int64
		torn    bool
	}{{0, false}, {1, true}, {2, true}} {
		m := fstest.New(1)
		w := newWriter(t, m)
		w.append(1, 100)
		start := w.pos
		w.append(1, 3*sectorBytes)
		w.must(w.file.Sync())
		path := w.path(segment.FileName(0))
		if zero.sectors > 0 {
			from := (w.pos-1)/sectorBytes*sectorBytes - (zero.sectors-1)*sectorBytes
			w.must(m.Overwrite(path, from, make([]byte, w.pos-from)))
		} else {
			w.must(m.FlipBit(path, (w.pos-1)*8))
		}
		if !zero.torn {
			refused(t, m, Options{}, segment.BatchChecksum, path, start)
			continue
		}
		if p := recovered(t, m, Options{}); p.Verdict != Repair || p.Tail != 1 {
			t.Errorf("%d sectors: %s, tail %d", zero.sectors, p.Verdict, p.Tail)
		}
	}
}

// TestRepairChecksumTail: an operator may give up a damaged batch that nothing
// follows, and no other.
func TestRepairChecksumTail(t *testing.T) {
	for _, h := range harms {
		if h.kind == segment.Truncated || h.name == "zeros to the end" {
			continue
		}
		m, w := tailLog(t, 5, 0)
		h.inflict(t, m, w, 4)
		if h.kind == segment.BatchMagic || h.kind == segment.BatchHeaderChecksum {
			// Nothing says where the batch ends, so nothing says that it is last.
			refused(t, m, Options{RepairChecksumTail: true}, h.kind, w.path(segment.FileName(0)), w.starts[4])
			continue
		}
		p := recovered(t, m, Options{RepairChecksumTail: true})
		if p.Verdict != Repair || p.Tail != 16 || p.Steps[0].Op != LowerMark || p.Steps[1].Op != Cut {
			t.Errorf("%s: %s, tail %d, steps %v", h.name, p.Verdict, p.Tail, p.Steps)
		}

		m, w = tailLog(t, 5, 0)
		h.inflict(t, m, w, 3)
		refused(t, m, Options{RepairChecksumTail: true}, h.kind, w.path(segment.FileName(0)), w.starts[3])
	}
}

// TestForeignBatchIsRefused: its checksums are right, so it was written whole,
// by another version; it is not cut off, wherever it is.
func TestForeignBatchIsRefused(t *testing.T) {
	m, w := tailLog(t, 2, 0)
	data, _ := w.encode(1, 10)
	data[16] = 9 // a kind there is not
	data = withHeaderSum(data)
	w.must(m.Overwrite(w.path(segment.FileName(0)), w.pos, data))
	for _, o := range []Options{{}, {RepairChecksumTail: true}} {
		refused(t, m, o, segment.BatchKind, w.path(segment.FileName(0)), w.pos+16)
	}
}

// TestPayloadIsNoProof: the payload of a batch that was never finished holds
// what looks like a later batch. Its length says that it is payload.
func TestPayloadIsNoProof(t *testing.T) {
	m := fstest.New(1)
	w := newWriter(t, m)
	w.append(2, 20)
	w.flush()
	inner := segment.Batch{Count: 1, BaseOffset: 50, DurableThrough: 50, Block: []byte{0, 0, 0, 1, 0, 0, 0, 0}}
	payload := inner.Append(nil)
	block := append([]byte{0, 0, 0, 1, 0, 0, 0, byte(len(payload))}, payload...)
	b := segment.Batch{Count: 1, BaseOffset: w.offset, PrevCRC: w.crc, DurableThrough: w.offset, Block: block}
	data := b.Append(nil)
	data[len(data)-1] ^= 1
	w.must(m.Overwrite(w.path(segment.FileName(0)), w.pos, data))
	if p := recovered(t, m, Options{}); p.Verdict != Repair || p.Tail != 2 {
		t.Fatalf("%s, tail %d", p.Verdict, p.Tail)
	}
}
