package shardlog

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/segment"
)

func TestAppendReadReopen(t *testing.T) {
	for _, mode := range []FsyncMode{None, Periodic, OnCommit} {
		t.Run(mode.String(), func(t *testing.T) {
			f := newFixture(t, Options{Fsync: mode})
			a := f.append(entry("a", "b"))
			if a.First != 0 || a.Count != 2 || a.Where.Position != segment.HeaderSize {
				t.Fatalf("first batch: %+v", a)
			}
			b := f.append(&Entry{Count: 1, Block: block("c"), Publisher: "me", Extra: []byte("x"), Kind: segment.Commit, Generation: 7})
			if b.First != 2 || b.Where.Position != a.Where.Position+int64(a.Where.Length) {
				t.Fatalf("second batch: %+v", b)
			}
			for range 2 {
				if got := f.payloads(); !slices.Equal(got, []string{"a", "b", "c"}) {
					t.Fatalf("read %q", got)
				}
				page, err := f.log.ReadAt(b.Where)
				if err != nil {
					t.Fatal(err)
				}
				batch := page.Batches[0]
				if string(batch.Publisher) != "me" || string(batch.Extra) != "x" || batch.Kind != segment.Commit || batch.Generation != 7 || batch.BaseOffset != 2 {
					t.Fatalf("read %+v", batch)
				}
				page.Release()
				f.reopen()
			}
			if f.log.Base() != 0 || f.log.Tail() != 3 || f.log.Claimed() != 3 || f.log.Durable() != 3 {
				t.Fatalf("base %d tail %d claimed %d durable %d", f.log.Base(), f.log.Tail(), f.log.Claimed(), f.log.Durable())
			}
			f.append(entry("d"))
			if got := f.payloads(); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
				t.Fatalf("read %q", got)
			}
		})
	}
}

func TestRollAndReadAcrossSegments(t *testing.T) {
	for _, mode := range []FsyncMode{None, OnCommit} {
		f := newFixture(t, Options{Fsync: mode, SegmentBytes: 2000})
		f.fill(60, 3, 50)
		if n := len(f.log.Segments()); n < 6 {
			t.Fatalf("%d segments", n)
		}
		f.checkNumbered(0, 180)
		f.reopen()
		f.checkNumbered(0, 180)
		for from := range uint64(180) {
			got, err := readAll(f.log, from, 1)
			if err != nil || len(got) != int(180-from) || got[0].offset != from {
				t.Fatalf("from %d: %d records, %v", from, len(got), err)
			}
		}
		infos := f.log.Segments()
		for i, s := range infos[1:] {
			if s.Base != infos[i].End || s.ID <= infos[i].ID || s.Bytes > 2000 {
				t.Fatalf("segments %+v", infos)
			}
		}
	}
}

func TestBatchLargerThanASegmentGetsOneOfItsOwn(t *testing.T) {
	f := newFixture(t, Options{Fsync: OnCommit, SegmentBytes: 500})
	f.fill(1, 1, 10)
	big := f.append(numbered(1, 1, 3000))
	f.append(numbered(2, 1, 10))
	if got := len(f.log.Segments()); got != 3 || big.Where.Position != segment.HeaderSize {
		t.Fatalf("%d segments, the large batch at %+v", got, big.Where)
	}
	f.reopen()
	f.checkNumbered(0, 3)
}

func TestBaseOffsetOfAFreshLog(t *testing.T) {
	f := newFixture(t, Options{BaseOffset: 100})
	f.append(numbered(100, 2, 5))
	f.opts.BaseOffset = 7 // a log that is there keeps its own
	f.reopen()
	f.checkNumbered(100, 102)
	var trimmed *TrimmedError
	if _, err := f.log.Read(99, 1, 1); !errors.As(err, &trimmed) || trimmed.Oldest != 100 || trimmed.Requested != 99 {
		t.Fatal(err)
	}
	page, err := f.log.Read(102, 1, 1)
	if err != nil || len(page.Batches) != 0 || page.Next != 102 {
		t.Fatalf("%+v, %v", page, err)
	}
}

