package shardlog

import (
	"errors"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/segment"
)

func TestDescriptorsAreBounded(t *testing.T) {
	f := newFixture(t, Options{SegmentBytes: 500, Descriptors: NewDescriptors(3)})
	f.fill(40, 1, 100)
	if len(f.log.Segments()) < 12 {
		t.Fatal("too few segments")
	}
	open := f.log.metrics.OpenSealedSegments.Load
	for range 3 {
		f.checkNumbered(0, 40)
		if open() != 3 {
			t.Fatalf("%d sealed segments open", open())
		}
	}
	opens := f.faults.Count(fstest.OpOpen)
	for range 10 {
		if _, err := f.log.Read(0, 1, 1); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.faults.Count(fstest.OpOpen) - opens; n != 2 { // the segment and its index, once
		t.Fatalf("%d files opened for one segment", n)
	}
}

// TestReadsBeyondTheDescriptorBound: pinned segments are not closed under their
// readers.
func TestReadsBeyondTheDescriptorBound(t *testing.T) {
	f := newFixture(t, Options{SegmentBytes: 500, Descriptors: NewDescriptors(1)})
	f.fill(60, 1, 100)
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(2, uint64(w)))
			for range 200 {
				from := uint64(rng.IntN(60))
				page, err := f.log.Read(from, 600, 0)
				if err != nil {
					t.Error(err)
					return
				}
				if page.Batches[0].BaseOffset != from {
					t.Errorf("read %d from %d", page.Batches[0].BaseOffset, from)
				}
				page.Release()
			}
		})
	}
	wg.Wait()
	if n := f.log.metrics.OpenSealedSegments.Load(); n != 1 {
		t.Fatalf("%d sealed segments open afterwards", n)
	}
}

// TestLargeBatchesAreReadAlone: a batch longer than the read-ahead, among small
// ones.
func TestLargeBatchesAreReadAlone(t *testing.T) {
	f := newFixture(t, Options{})
	sizes := []int{10, 3 << 20, 10, minReadAhead, 10, maxReadAhead, minReadAhead - 80, 10}
	for i, n := range sizes {
		f.append(numbered(uint64(i), 1, n))
	}
	for range 2 {
		for _, budget := range []int{1, 1 << 10, 64 << 10, 1 << 20, 16 << 20} {
			got, err := readAll(f.log, 0, budget)
			if err != nil || len(got) != len(sizes) {
				t.Fatalf("budget %d: %d records, %v", budget, len(got), err)
			}
			for i, r := range got {
				if len(r.payload) != sizes[i] {
					t.Fatalf("record %d has %d bytes, want %d", i, len(r.payload), sizes[i])
				}
			}
		}
		f.reopen()
	}
}

// TestDamageIsReportedWithItsPlace: a flipped bit in what is read is a typed
// error that names file, segment and position, and nothing before it is lost.
func TestDamageIsReportedWithItsPlace(t *testing.T) {
	f := newFixture(t, Options{Fsync: OnCommit, SegmentBytes: 1000, IndexSpacing: 300})
	f.fill(30, 1, 100)
	size := uint64(sizeOf(numbered(0, 1, 100)))
	rng := rand.New(rand.NewPCG(3, 3))
	for range 300 {
		disk := f.mem.Clone()
		infos := f.log.Segments()
		s := infos[rng.IntN(len(infos))]
		at := segment.HeaderSize + rng.Int64N(s.Bytes-segment.HeaderSize)
		path := filepath.Join(testDir, segment.FileName(s.ID))
		g := *f
		g.on(disk)
		if err := disk.FlipBit(path, at*8+rng.Int64N(8)); err != nil {
			t.Fatal(err)
		}
		got, err := readAll(g.log, 0, 1<<20)
		var corrupt *segment.CorruptionError
		if !errors.As(err, &corrupt) || corrupt.Segment != s.ID || corrupt.Path != path || corrupt.Position > at {
			t.Fatalf("flip at %d of segment %d: %v", at, s.ID, err)
		}
		if want := s.Base + uint64(at-segment.HeaderSize)/size; uint64(len(got)) != want {
			t.Fatalf("%d records before the damage at offset %d", len(got), want)
		}
		_ = g.log.Close()
	}
}

