package shardlog

import (
	"errors"
	"testing"
	"time"

	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/segment"
)

func TestTrimKeepsWhatIsNeeded(t *testing.T) {
	f := newFixture(t, Options{SegmentBytes: 500})
	f.fill(20, 1, 100) // two a segment
	for _, c := range []struct{ before, base uint64 }{{0, 0}, {1, 0}, {2, 2}, {5, 4}, {4, 4}, {100, 18}} {
		if err := f.log.TrimBefore(c.before); err != nil {
			t.Fatal(err)
		}
		if f.log.Base() != c.base {
			t.Fatalf("base %d after a trim before %d, want %d", f.log.Base(), c.before, c.base)
		}
		f.checkNumbered(c.base, 20)
		var trimmed *TrimmedError
		if _, err := f.log.Read(c.base-1, 1, 1); c.base > 0 && (!errors.As(err, &trimmed) || trimmed.Oldest != c.base) {
			t.Fatal(err)
		}
	}
	f.reopen()
	f.checkNumbered(18, 20)
}

// TestTrimSyncsTheDirectoryPerSegment: a power loss at any moment of a trim
// leaves a longer log and never a gap.
func TestTrimSyncsTheDirectoryPerSegment(t *testing.T) {
	f := newFixture(t, Options{Fsync: OnCommit, SegmentBytes: 500})
	f.fill(20, 1, 100)
	before := f.faults.Count(fstest.OpSyncDir)
	disk := f.mem.Clone()
	if err := f.log.TrimBefore(10); err != nil {
		t.Fatal(err)
	}
	if n := f.faults.Count(fstest.OpSyncDir) - before; n != 5 {
		t.Fatalf("%d directory syncs for 5 segments", n)
	}
	for n := 1; ; n++ {
		f.mem = disk.Clone()
		f.on(f.mem)
		rule := f.faults.FailNth(n, true, fstest.ErrIO)
		err := f.log.TrimBefore(10)
		if rule.Hits() == 0 {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		for seed := range uint64(8) {
			g := *f
			g.on(f.mem.Clone().Crash(seed))
			if b := g.log.Base(); b > 10 || b%2 != 0 {
				t.Fatalf("base %d", b)
			}
			g.checkNumbered(g.log.Base(), 20)
			_ = g.log.Close()
		}
	}
}

func TestFailedUnlinkIsRetried(t *testing.T) {
	f := newFixture(t, Options{SegmentBytes: 500})
	f.fill(20, 1, 100)
	f.faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpRemove}, Path: segment.FileName(2), Times: 1})
	var io *IOError
	if err := f.log.TrimBefore(12); !errors.As(err, &io) || f.log.metrics.RetentionFailures.Load() != 1 {
		t.Fatal(err)
	}
	f.checkNumbered(4, 20)
	if err := f.log.TrimBefore(12); err != nil {
		t.Fatal(err)
	}
	f.checkNumbered(12, 20)
}

// TestRemovalThatFailedAndHappened: the file is gone though its removal failed,
// and the look for it failed too. Readers below the new base are told so.
func TestRemovalThatFailedAndHappened(t *testing.T) {
	f := newFixture(t, Options{SegmentBytes: 500, Descriptors: NewDescriptors(1)})
	f.fill(20, 1, 100)
	page, err := f.log.Read(14, 1<<20, 10) // no older file is open any more
	if err != nil {
		t.Fatal(err)
	}
	page.Release()
	f.faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpRemove}, Path: segment.FileName(2), Times: 1, After: true})
	f.faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpStat}, Path: segment.FileName(2), Times: 1})
	var io *IOError
	if err := f.log.TrimBefore(12); !errors.As(err, &io) {
		t.Fatal(err)
	}
	var trimmed *TrimmedError
	if _, err := f.log.Read(4, 1000, 10); !errors.As(err, &trimmed) || trimmed.Oldest <= 4 {
		t.Fatalf("read of a removed segment: %v", err)
	}
	f.checkNumbered(f.log.Base(), 20)
	if err := f.log.TrimBefore(12); err != nil {
		t.Fatal(err)
	}
	f.checkNumbered(12, 20)
}

