package shardlog

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/segment"
)

// TestFailedWriteIsUndone: everything claimed fails, what gathered behind the
// failed round included, and the log is as before and usable at once.
func TestFailedWriteIsUndone(t *testing.T) {
	for _, mode := range []FsyncMode{None, OnCommit} {
		for _, cause := range []error{fstest.ErrNoSpace, fstest.ErrIO} {
			f := newFixture(t, Options{Fsync: mode})
			f.append(numbered(0, 1, 10))
			gate := f.gate()
			f.faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpWrite}, Path: ".log", Times: 1, Err: cause, Half: true, Gate: gate})
			g := newLedger()
			for i := range 5 {
				if _, err := f.log.Append(numbered(uint64(1+i), 1, 100), g); err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					<-gate.Arrived()
				}
			}
			f.log.Barrier(g)
			gate.Open()
			for i, o := range g.wait(t, 6) {
				var full *FullError
				var io *IOError
				if cause == fstest.ErrNoSpace && !errors.As(o.err, &full) || cause == fstest.ErrIO && !errors.As(o.err, &io) || !errors.Is(o.err, cause) {
					t.Fatalf("completion %d: %v", i, o.err)
				}
			}
			if f.log.Claimed() != 1 || f.log.Tail() != 1 || f.log.Err() != nil {
				t.Fatalf("claimed %d tail %d, %v", f.log.Claimed(), f.log.Tail(), f.log.Err())
			}
			f.fill(3, 1, 10)
			f.checkNumbered(0, 4)
			f.reopen()
			f.checkNumbered(0, 4)
		}
	}
}

// TestFailedWriteDoesNotComeBack: a batch reported as failed is not there after
// a power loss either.
func TestFailedWriteDoesNotComeBack(t *testing.T) {
	for seed := range uint64(50) {
		f := newFixture(t, Options{Fsync: OnCommit})
		f.append(numbered(0, 1, 10))
		f.faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpWrite}, Path: ".log", Times: 1, After: true})
		if _, err := f.log.AppendWait(numbered(1, 1, 10)); err == nil {
			t.Fatal("no error")
		}
		f.on(f.mem.Crash(seed))
		f.checkNumbered(0, 1)
	}
}

func TestBarrierAheadOfAFailedWriteSucceeds(t *testing.T) {
	f := newFixture(t, Options{Fsync: OnCommit})
	gate := f.block(fstest.OpSync, ".log")
	g := newLedger()
	if _, err := f.log.Append(entry("a"), g); err != nil {
		t.Fatal(err)
	}
	<-gate.Arrived()
	f.faults.FailWrite(".log", 1, fstest.ErrIO)
	f.log.Barrier(g)
	if _, err := f.log.Append(entry("b"), g); err != nil {
		t.Fatal(err)
	}
	f.log.Barrier(g)
	gate.Open()
	seen := g.wait(t, 4)
	if seen[0].err != nil || seen[1].err != nil || seen[2].err == nil || seen[3].err == nil {
		t.Fatalf("%+v", seen)
	}
}

// TestFailedCutPoisons: a write that fails and cannot be undone leaves the end
// of the file unknown.
func TestFailedCutPoisons(t *testing.T) {
	for _, op := range []fstest.Op{fstest.OpTruncate, fstest.OpSync} {
		f := newFixture(t, Options{Fsync: OnCommit})
		f.append(entry("kept"))
		f.faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpWrite}, Path: ".log", Times: 1, Half: true})
		f.faults.Inject(fstest.Rule{Ops: []fstest.Op{op}, Path: ".log", Times: 1})
		_, err := f.log.AppendWait(entry("lost"))
		var failed *SyncFailedError
		if !errors.As(err, &failed) || !failed.Unknown {
			t.Fatal(err)
		}
		checkPoisoned(t, f.log)
		if got := f.payloads(); !slices.Equal(got, []string{"kept"}) {
			t.Fatalf("read %q", got)
		}
		f.on(f.mem.Kill())
		f.append(entry("on"))
		if got := f.payloads(); !slices.Equal(got, []string{"kept", "on"}) {
			t.Fatalf("read %q", got)
		}
	}
}

func checkPoisoned(t *testing.T, l *Log) {
	t.Helper()
	durable := l.Durable()
	calls := map[string]func() error{
		"append":     func() error { _, err := l.AppendWait(entry("x")); return err },
		"flush":      l.Flush,
		"roll":       l.RollNow,
		"trim":       func() error { return l.TrimBefore(1) },
		"truncate":   func() error { return l.Truncate(0) },
		"reset":      func() error { return l.ResetTo(0) },
		"generation": func() error { return l.RecordGeneration(9, 0) },
		"err":        l.Err,
	}
	for name, call := range calls {
		var failed *SyncFailedError
		if err := call(); !errors.As(err, &failed) || failed.Unknown {
			t.Errorf("%s on a poisoned log: %v", name, err)
		}
	}
	if l.Durable() != durable || l.Tail() > durable {
		t.Errorf("durable %d, tail %d, after %d", l.Durable(), l.Tail(), durable)
	}
}

