package recovery

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"path/filepath"
	"testing"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/segment"
)

const testDir = "shard"

// A testWriter writes a log as the format and shardlog's rules have it, one
// batch at a time, with every step to be left out by the test.
type testWriter struct {
	t       testing.TB
	fs      fs.FS
	spacing int

	id      uint64
	file    fs.File
	pos     int64
	header  segment.Header
	index   *segment.Builder
	offset  uint64
	crc     uint32
	micros  uint64
	durable uint64
	starts  []int64 // positions of the batches of the current segment
	records []string
}

func newWriter(t testing.TB, f fs.FS) *testWriter {
	t.Helper()
	w := &testWriter{t: t, fs: f, spacing: 256, micros: 1_000}
	w.must(fs.MkdirDurable(f, testDir))
	w.begin(0)
	return w
}

func (w *testWriter) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *testWriter) path(name string) string { return filepath.Join(testDir, name) }

// begin creates the segment with that id at the present offset.
func (w *testWriter) begin(id uint64) {
	w.t.Helper()
	w.header = segment.Header{BaseOffset: w.offset, CreatedMicros: w.micros, PrevCRC: w.crc}
	file, err := CreateSegment(w.fs, testDir, id, w.header, 0)
	w.must(err)
	w.id, w.file, w.pos, w.index, w.starts = id, file, segment.HeaderSize, segment.NewBuilder(w.spacing), nil
}

// encode is the next batch, of records that each say their offset and are size
// bytes long.
func (w *testWriter) encode(count, size int) ([]byte, segment.Batch) {
	block := binary.BigEndian.AppendUint32(nil, uint32(count))
	for i := range count {
		record := fmt.Sprintf("%-*d", size, w.offset+uint64(i))
		block = append(binary.BigEndian.AppendUint32(block, uint32(len(record))), record...)
	}
	w.micros++
	b := segment.Batch{
		Kind: segment.Records, Count: uint32(count), BaseOffset: w.offset, TimestampMicros: w.micros,
		DurableThrough: w.durable, PrevCRC: w.crc, Block: block,
	}
	return b.Append(nil), b
}

// append writes the next batch, without a flush.
func (w *testWriter) append(count, size int) {
	w.t.Helper()
	data, b := w.encode(count, size)
	_, err := w.file.WriteAt(data, w.pos)
	w.must(err)
	w.index.Add(w.offset, uint64(w.pos), len(data))
	w.starts = append(w.starts, w.pos)
	for _, record := range b.All() {
		w.records = append(w.records, string(record))
	}
	w.pos += int64(len(data))
	w.offset, w.crc = b.End(), b.CRC
}

// flush makes the segment durable, and the mark say so.
func (w *testWriter) flush() {
	w.t.Helper()
	w.must(w.file.Sync())
	w.durable = w.offset
	w.mark(segment.Mark{Segment: w.id, SyncedBytes: uint64(w.pos)})
}

// mark writes durable.mark and makes it durable.
func (w *testWriter) mark(m segment.Mark) {
	w.t.Helper()
	w.must(WriteMarkFile(w.fs, testDir, m))
}

// writeIndex writes the index of the current segment.
func (w *testWriter) writeIndex() {
	w.t.Helper()
	w.must(fs.WriteDurable(w.fs, w.path(segment.IndexName(w.id)), segment.AppendIndex(nil, w.header.BaseOffset, w.index.Entries())))
}

// roll seals the segment and begins the next.
func (w *testWriter) roll() {
	w.t.Helper()
	w.flush()
	w.writeIndex()
	w.must(w.file.Close())
	w.begin(w.id + 1)
	w.mark(segment.Mark{Segment: w.id, SyncedBytes: uint64(w.pos)})
}

// close leaves the log as a clean shutdown does.
func (w *testWriter) close() {
	w.t.Helper()
	w.flush()
	w.writeIndex()
	w.must(w.file.Close())
}

// threeSegments is a log of three segments of ten batches of four records, shut
// down cleanly.
func threeSegments(t testing.TB, f fs.FS) *testWriter {
	w := newWriter(t, f)
	for i := range 3 {
		for range 10 {
			w.append(4, 20)
			w.flush()
		}
		if i < 2 {
			w.roll()
		}
	}
	w.close()
	return w
}