// TestMisplacedBatchBreaksTheChain: a batch that is whole and has the right
// offset, but is not the one that was written there.
func TestMisplacedBatchBreaksTheChain(t *testing.T) {
	f := newFixture(t, Options{Fsync: OnCommit})
	f.append(entry("first"))
	where := f.append(entry("old")).Where
	page, err := f.log.ReadAt(where)
	if err != nil {
		t.Fatal(err)
	}
	old := page.Batches[0].Append(nil)
	if err := f.log.Truncate(1); err != nil {
		t.Fatal(err)
	}
	f.append(entry("new"))
	next := f.append(entry("next")).Where
	if err := f.mem.Overwrite(filepath.Join(testDir, segment.FileName(0)), where.Position, old); err != nil {
		t.Fatal(err)
	}
	_, err = readAll(f.log, 0, 1<<20)
	var corrupt *segment.CorruptionError
	if !errors.As(err, &corrupt) || corrupt.Kind != segment.Chain || corrupt.Position != next.Position {
		t.Fatal(err)
	}
}

// TestWrongIndexIsRebuilt: an entry that points into the middle of a batch costs
// a rebuild and not the segment (storage 4).
func TestWrongIndexIsRebuilt(t *testing.T) {
	for name, spoil := range map[string]func(e []segment.IndexEntry) []segment.IndexEntry{
		"position": func(e []segment.IndexEntry) []segment.IndexEntry { e[2].Position += 7; return e },
		"offset":   func(e []segment.IndexEntry) []segment.IndexEntry { e[2].Offset--; return e },
		"past the end": func(e []segment.IndexEntry) []segment.IndexEntry {
			return append(e, segment.IndexEntry{Offset: 1 << 40, Position: 1 << 40})
		},
		"few": func(e []segment.IndexEntry) []segment.IndexEntry { return e[:1] },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, Options{Fsync: OnCommit, SegmentBytes: 4000, IndexSpacing: 300})
			f.fill(60, 1, 100)
			f.checkNumbered(0, 60)
			if err := f.log.Close(); err != nil {
				t.Fatal(err)
			}
			f.open()
			path := filepath.Join(testDir, segment.IndexName(0))
			data, err := f.mem.Clone().Open(path)
			if err != nil {
				t.Fatal(err)
			}
			size, _ := data.Size()
			raw := make([]byte, size)
			if _, err := data.ReadAt(raw, 0); err != nil && int64(len(raw)) != size {
				t.Fatal(err)
			}
			entries, err := segment.ParseIndex(raw, 0)
			if err != nil || len(entries) < 4 {
				t.Fatalf("%d entries, %v", len(entries), err)
			}
			if err := overwrite(f.mem, path, segment.AppendIndex(nil, 0, spoil(entries))); err != nil {
				t.Fatal(err)
			}
			for from := range uint64(60) {
				got, err := readAll(f.log, from, 1)
				if err != nil || len(got) != int(60-from) {
					t.Fatalf("from %d: %d records, %v", from, len(got), err)
				}
			}
			if name != "few" && f.log.metrics.IndexRebuilds.Load() == 0 {
				t.Error("not rebuilt")
			}
		})
	}
}

func TestReadersDuringTrim(t *testing.T) {
	f := newFixture(t, Options{SegmentBytes: 500, Descriptors: NewDescriptors(2)})
	f.fill(200, 1, 100)
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(4, uint64(w)))
			for range 300 {
				from := uint64(rng.IntN(200))
				page, err := f.log.Read(from, 2000, 0)
				var trimmed *TrimmedError
				if errors.As(err, &trimmed) && trimmed.Oldest > from {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if page.Batches[0].BaseOffset != from {
					t.Errorf("read %d from %d", page.Batches[0].BaseOffset, from)
				}
				page.Release()
			}
		})
	}
	for before := uint64(0); before < 190; before += 5 {
		if err := f.log.TrimBefore(before); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	f.checkNumbered(f.log.Base(), 200)
}

// TestReadersDuringTruncation: what a reader gets is what the log held at some
// moment, never a mixture that no one appended.
func TestReadersDuringTruncation(t *testing.T) {
	f := newFixture(t, Options{SegmentBytes: 700})
	f.fill(50, 1, 100)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(5, uint64(w)))
			for {
				select {
				case <-stop:
					return
				default:
				}
				got, err := readAllOnce(f.log, uint64(rng.IntN(50)))
				if err != nil {
					t.Error(err)
					return
				}
				for _, r := range got {
					if want := numberedPrefix(r.offset); r.payload[:len(want)] != want {
						t.Errorf("offset %d holds %.12q", r.offset, r.payload)
					}
				}
			}
		})
	}
	rng := rand.New(rand.NewPCG(6, 6))
	for range 60 {
		if err := f.log.Truncate(uint64(rng.IntN(50))); err != nil {
			t.Error(err)
		}
		for f.log.Tail() < 50 {
			n := 1 + rng.IntN(300) // other sizes than before: other positions
			if _, err := f.log.AppendWait(numbered(f.log.Tail(), 1, n)); err != nil {
				t.Error(err)
			}
		}
	}
	close(stop)
	wg.Wait()
	f.checkNumbered(0, 50)
}