// TestFailedSyncIsNotRetriedAndTrusted: the device fails once, and every sync
// after that would succeed. The log has to refuse all the same.
func TestFailedSyncIsNotRetriedAndTrusted(t *testing.T) {
	f := newFixture(t, Options{Fsync: OnCommit})
	f.append(entry("kept"))
	gate := f.gate()
	f.faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpSync}, Path: ".log", Times: 1, Err: fstest.ErrIO, Gate: gate})
	g := newLedger()
	for i := range 3 {
		if _, err := f.log.Append(entry("lost"), g); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			<-gate.Arrived()
		}
	}
	gate.Open()
	for i, o := range g.wait(t, 3) {
		var failed *SyncFailedError
		if !errors.As(o.err, &failed) || !errors.Is(o.err, fstest.ErrIO) {
			t.Fatalf("completion %d: %v", i, o.err)
		}
		if failed.Unknown != (i == 0) {
			t.Errorf("completion %d: unknown is %v", i, failed.Unknown)
		}
	}
	checkPoisoned(t, f.log)
	if got := f.payloads(); !slices.Equal(got, []string{"kept"}) {
		t.Fatalf("read %q: the batch whose sync failed must stay invisible", got)
	}
	if err := f.log.Close(); err == nil {
		t.Fatal("the close of a poisoned log succeeded")
	}
}

// TestPeriodicSyncFailurePoisons: the batches answered since the last flush are
// not shown any more, and nothing new is taken.
func TestPeriodicSyncFailurePoisons(t *testing.T) {
	f := newFixture(t, Options{Fsync: Periodic, FsyncInterval: time.Second})
	f.append(entry("a"))
	f.clock.advance(time.Second)
	f.append(entry("b"))
	if f.log.Tail() != 2 || f.log.Durable() != 1 {
		t.Fatalf("tail %d durable %d", f.log.Tail(), f.log.Durable())
	}
	f.faults.FailSync(".log", 1)
	f.clock.advance(time.Second)
	checkPoisoned(t, f.log)
	if got := f.payloads(); !slices.Equal(got, []string{"a"}) {
		t.Fatalf("read %q", got)
	}
}

// TestEverySyncFailurePoisons: whichever sync of an operation fails, the log
// takes nothing more. Files that can be rebuilt are the exception.
func TestEverySyncFailurePoisons(t *testing.T) {
	for name, do := range map[string]func(*Log) error{
		"flush":    (*Log).Flush,
		"roll":     (*Log).RollNow,
		"trim":     func(l *Log) error { return l.TrimBefore(l.Tail()) },
		"truncate": func(l *Log) error { return l.Truncate(3) },
		"reset":    func(l *Log) error { return l.ResetTo(100) },
	} {
		failed := 0
		for n := 0; ; n++ {
			f := newFixture(t, Options{Fsync: None, SegmentBytes: 400, Producers: true})
			f.fill(9, 1, 100)
			rule := f.faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpSync, fstest.OpSyncDir}, Skip: n, Times: 1})
			err := do(f.log)
			if rule.Hits() == 0 {
				break
			}
			f.faults.Clear()
			derived := err == nil
			if derived && name != "roll" {
				t.Errorf("%s, sync %d: no error", name, n)
			}
			if !derived {
				failed++
				checkPoisoned(t, f.log)
			}
		}
		if failed == 0 {
			t.Errorf("%s: no sync to fail", name)
		}
	}
}

// TestFullDiskHealsItself: appends are refused with a typed error, reads go on,
// and the log resumes as soon as there is room (storage 22).
func TestFullDiskHealsItself(t *testing.T) {
	f := newFixture(t, Options{Fsync: OnCommit, SegmentBytes: 1000})
	f.fill(5, 1, 100)
	f.faults.SetQuota(250)
	var full *FullError
	for {
		if _, err := f.log.AppendWait(numbered(f.log.Claimed(), 1, 100)); err != nil {
			if !errors.As(err, &full) || !fs.IsFull(err) {
				t.Fatal(err)
			}
			break
		}
	}
	kept := f.log.Tail()
	for range 3 {
		if _, err := f.log.AppendWait(numbered(kept, 1, 100)); !errors.As(err, &full) {
			t.Fatal(err)
		}
		f.checkNumbered(0, kept)
	}
	f.faults.LiftQuota()
	f.fill(10, 1, 100)
	f.checkNumbered(0, kept+10)
	f.reopen()
	f.checkNumbered(0, kept+10)
}

