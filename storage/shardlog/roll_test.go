package shardlog

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/segment"
)

// TestRollSyncsTheOldSegmentFirst: whatever the mode, a power loss after a roll
// leaves no gap between the segments.
func TestRollSyncsTheOldSegmentFirst(t *testing.T) {
	for seed := range uint64(50) {
		f := newFixture(t, Options{Fsync: None})
		f.fill(20, 1, 300)
		if err := f.log.RollNow(); err != nil {
			t.Fatal(err)
		}
		if f.log.Durable() != 20 {
			t.Fatalf("durable %d after a roll", f.log.Durable())
		}
		f.fill(20, 1, 300)
		f.on(f.mem.Crash(seed))
		if f.log.Tail() < 20 {
			t.Fatalf("seed %d: tail %d", seed, f.log.Tail())
		}
		f.checkNumbered(0, f.log.Tail())
	}
}

func TestRollNowOfAnEmptySegmentDoesNothing(t *testing.T) {
	f := newFixture(t, Options{})
	for range 2 {
		if err := f.log.RollNow(); err != nil || len(f.log.Segments()) != 1 {
			t.Fatalf("%d segments, %v", len(f.log.Segments()), err)
		}
	}
	f.fill(1, 1, 1)
	for range 2 {
		if err := f.log.RollNow(); err != nil || len(f.log.Segments()) != 2 {
			t.Fatalf("%d segments, %v", len(f.log.Segments()), err)
		}
	}
	f.reopen()
	f.fill(1, 1, 1)
	f.checkNumbered(0, 2)
}

// background is a fixture that rolls beside its rounds at half the size.
func background(t testing.TB, mode FsyncMode) *fixture {
	return newFixture(t, Options{Fsync: mode, SegmentBytes: 2000, RolloverThresholdPercent: 50, MaxOvershootPercent: 100})
}

// rolling reports whether a background roll runs.
func (l *Log) rolling() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.roll.running
}

func TestBackgroundRoll(t *testing.T) {
	for _, mode := range []FsyncMode{None, OnCommit} {
		f := background(t, mode)
		for i := range 100 {
			f.append(numbered(uint64(i), 1, 100))
			if i%5 == 0 {
				until(t, "the roll ends", func() bool { return !f.log.rolling() })
			}
		}
		if n := f.log.metrics.SegmentRollsBackground.Load(); n < 5 {
			t.Fatalf("%d background rolls", n)
		}
		f.checkNumbered(0, 100)
		f.reopen()
		f.checkNumbered(0, 100)
	}
}

// TestNothingIsAcknowledgedBeforeTheRetiredSegmentIsDurable holds up the seal of
// a segment that was rolled in the background, and appends to the new one.
func TestNothingIsAcknowledgedBeforeTheRetiredSegmentIsDurable(t *testing.T) {
	f := background(t, None)
	gate := f.gate()
	old := f.faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpSync}, Path: segment.FileName(0), Gate: gate})
	f.fill(6, 1, 200)
	<-gate.Arrived()
	if len(f.log.Segments()) != 2 {
		t.Fatalf("%d segments", len(f.log.Segments()))
	}
	f.fill(2, 1, 200) // answered from the page cache
	flushed := make(chan error, 1)
	go func() { flushed <- f.log.Flush() }()
	until(t, "the flush waits for the old segment", func() bool { return old.Hits() == 2 })
	if f.log.Durable() != 0 {
		t.Fatalf("durable %d before the old segment is", f.log.Durable())
	}
	select {
	case err := <-flushed:
		t.Fatal("flushed before the old segment:", err)
	default:
	}
	gate.Open()
	if err := <-flushed; err != nil || f.log.Durable() != 8 {
		t.Fatal(f.log.Durable(), err)
	}
}

func TestFailedSealOfARetiredSegmentPoisons(t *testing.T) {
	f := background(t, None)
	f.faults.FailSync(segment.FileName(0), 1)
	f.fill(6, 1, 200)
	until(t, "the seal fails", func() bool { return f.log.Err() != nil })
	checkPoisoned(t, f.log)
	if f.log.Tail() != 0 {
		t.Fatalf("tail %d, and nothing is durable", f.log.Tail())
	}
}

// TestPoisonedDuringAWrite: the seal fails while a round is being written. What
// it wrote is not shown, and its outcome is unknown.
func TestPoisonedDuringAWrite(t *testing.T) {
	f := background(t, None)
	seal, write := f.gate(), f.gate()
	f.faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpSync}, Path: segment.FileName(0), Err: fstest.ErrIO, Gate: seal})
	f.fill(6, 1, 200)
	<-seal.Arrived()
	f.faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpWrite}, Path: segment.FileName(1), Gate: write})
	g := newLedger()
	if _, err := f.log.Append(numbered(6, 1, 200), g); err != nil {
		t.Fatal(err)
	}
	<-write.Arrived()
	seal.Open()
	until(t, "the seal fails", func() bool { return f.log.Err() != nil })
	write.Open()
	var failed *SyncFailedError
	if o := g.wait(t, 1)[0]; !errors.As(o.err, &failed) || !failed.Unknown {
		t.Fatal(o.err)
	}
	checkPoisoned(t, f.log)
}