func readAllOnce(l *Log, from uint64) ([]record, error) {
	page, err := l.Read(from, 3000, 0)
	if err != nil {
		return nil, err
	}
	defer page.Release()
	var got []record
	for i := range page.Batches {
		for offset, payload := range page.Batches[i].All() {
			got = append(got, record{offset: offset, payload: string(payload)})
		}
	}
	return got, nil
}

func TestOffsetForTime(t *testing.T) {
	for _, spacing := range []int{1, 400, 1 << 20} {
		f := newFixture(t, Options{SegmentBytes: 2000, IndexSpacing: spacing})
		start := uint64(f.clock.Now().UnixMicro())
		var times []uint64
		for i := range 60 {
			if i%3 != 0 { // some share a time
				f.clock.step(time.Second)
			}
			times = append(times, f.append(numbered(uint64(i), 1, 100)).TimestampMicros)
		}
		for range 2 {
			for _, at := range append([]uint64{0, start, times[59] + 1}, times...) {
				for _, at := range []uint64{at, at + 1, max(at, 1) - 1} {
					want := 0
					for want < 60 && times[want] < at {
						want++
					}
					got, ok, err := f.log.OffsetForTime(at)
					if err != nil || ok != (want < 60) || ok && got != uint64(want) {
						t.Fatalf("spacing %d, time %d: offset %d %v %v, want %d", spacing, at, got, ok, err, want)
					}
				}
			}
			f.reopen()
		}
		if err := f.log.TrimBefore(30); err != nil {
			t.Fatal(err)
		}
		if got, ok, err := f.log.OffsetForTime(0); err != nil || !ok || got != f.log.Base() {
			t.Fatalf("%d %v %v after a trim to %d", got, ok, err, f.log.Base())
		}
	}
}

// TestOffsetForTimeBeforeAnEmptySegment: a segment without records has no time,
// and says nothing about those before it.
func TestOffsetForTimeBeforeAnEmptySegment(t *testing.T) {
	f := newFixture(t, Options{})
	f.fill(1, 1, 10)
	if err := f.log.RollNow(); err != nil {
		t.Fatal(err)
	}
	if got, ok, err := f.log.OffsetForTime(0); got != 0 || !ok || err != nil {
		t.Fatal(got, ok, err)
	}
}

func TestOffsetForTimeOfAnEmptyLog(t *testing.T) {
	f := newFixture(t, Options{})
	if _, ok, err := f.log.OffsetForTime(0); ok || err != nil {
		t.Fatal(ok, err)
	}
}

func TestReadAtOutsideTheLog(t *testing.T) {
	f := newFixture(t, Options{SegmentBytes: 500})
	f.fill(20, 1, 100)
	first := f.log.Segments()[0]
	where := Location{Segment: first.ID, Position: segment.HeaderSize, Length: int(sizeOf(numbered(0, 1, 100)))}
	for _, at := range []Location{
		{Segment: 99, Position: 64, Length: 100},
		{Segment: first.ID, Position: 0, Length: 100},
		{Segment: first.ID, Position: 64, Length: 10},
		{Segment: first.ID, Position: 64, Length: 1 << 30},
		{Segment: first.ID, Position: 1 << 40, Length: 100},
	} {
		if page, err := f.log.ReadAt(at); err == nil {
			t.Errorf("%+v: %+v", at, page.Batches)
		}
	}
	var corrupt *segment.CorruptionError
	if _, err := f.log.ReadAt(Location{where.Segment, where.Position + 1, where.Length}); !errors.As(err, &corrupt) {
		t.Error(err)
	}
	if err := f.log.TrimBefore(10); err != nil {
		t.Fatal(err)
	}
	var trimmed *TrimmedError
	if _, err := f.log.ReadAt(where); !errors.As(err, &trimmed) {
		t.Error(err)
	}
}
