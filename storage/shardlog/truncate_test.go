package shardlog

import (
	"errors"
	"slices"
	"testing"

	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/segment"
)

func TestTruncate(t *testing.T) {
	for _, mode := range []FsyncMode{None, OnCommit} {
		for cut := range uint64(21) {
			f := newFixture(t, Options{Fsync: mode, SegmentBytes: 700, IndexSpacing: 150})
			f.fill(20, 1, 100)
			if err := f.log.Truncate(cut); err != nil {
				t.Fatal(err)
			}
			f.checkNumbered(0, cut)
			if f.log.Claimed() != cut || f.log.Durable() > cut {
				t.Fatalf("claimed %d durable %d", f.log.Claimed(), f.log.Durable())
			}
			f.fill(10, 1, 130)
			f.checkNumbered(0, cut+10)
			f.reopen()
			f.checkNumbered(0, cut+10)
			if err := f.log.Truncate(cut + 5); err != nil {
				t.Fatal(err)
			}
			f.on(f.mem.Crash(cut))
			f.checkNumbered(0, cut+5)
		}
	}
}

func TestTruncateRefusals(t *testing.T) {
	f := newFixture(t, Options{Fsync: OnCommit, SegmentBytes: 700})
	f.fill(10, 3, 50)
	var split *SplitBatchError
	if err := f.log.Truncate(10); !errors.As(err, &split) || split.First != 9 || split.End != 12 {
		t.Fatal(err)
	}
	if err := f.log.TrimBefore(9); err != nil {
		t.Fatal(err)
	}
	base := f.log.Base()
	var trimmed *TrimmedError
	if err := f.log.Truncate(base - 1); !errors.As(err, &trimmed) {
		t.Fatal(err)
	}
	if err := f.log.AdvanceCommitOffset(18); err != nil {
		t.Fatal(err)
	}
	var below *BelowCommitError
	if err := f.log.Truncate(15); !errors.As(err, &below) || below.Commit != 18 {
		t.Fatal(err)
	}
	if err := f.log.ResetTo(17); !errors.As(err, &below) {
		t.Fatal(err)
	}
	if err := f.log.Truncate(40); err != nil {
		t.Fatal("past the tail:", err)
	}
	if err := f.log.Truncate(18); err != nil {
		t.Fatal(err)
	}
	f.checkNumbered(base, 18)
	if f.log.Err() != nil {
		t.Fatal(f.log.Err())
	}
}

// cuts are the operations that shorten a log from 30 records and what they may
// leave after a crash: a prefix no shorter than floor, or exactly the result.
var cuts = map[string]struct {
	do    func(*Log) error
	floor uint64 // the shortest tail of the old log
	base  uint64 // of the result
	tail  uint64
}{
	"truncate in the active segment": {do: func(l *Log) error { return l.Truncate(29) }, floor: 29, tail: 29},
	"truncate to a boundary":         {do: func(l *Log) error { return l.Truncate(6) }, floor: 6, tail: 6},
	"truncate in a sealed segment":   {do: func(l *Log) error { return l.Truncate(13) }, floor: 13, tail: 13},
	"truncate everything":            {do: func(l *Log) error { return l.Truncate(0) }, tail: 0},
	"reset":                          {do: func(l *Log) error { return l.ResetTo(1000) }, base: 1000, tail: 1000},
}

// TestCutSurvivesPowerLossAtEveryStep fails each call of a cut, and all after
// it, and then takes the power away.
func TestCutSurvivesPowerLossAtEveryStep(t *testing.T) {
	for name, c := range cuts {
		t.Run(name, func(t *testing.T) {
			for _, mode := range []FsyncMode{None, OnCommit} {
				whole := newFixture(t, Options{Fsync: mode, SegmentBytes: 700, Producers: true})
				whole.fill(30, 1, 100)
				if err := whole.log.Close(); err != nil {
					t.Fatal(err)
				}
				for n := 1; ; n++ {
					f := *whole
					f.on(whole.mem.Clone())
					rule := f.faults.FailNth(n, true, fstest.ErrIO)
					err := c.do(f.log)
					if rule.Hits() == 0 {
						if err != nil {
							t.Fatal(err)
						}
						f.faults.Clear()
						f.checkNumbered(c.base, c.tail)
						_ = f.log.Close()
						break
					}
					for seed := range times(t, 3) {
						g := f
						g.on(f.mem.Clone().Crash(seed))
						base, tail := g.log.Base(), g.log.Tail()
						old := base == 0 && tail >= c.floor && tail <= 30
						result := base == c.base && tail == c.tail
						if !old && !result {
							t.Fatalf("call %d, seed %d: [%d, %d)", n, seed, base, tail)
						}
						g.checkNumbered(base, tail)
						g.fill(3, 1, 80)
						g.reopen()
						g.checkNumbered(base, tail+3)
						_ = g.log.Close()
					}
				}
			}
		})
	}
}