// TestRoundWinsTheRaceToRoll: a round that outgrows the raised ceiling rolls
// inline; what was prepared is removed and nothing is refused.
func TestRoundWinsTheRaceToRoll(t *testing.T) {
	f := background(t, OnCommit)
	gate := f.block(fstest.OpSyncDir, testDir)
	f.fill(6, 1, 200)
	<-gate.Arrived()
	f.faults.Clear() // the preparation waits on, the round need not
	for i := range 20 {
		f.append(numbered(uint64(6+i), 1, 200))
	}
	gate.Open()
	until(t, "the roll ends", func() bool { return !f.log.rolling() })
	if f.log.metrics.SegmentRollsDiscarded.Load() != 1 {
		t.Fatal("nothing was discarded")
	}
	f.checkNumbered(0, 26)
	names := list(t, f.mem)
	if slices.Contains(names, segment.FileName(1)) {
		t.Fatalf("the prepared file is left: %q", names)
	}
	f.reopen()
	f.checkNumbered(0, 26)
}

func TestFailedBackgroundRollLeavesInlineRolls(t *testing.T) {
	f := background(t, OnCommit)
	f.faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpCreate}, Path: ".log", Times: 1, Err: fstest.ErrNoSpace})
	f.fill(6, 1, 200)
	until(t, "the roll fails", func() bool { return f.log.metrics.SegmentRollsFailed.Load() == 1 && !f.log.rolling() })
	f.fill(30, 1, 200)
	if f.log.metrics.SegmentRolls.Load() == 0 || f.log.Err() != nil {
		t.Fatal("no inline roll", f.log.Err())
	}
	f.checkNumbered(0, 36)
}

// TestBackgroundRollSurvivesPowerLoss crashes at every moment of a background
// roll that a pause can be put at.
func TestBackgroundRollSurvivesPowerLoss(t *testing.T) {
	for _, mode := range []FsyncMode{None, OnCommit} {
		for seed := range uint64(60) {
			f := background(t, mode)
			rule := f.faults.Inject(fstest.Rule{Path: segment.FileName(seed % 3), Skip: int(seed % 7), Err: fstest.ErrIO})
			acked := uint64(0)
			for i := range 12 {
				if _, err := f.log.AppendWait(numbered(uint64(i), 1, 200)); err != nil {
					break
				}
				acked++
			}
			durable := f.log.Durable()
			rule.Stop()
			f.on(f.mem.Crash(seed))
			if f.log.Tail() < durable || mode == OnCommit && f.log.Tail() < acked {
				t.Fatalf("%s seed %d: tail %d, durable %d, acknowledged %d", mode, seed, f.log.Tail(), durable, acked)
			}
			f.checkNumbered(0, f.log.Tail())
		}
	}
}

func TestReservationGrowsAndIsGivenBack(t *testing.T) {
	dir := t.TempDir()
	clock := newTestClock()
	l, err := Open(fs.OS(), dir, Options{Name: "t", Fsync: OnCommit, Preallocate: true, SegmentBytes: 3 << 20, Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for i := range 5 {
		if _, err := l.AppendWait(numbered(uint64(i), 1, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	infos := l.Segments()
	for _, s := range infos {
		info, err := fs.OS().Stat(dir + "/" + segment.FileName(s.ID))
		if err != nil || info.Size != s.Bytes {
			t.Fatalf("segment %d has %d bytes, its file %d: %v", s.ID, s.Bytes, info.Size, err)
		}
	}
	if len(infos) < 2 {
		t.Fatalf("%d segments", len(infos))
	}
	if _, err := readAll(l, 0, 1<<20); err != nil {
		t.Fatal(err)
	}
}

func TestPeriodicTimerStopsWithTheLog(t *testing.T) {
	f := newFixture(t, Options{Fsync: Periodic, FsyncInterval: time.Second, Retention: Retention{MaxBytes: 1}})
	f.append(entry("x"))
	if f.clock.armed() != 2 {
		t.Fatalf("%d timers", f.clock.armed())
	}
	if err := f.log.Close(); err != nil {
		t.Fatal(err)
	}
	if f.clock.armed() != 0 {
		t.Fatalf("%d timers after the close", f.clock.armed())
	}
}

// TestKilledBetweenSwapAndSeal: the segment that a background roll retired and
// did not seal is flushed by the next opening, before the mark vouches for it.
func TestKilledBetweenSwapAndSeal(t *testing.T) {
	for seed := range uint64(20) {
		f := background(t, None)
		gate := f.block(fstest.OpSync, segment.FileName(0))
		f.fill(6, 1, 200)
		<-gate.Arrived()
		disk := f.mem.Clone().Kill()
		gate.Open()
		_ = f.log.Close()
		f.on(disk)
		f.checkNumbered(0, 6)
		f.on(f.mem.Crash(seed))
		f.checkNumbered(0, 6)
	}
}