// inspect plans, and checks what holds of every plan.
func inspect(t testing.TB, f fs.FS, o Options) *Plan {
	t.Helper()
	if o.IndexSpacing == 0 {
		o.IndexSpacing = 256
	}
	p, err := Inspect(f, testDir, o)
	if err != nil {
		t.Fatalf("inspect: %v", err)
	}
	checkPlan(t, p)
	return p
}

func checkPlan(t testing.TB, p *Plan) {
	t.Helper()
	if (p.Verdict == Refuse) != (p.Err != nil) {
		t.Fatalf("verdict %s with error %v", p.Verdict, p.Err)
	}
	if p.Verdict == Refuse && len(p.Steps) > 0 {
		t.Fatalf("refused with steps %v", p.Steps)
	}
	for i, s := range p.Segments {
		if s.End < s.Base || i > 0 && (s.Base != p.Segments[i-1].End || s.ID <= p.Segments[i-1].ID) {
			t.Fatalf("segments do not meet: %+v", p.Segments)
		}
	}
}

// recover inspects, applies, and checks that a second recovery finds a clean
// log with nothing to do.
func recovered(t testing.TB, f fs.FS, o Options) *Plan {
	t.Helper()
	p := inspect(t, f, o)
	if p.Verdict == Refuse {
		t.Fatalf("refused: %v", p.Err)
	}
	if err := Apply(f, testDir, p); err != nil {
		t.Fatalf("apply: %v", err)
	}
	again := inspect(t, f, o)
	if p.Verdict == Fresh {
		if again.Verdict != Fresh || len(again.Steps) > 0 {
			t.Fatalf("after recovery: %s, %v, %v", again.Verdict, again.Err, again.Steps)
		}
		return p
	}
	if again.Verdict != Clean || len(again.Steps) > 0 || again.Tail != p.Tail || again.Base != p.Base || again.LastCRC != p.LastCRC {
		t.Fatalf("after recovery: %s, %v, steps %v, [%d, %d) instead of [%d, %d)", again.Verdict, again.Err, again.Steps, again.Base, again.Tail, p.Base, p.Tail)
	}
	return p
}

// contents reads every record of a recovered log, byte by byte as it is on
// disk.
func contents(t testing.TB, f fs.FS, p *Plan) []string {
	t.Helper()
	var out []string
	for _, s := range p.Segments {
		data, err := fs.ReadFile(f, filepath.Join(testDir, segment.FileName(s.ID)), 1<<30)
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(data)) != s.Size {
			t.Fatalf("segment %d has %d bytes, planned were %d", s.ID, len(data), s.Size)
		}
		data = data[segment.HeaderSize:]
		for len(data) > 0 {
			var b segment.Batch
			n, err := segment.ParseBatch(data, &b)
			if err != nil {
				t.Fatal(err)
			}
			for _, record := range b.All() {
				out = append(out, string(record))
			}
			data = data[n:]
		}
	}
	return out
}

// refused checks that a directory is refused, with a kind, a file and a
// position, and that Apply touches nothing.
func refused(t testing.TB, f *fstest.Mem, o Options, kind segment.CorruptionKind, path string, position int64) *segment.CorruptionError {
	t.Helper()
	p := inspect(t, f, o)
	if p.Verdict != Refuse {
		t.Fatalf("%s with steps %v, want a refusal", p.Verdict, p.Steps)
	}
	damage := corruption(p.Err)
	if damage.Kind != kind || damage.Path != path || damage.Position != position {
		t.Fatalf("refused with %q (kind %s, path %s, position %d), want %s, %s, %d", p.Err, damage.Kind, damage.Path, damage.Position, kind, path, position)
	}
	counted := fstest.NewFaults(f)
	if err := Apply(counted, testDir, p); err != p.Err {
		t.Fatalf("apply of a refusal: %v", err)
	}
	if n := counted.Count(fstest.OpOpenWrite) + counted.Count(fstest.OpCreate) + counted.Count(fstest.OpRemove); n > 0 {
		t.Fatalf("apply of a refusal touched %d files", n)
	}
	return damage
}

// withHeaderSum makes the checksum of a batch's header right again.
func withHeaderSum(data []byte) []byte {
	sum := crc32.Checksum(data[8:segment.BatchHeaderSize], crc32.MakeTable(crc32.Castagnoli))
	binary.BigEndian.PutUint32(data[4:], sum)
	return data
}