// TestCutLowersTheMarkFirst: a kill in the middle of a cut must not look like
// lost data.
func TestCutLowersTheMarkFirst(t *testing.T) {
	f := newFixture(t, Options{Fsync: OnCommit, SegmentBytes: 700})
	f.fill(30, 1, 100)
	f.faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpTruncate}, Path: ".log", After: true})
	if err := f.log.Truncate(29); err == nil {
		t.Fatal("no error")
	}
	f.on(f.mem.Kill())
	f.checkNumbered(0, 29)
}

func TestResetTo(t *testing.T) {
	for _, base := range []uint64{0, 5, 30, 31, 1 << 40} {
		f := newFixture(t, Options{Fsync: OnCommit, SegmentBytes: 700})
		f.fill(30, 1, 100)
		if err := f.log.RecordGeneration(3, 10); err != nil {
			t.Fatal(err)
		}
		if err := f.log.ResetTo(base); err != nil {
			t.Fatal(err)
		}
		f.checkNumbered(base, base)
		if len(f.log.Generations()) != 0 {
			t.Fatal("generations are kept")
		}
		f.fill(12, 1, 100)
		f.checkNumbered(base, base+12)
		f.reopen()
		f.checkNumbered(base, base+12)
	}
}

// TestAppendsAreHeldOffDuringACut: refused with ErrBusy, and told when there is
// room.
func TestAppendsAreHeldOffDuringACut(t *testing.T) {
	f := newFixture(t, Options{Fsync: OnCommit})
	f.fill(10, 1, 10)
	gate := f.block(fstest.OpTruncate, ".log")
	cut := make(chan error, 1)
	go func() { cut <- f.log.Truncate(5) }()
	<-gate.Arrived()
	if _, err := f.log.Append(entry("x"), nil); !errors.Is(err, ErrBusy) {
		t.Fatal(err)
	}
	room := f.log.Room()
	gate.Open()
	if err := <-cut; err != nil {
		t.Fatal(err)
	}
	<-room
	f.fill(1, 1, 10)
	f.checkNumbered(0, 6)
}

// TestPendingAppendsAreWrittenBeforeACut and heard of first.
func TestPendingAppendsAreWrittenBeforeACut(t *testing.T) {
	f := newFixture(t, Options{Fsync: OnCommit})
	gate := f.block(fstest.OpSync, ".log")
	g := newLedger()
	for i := range 5 {
		if _, err := f.log.Append(numbered(uint64(i), 1, 10), g); err != nil {
			t.Fatal(err)
		}
	}
	cut := make(chan error, 1)
	go func() { cut <- f.log.Truncate(2) }()
	until(t, "the log is frozen", func() bool {
		_, err := f.log.Append(numbered(5, 1, 10), g)
		return errors.Is(err, ErrBusy)
	})
	gate.Open()
	if err := <-cut; err != nil {
		t.Fatal(err)
	}
	for _, o := range g.wait(t, 5) {
		if o.err != nil {
			t.Fatal(o.err)
		}
	}
	f.checkNumbered(0, 2)
}