// TestFullDiskAtARollLeavesNothing: no headerless file that a later opening
// would call damaged.
func TestFullDiskAtARollLeavesNothing(t *testing.T) {
	for _, rule := range []fstest.Rule{
		{Ops: []fstest.Op{fstest.OpCreate}, Path: ".log", Err: fstest.ErrNoSpace},
		{Ops: []fstest.Op{fstest.OpWrite}, Path: segment.FileName(1), Err: fstest.ErrNoSpace, Half: true},
	} {
		f := newFixture(t, Options{Fsync: OnCommit, SegmentBytes: 500})
		f.fill(2, 1, 100)
		before := list(t, f.mem)
		injected := f.faults.Inject(rule)
		var full *FullError
		for range 3 {
			if _, err := f.log.AppendWait(numbered(2, 1, 200)); !errors.As(err, &full) || full.Op != "roll" {
				t.Fatal(err)
			}
		}
		after := slices.DeleteFunc(list(t, f.mem), func(n string) bool { return strings.HasSuffix(n, ".index") })
		before = slices.DeleteFunc(before, func(n string) bool { return strings.HasSuffix(n, ".index") })
		if !slices.Equal(before, after) {
			t.Fatalf("left %q, was %q", after, before)
		}
		for seed := range uint64(10) {
			g := *f
			g.on(f.mem.Clone().Crash(seed))
			g.checkNumbered(0, 2)
			if err := g.log.Close(); err != nil {
				t.Fatal(err)
			}
		}
		injected.Stop()
		f.append(numbered(2, 1, 200))
		f.checkNumbered(0, 3)
	}
}

// TestFullDiskAtCreationLeavesNothing: a log that could not be created can be
// created later.
func TestFullDiskAtCreationLeavesNothing(t *testing.T) {
	for n := range 20 {
		f := &fixture{t: t, mem: fstest.New(1), clock: newTestClock()}
		f.opts = Options{Name: "x", Clock: f.clock}
		f.faults = fstest.NewFaults(f.mem)
		f.faults.FailNth(n+1, true, fstest.ErrNoSpace)
		if f.tryOpen() == nil {
			_ = f.log.Close()
			if n < 5 {
				t.Errorf("call %d failed and the log opened", n)
			}
		}
		f.on(f.mem.Kill())
		f.fill(1, 1, 1)
		f.checkNumbered(0, 1)
	}
}

// TestPartOfARoundBeforeARollSurvivesItsFailure: batches of a round that lie
// before the roll are committed though the roll fails.
func TestPartOfARoundBeforeARollSurvivesItsFailure(t *testing.T) {
	f := newFixture(t, Options{Fsync: OnCommit, SegmentBytes: 700})
	gate := f.block(fstest.OpSync, segment.FileName(0))
	g := newLedger()
	for i := range 8 {
		if _, err := f.log.Append(numbered(uint64(i), 1, 100), g); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			<-gate.Arrived()
		}
	}
	f.faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpCreate}, Path: ".log", Times: 1, Err: fstest.ErrNoSpace})
	gate.Open()
	kept := uint64(0)
	for i, o := range g.wait(t, 8) {
		if o.err == nil && kept == uint64(i) {
			kept++
		} else if o.err == nil {
			t.Fatalf("completion %d succeeded after a failure", i)
		}
	}
	if kept < 2 || kept == 8 || f.log.Tail() != kept || f.log.Claimed() != kept {
		t.Fatalf("%d kept, tail %d, claimed %d", kept, f.log.Tail(), f.log.Claimed())
	}
	f.checkNumbered(0, kept)
	f.fill(5, 1, 100)
	f.reopen()
	f.checkNumbered(0, kept+5)
}

// TestIndexWriteFailureIsOnlyCounted: the index can be rebuilt.
func TestIndexWriteFailureIsOnlyCounted(t *testing.T) {
	f := newFixture(t, Options{Fsync: OnCommit, SegmentBytes: 1000, IndexSpacing: 200})
	f.faults.Inject(fstest.Rule{Path: ".index"})
	f.fill(30, 1, 100)
	if f.log.metrics.IndexWriteFailures.Load() == 0 {
		t.Fatal("not counted")
	}
	f.checkNumbered(0, 30)
	f.faults.Clear()
	f.reopen()
	f.checkNumbered(0, 30)
}

// TestMarkWriteFailureIsHarmless: the mark lags, and nothing is refused.
func TestMarkWriteFailureIsHarmless(t *testing.T) {
	f := newFixture(t, Options{Fsync: OnCommit, SegmentBytes: 1000})
	f.faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpWrite}, Path: segment.MarkFile})
	f.fill(30, 1, 100)
	f.faults.Clear()
	for seed := range uint64(10) {
		g := *f
		g.on(f.mem.Clone().Crash(seed))
		g.checkNumbered(0, 30)
		_ = g.log.Close()
	}
}