func TestRetentionBySize(t *testing.T) {
	f := newFixture(t, Options{SegmentBytes: 1000, Retention: Retention{MaxBytes: 3000, Interval: time.Minute}})
	f.fill(50, 1, 100)
	f.checkNumbered(0, 50) // never on the append path
	f.clock.advance(time.Minute)
	if b := f.log.Bytes(); b > 3000 || b < 2000 {
		t.Fatalf("%d bytes kept", b)
	}
	f.checkNumbered(f.log.Base(), 50)
	base := f.log.Base()
	f.clock.advance(time.Minute)
	if f.log.Base() != base || f.log.metrics.RetentionSegmentsDeleted.Load() == 0 || f.clock.armed() != 1 {
		t.Fatal("not settled")
	}
}

// TestRetentionByAge uses record times, and steps the clock both ways.
func TestRetentionByAge(t *testing.T) {
	f := newFixture(t, Options{SegmentBytes: 500, Retention: Retention{MaxAge: time.Hour}})
	for range 10 { // a segment of two records each ten minutes
		f.fill(2, 1, 100)
		f.clock.step(10 * time.Minute)
	}
	// Now is 100 min; the segments' newest are 100, 90, ..., 10 min old.
	f.clock.step(-3 * time.Hour)
	if err := f.log.EnforceRetention(); err != nil || f.log.Base() != 0 {
		t.Fatalf("base %d after a step back: %v", f.log.Base(), err)
	}
	f.clock.step(3 * time.Hour)
	if err := f.log.EnforceRetention(); err != nil {
		t.Fatal(err)
	}
	if f.log.Base() != 8 { // 100, 90, 80, 70 min are too old; 60 is not
		t.Fatalf("base %d", f.log.Base())
	}
	f.reopen()
	if err := f.log.EnforceRetention(); err != nil || f.log.Base() != 8 {
		t.Fatal(f.log.Base(), err)
	}
	f.clock.step(1000 * time.Hour)
	if err := f.log.EnforceRetention(); err != nil || f.log.Base() != 18 {
		t.Fatalf("base %d: the active segment always stays: %v", f.log.Base(), err)
	}
}

func TestSetRetentionAppliesToTheOpenLog(t *testing.T) {
	f := newFixture(t, Options{SegmentBytes: 500})
	f.fill(20, 1, 100)
	if f.clock.armed() != 0 {
		t.Fatal("a timer without a bound")
	}
	f.clock.advance(time.Hour)
	if err := f.log.SetRetention(Retention{MaxBytes: 1}); err != nil {
		t.Fatal(err)
	}
	f.clock.advance(DefaultSweepInterval)
	f.checkNumbered(18, 20)
	if err := f.log.SetRetention(Retention{}); err != nil {
		t.Fatal(err)
	}
	f.clock.advance(DefaultSweepInterval)
	if f.clock.armed() != 0 {
		t.Fatal("the timer goes on without a bound")
	}
	if err := f.log.SetRetention(Retention{MaxBytes: -1}); err == nil {
		t.Fatal("a negative bound was taken")
	}
}

func TestRetentionNeverTouchesAProjection(t *testing.T) {
	f := newFixture(t, Options{SegmentBytes: 500, Projection: true, Retention: Retention{MaxBytes: 1, MaxAge: 1}})
	f.fill(20, 1, 100)
	f.clock.advance(time.Hour)
	if err := f.log.SetRetention(Retention{MaxBytes: 1}); err != nil {
		t.Fatal(err)
	}
	f.clock.advance(time.Hour)
	if err := f.log.EnforceRetention(); err != nil {
		t.Fatal(err)
	}
	f.checkNumbered(0, 20)
	if err := f.log.TrimBefore(10); err != nil { // compaction may
		t.Fatal(err)
	}
	f.checkNumbered(10, 20)
}

func TestRetentionHeldAtTheCommitOffset(t *testing.T) {
	f := newFixture(t, Options{SegmentBytes: 500, Fsync: OnCommit, Retention: Retention{MaxBytes: 1}})
	f.fill(20, 1, 100)
	if err := f.log.HoldRetentionAtCommit(true); err != nil {
		t.Fatal(err)
	}
	if err := f.log.EnforceRetention(); err != nil || f.log.Base() != 0 {
		t.Fatal(f.log.Base(), err)
	}
	if err := f.log.AdvanceCommitOffset(7); err != nil {
		t.Fatal(err)
	}
	f.on(f.mem.Crash(1)) // the hold and the offset are on disk
	if err := f.log.EnforceRetention(); err != nil || f.log.Base() != 6 {
		t.Fatal(f.log.Base(), err)
	}
	if err := f.log.HoldRetentionAtCommit(false); err != nil {
		t.Fatal(err)
	}
	if err := f.log.EnforceRetention(); err != nil || f.log.Base() != 18 {
		t.Fatal(f.log.Base(), err)
	}
}