func TestLocationsAreExact(t *testing.T) {
	f := newFixture(t, Options{Fsync: OnCommit, SegmentBytes: 700})
	g := newLedger()
	for i := range 40 {
		if _, err := f.log.Append(numbered(uint64(i), 1, 30), g); err != nil {
			t.Fatal(err)
		}
	}
	for i, o := range g.wait(t, 40) {
		if o.err != nil || o.app.First != uint64(i) {
			t.Fatalf("completion %d: %+v", i, o)
		}
		page, err := f.log.ReadAt(o.app.Where)
		if err != nil {
			t.Fatal(err)
		}
		b := &page.Batches[0]
		if b.BaseOffset != uint64(i) || b.TimestampMicros != o.app.TimestampMicros || page.Where[0] != o.app.Where {
			t.Fatalf("at %+v: %+v", o.app.Where, b)
		}
		page.Release()
	}
}

// TestOnTheRealFileSystem: the same, where files are files.
func TestOnTheRealFileSystem(t *testing.T) {
	for _, mode := range []FsyncMode{None, Periodic, OnCommit} {
		dir := t.TempDir() + "/a/b/log"
		open := func() *Log {
			l, err := Open(fs.OS(), dir, Options{Name: "t", Fsync: mode, FsyncInterval: time.Second, Clock: newTestClock(), SegmentBytes: 2000, Producers: true})
			if err != nil {
				t.Fatal(err)
			}
			return l
		}
		l := open()
		for i := range uint64(50) {
			if _, err := l.AppendWait(numbered(i, 1, 100)); err != nil {
				t.Fatal(err)
			}
		}
		for _, do := range []func() error{
			func() error { return l.TrimBefore(20) },
			func() error { return l.Truncate(40) },
			func() error { return l.RecordGeneration(1, 30) },
			func() error { return l.AcceptGeneration(2, "leader") },
			l.Flush, l.Close,
		} {
			if err := do(); err != nil {
				t.Fatal(err)
			}
		}
		l = open()
		got, err := readAll(l, l.Base(), 1<<20)
		if err != nil || l.Tail() != 40 || l.Base() == 0 || uint64(len(got)) != 40-l.Base() {
			t.Fatalf("[%d, %d), %d records, %v", l.Base(), l.Tail(), len(got), err)
		}
		if err := errors.Join(l.ResetTo(7), l.Close()); err != nil {
			t.Fatal(err)
		}
		l = open()
		if l.Base() != 7 || l.Tail() != 7 {
			t.Fatalf("[%d, %d)", l.Base(), l.Tail())
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestConditionalAppend(t *testing.T) {
	f := newFixture(t, Options{})
	var mismatch *OffsetMismatchError
	if _, err := f.log.AppendAt(1, entry("x"), nil); !errors.As(err, &mismatch) || mismatch.Tail != 0 {
		t.Fatal(err)
	}
	if a, err := f.log.AppendAt(0, entry("x"), nil); err != nil || a.First != 0 {
		t.Fatal(a, err)
	}
	if _, err := f.log.AppendAt(0, entry("y"), nil); !errors.As(err, &mismatch) || mismatch.Tail != 1 {
		t.Fatal(err)
	}
}

func TestInvalidEntries(t *testing.T) {
	f := newFixture(t, Options{})
	for name, e := range map[string]*Entry{
		"no records":        {Block: block()},
		"kind":              {Kind: 9, Count: 1, Block: block("x")},
		"two commits":       {Kind: segment.Commit, Count: 2, Block: block("x", "y")},
		"publisher":         {Count: 1, Block: block("x"), Publisher: string(make([]byte, 256))},
		"too large":         {Count: 1, Block: make([]byte, segment.MaxBody+1)},
		"short block":       {Count: 2, Block: block("")},
		"producer not kept": {Count: 1, Block: block("x"), HasProducer: true},
	} {
		if _, err := f.log.Append(e, nil); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if f.log.Claimed() != 0 {
		t.Fatal("offsets were claimed")
	}
}

func TestGenerationStartsAreSteppedOver(t *testing.T) {
	f := newFixture(t, Options{})
	start := func(g uint64) *Entry {
		return &Entry{Kind: segment.GenerationStart, Count: 1, Generation: g, Block: segment.AppendGenerationBlock(nil, g)}
	}
	f.append(start(1))
	f.append(entry("a"))
	f.append(start(2))
	f.append(start(3))
	f.append(entry("b"))
	f.append(start(4))
	if got := f.payloads(); !slices.Equal(got, []string{"a", "b"}) {
		t.Fatalf("read %q", got)
	}
	page, err := f.log.Read(1, 1, 1)
	if err != nil || len(page.Batches) != 1 || page.Next < 2 {
		t.Fatalf("%+v %v", page, err)
	}
	page, err = f.log.Read(2, 1, 1)
	if err != nil || len(page.Batches) != 1 || page.Batches[0].BaseOffset != 4 {
		t.Fatalf("%+v %v", page, err)
	}
	page, err = f.log.Read(5, 1, 1)
	if err != nil || len(page.Batches) != 0 || page.Next != 6 {
		t.Fatalf("%+v %v", page, err)
	}
	page, err = f.log.ReadAll(0, 1<<20, 0)
	if err != nil || len(page.Batches) != 6 {
		t.Fatalf("%d batches, %v", len(page.Batches), err)
	}
}

func TestRecordTimesNeverDecrease(t *testing.T) {
	f := newFixture(t, Options{})
	first := f.append(entry("a")).TimestampMicros
	f.clock.step(-3600e9)
	if got := f.append(entry("b")).TimestampMicros; got != first {
		t.Fatalf("%d after %d", got, first)
	}
	f.reopen()
	if got := f.append(entry("c")).TimestampMicros; got != first {
		t.Fatalf("%d after %d, reopened", got, first)
	}
	f.clock.step(3601e9)
	if got := f.append(entry("d")).TimestampMicros; got != first+1e6 {
		t.Fatalf("%d after %d", got, first)
	}
}

func TestPageBudgets(t *testing.T) {
	f := newFixture(t, Options{SegmentBytes: 4000, MaxReadRecords: 50})
	f.fill(100, 2, 100)
	one := int(sizeOf(numbered(0, 2, 100)))
	for _, c := range []struct {
		bytes, records, want int
	}{
		{1, 0, 1}, {one, 0, 1}, {2*one - 1, 0, 1}, {2 * one, 0, 2}, {10 * one, 0, 10},
		{1 << 20, 1, 1}, {1 << 20, 2, 1}, {1 << 20, 5, 2}, {1 << 20, 0, 25}, {1 << 20, 1000, 25},
	} {
		page, err := f.log.Read(1, c.bytes, c.records)
		if err != nil || len(page.Batches) != c.want || page.Batches[0].BaseOffset != 0 || page.Next != uint64(2*c.want) {
			t.Errorf("%+v: %d batches, next %d, %v", c, len(page.Batches), page.Next, err)
		}
		page.Release()
	}
}

func TestClosedLogRefuses(t *testing.T) {
	f := newFixture(t, Options{})
	a := f.append(entry("x"))
	if err := f.log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.log.Close(); err != nil {
		t.Fatal("closing again:", err)
	}
	calls := map[string]func() error{
		"append":     func() error { _, err := f.log.Append(entry("x"), nil); return err },
		"wait":       func() error { _, err := f.log.AppendWait(entry("x")); return err },
		"barrier":    func() error { g := newLedger(); f.log.Barrier(g); return g.wait(t, 1)[0].err },
		"read":       func() error { _, err := f.log.Read(0, 1, 1); return err },
		"read at":    func() error { _, err := f.log.ReadAt(a.Where); return err },
		"time":       func() error { _, _, err := f.log.OffsetForTime(0); return err },
		"flush":      f.log.Flush,
		"roll":       f.log.RollNow,
		"trim":       func() error { return f.log.TrimBefore(1) },
		"truncate":   func() error { return f.log.Truncate(0) },
		"reset":      func() error { return f.log.ResetTo(0) },
		"retention":  func() error { return f.log.SetRetention(Retention{}) },
		"enforce":    f.log.EnforceRetention,
		"generation": func() error { return f.log.RecordGeneration(1, 1) },
		"accept":     func() error { return f.log.AcceptGeneration(1, "a") },
		"commit":     func() error { return f.log.AdvanceCommitOffset(1) },
		"hold":       func() error { return f.log.HoldRetentionAtCommit(true) },
		"err":        f.log.Err,
	}
	for name, call := range calls {
		var closed *ClosedError
		if err := call(); !errors.As(err, &closed) || !errors.Is(err, ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := f.log.metrics.Segments.Load(); n != 0 {
		t.Errorf("%d segments counted after the close", n)
	}
	if got := fmt.Sprint(f.log.metrics.Bytes.Load(), f.log.metrics.UnsyncedBytes.Load(), f.log.metrics.OpenSealedSegments.Load()); got != "0 0 0" {
		t.Errorf("gauges after the close: %s", got)
	}
}