func TestGenerations(t *testing.T) {
	f := newFixture(t, Options{Fsync: OnCommit, SegmentBytes: 500})
	f.fill(20, 1, 100)
	for _, g := range []segment.Generation{{Number: 1, Start: 0}, {Number: 4, Start: 8}, {Number: 4, Start: 9}, {Number: 3, Start: 12}, {Number: 6, Start: 15}} {
		if err := f.log.RecordGeneration(g.Number, g.Start); err != nil {
			t.Fatal(err)
		}
	}
	want := segment.Generations{{Number: 1, Start: 0}, {Number: 4, Start: 8}, {Number: 6, Start: 15}}
	for range 2 {
		if got := f.log.Generations(); !slices.Equal(got, want) {
			t.Fatalf("%+v", got)
		}
		for g, end := range map[uint64]uint64{1: 8, 4: 15, 6: 20} {
			if got, ok := f.log.GenerationEnd(g); !ok || got != end {
				t.Fatalf("generation %d ends at %d %v", g, got, ok)
			}
		}
		if _, ok := f.log.GenerationEnd(5); ok {
			t.Fatal("an unknown generation has an end")
		}
		f.on(f.mem.Crash(9))
	}
	if err := f.log.Truncate(10); err != nil {
		t.Fatal(err)
	}
	if got := f.log.Generations(); !slices.Equal(got, want[:2]) {
		t.Fatalf("%+v after the cut", got)
	}
}

func TestAcceptGeneration(t *testing.T) {
	f := newFixture(t, Options{Fsync: OnCommit})
	accept := func(g uint64, leader string) error { return f.log.AcceptGeneration(g, leader) }
	if err := accept(3, "a"); err != nil {
		t.Fatal(err)
	}
	var refused *GenerationError
	for range 2 {
		if err := accept(3, "a"); err != nil {
			t.Fatal(err)
		}
		if err := accept(3, "b"); !errors.As(err, &refused) || refused.Promised != "a" {
			t.Fatal(err)
		}
		if err := accept(2, "a"); !errors.As(err, &refused) || refused.Accepted != 3 {
			t.Fatal(err)
		}
		f.on(f.mem.Crash(3))
	}
	// The power fails between the two files: the promise holds.
	f.faults.Inject(fstest.Rule{Path: segment.ReplicaFile})
	if err := accept(5, "c"); err == nil {
		t.Fatal("no error")
	}
	f.on(f.mem.Crash(4))
	if g, leader := f.log.Accepted(); g != 5 || leader != "c" {
		t.Fatal(g, leader)
	}
	if err := accept(5, "b"); !errors.As(err, &refused) {
		t.Fatal(err)
	}
}

func TestCommitOffset(t *testing.T) {
	for _, mode := range []FsyncMode{Periodic, OnCommit} {
		f := newFixture(t, Options{Fsync: mode})
		f.fill(10, 1, 10)
		for _, c := range []struct{ advance, want uint64 }{{4, 4}, {2, 4}, {6, 6}} {
			if err := f.log.AdvanceCommitOffset(c.advance); err != nil || f.log.CommitOffset() != c.want {
				t.Fatalf("commit offset %d, %v", f.log.CommitOffset(), err)
			}
		}
		if mode == Periodic {
			f.clock.advance(commitSaveInterval)
		}
		f.on(f.mem.Crash(1))
		if f.log.CommitOffset() != 6 {
			t.Fatalf("%s: commit offset %d after the crash", mode, f.log.CommitOffset())
		}
		if err := f.log.AdvanceCommitOffset(8); err != nil {
			t.Fatal(err)
		}
		f.reopen()
		if f.log.CommitOffset() != 8 {
			t.Fatalf("%s: commit offset %d after a close", mode, f.log.CommitOffset())
		}
	}
}

// TestInterruptedCutIsMadeDurableAtOpen: the process dies between the cut and its
// sync, the log is opened, and the segment sealed: no later power loss may bring
// the old length back behind a newer segment.
func TestInterruptedCutIsMadeDurableAtOpen(t *testing.T) {
	for seed := range uint64(40) {
		f := newFixture(t, Options{Fsync: OnCommit})
		f.fill(10, 1, 100)
		f.faults.FailSync(".log", 1)
		if err := f.log.Truncate(9); err == nil {
			t.Fatal("no error")
		}
		f.on(f.mem.Kill())
		f.checkNumbered(0, 9)
		if err := f.log.RollNow(); err != nil {
			t.Fatal(err)
		}
		f.fill(3, 1, 100)
		f.on(f.mem.Crash(seed))
		f.checkNumbered(0, 12)
	}
}
