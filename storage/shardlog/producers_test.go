package shardlog

import (
	"errors"
	"testing"

	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/producer"
	"github.com/felixlog/felix/storage/segment"
)

// from is an entry of a producer.
func from(id, seq uint64, payload string) *Entry {
	e := entry(payload)
	e.HasProducer, e.ProducerID, e.Sequence = true, id, seq
	return e
}

func producing(t testing.TB, o Options) *fixture {
	o.Producers = true
	return newFixture(t, o)
}

// refusal is the verdict on an append, which has to be refused.
func (f *fixture) verdict(e *Entry) producer.Outcome {
	f.t.Helper()
	_, err := f.log.AppendWait(e)
	var refused *RefusedError
	if !errors.As(err, &refused) {
		f.t.Fatalf("not refused: %v", err)
	}
	return refused.Verdict.Outcome
}

func TestIdempotentProducers(t *testing.T) {
	f := producing(t, Options{Fsync: OnCommit})
	f.append(entry("somebody else"))
	first := f.append(from(7, 0, "a"))
	f.append(from(7, 1, "b"))
	for range 2 {
		again := f.append(from(7, 0, "a"))
		if !again.Duplicate || again.First != first.First || f.log.Tail() != 3 {
			t.Fatalf("%+v, tail %d", again, f.log.Tail())
		}
		if got := f.verdict(from(7, 1, "other")); got != producer.Reused {
			t.Fatal(got)
		}
		if got := f.verdict(from(7, 3, "c")); got != producer.Gap {
			t.Fatal(got)
		}
		if got := f.verdict(from(8, 1, "c")); got != producer.Unknown {
			t.Fatal(got)
		}
		f.reopen()
	}
	dup, err := f.log.AppendAt(99, from(7, 1, "b"), nil)
	if err != nil || !dup.Duplicate {
		t.Fatal("a duplicate comes before the condition:", dup, err)
	}
}

// TestDuplicateOfAPendingBatchWaitsForIt: its answer must not come before the
// original is durable, nor be good if that fails.
func TestDuplicateOfAPendingBatchWaitsForIt(t *testing.T) {
	for _, fails := range []bool{false, true} {
		f := producing(t, Options{Fsync: OnCommit})
		gate := f.gate()
		rule := fstest.Rule{Ops: []fstest.Op{fstest.OpWrite}, Path: ".log", Times: 1, Gate: gate}
		if fails {
			rule.Err = fstest.ErrNoSpace
		}
		f.faults.Inject(rule)
		g := newLedger()
		for range 2 {
			if _, err := f.log.Append(from(1, 0, "a"), g); err != nil {
				t.Fatal(err)
			}
		}
		<-gate.Arrived()
		if len(g.outcomes()) != 0 {
			t.Fatal("answered before the write")
		}
		gate.Open()
		for i, o := range g.wait(t, 2) {
			if (o.err != nil) != fails || o.app.Duplicate != (i == 1) || o.app.First != 0 {
				t.Fatalf("%d: %+v", i, o)
			}
		}
		if !fails {
			continue
		}
		again := f.append(from(1, 0, "a")) // the table forgot what failed
		if again.Duplicate || again.First != 0 || f.log.Tail() != 1 {
			t.Fatalf("%+v", again)
		}
	}
}

func TestProducersSurvive(t *testing.T) {
	for _, mode := range []FsyncMode{None, OnCommit} {
		for seed := range uint64(20) {
			f := producing(t, Options{Fsync: mode, SegmentBytes: 900})
			seq := map[uint64]uint64{}
			for i := range uint64(60) {
				id := i % 3
				f.append(from(id, seq[id], "x"))
				seq[id]++
			}
			f.on(f.mem.Crash(seed))
			tail := f.log.Tail()
			for id := range uint64(3) {
				held := tail / 3
				if id < tail%3 {
					held++
				}
				if held > 0 {
					if a := f.append(from(id, held-1, "x")); !a.Duplicate || a.First != 3*(held-1)+id {
						t.Fatalf("producer %d, sequence %d: %+v", id, held-1, a)
					}
				}
				if got := f.verdict(from(id, held+1, "x")); held > 0 && got != producer.Gap {
					t.Fatalf("producer %d after %d batches: %v", id, held, got)
				}
			}
		}
	}
}

// TestProducerSnapshotSavesTheReplay: with the snapshot of the last roll, only
// what follows it is read; without it everything is.
func TestProducerSnapshotSavesTheReplay(t *testing.T) {
	f := producing(t, Options{Fsync: OnCommit, SegmentBytes: 900})
	for i := range uint64(60) {
		f.append(from(1, i, "x"))
	}
	for _, lose := range []bool{false, true} {
		g := *f
		disk := f.mem.Clone().Kill()
		if lose {
			if err := disk.Remove(testDir + "/" + segment.ProducersFile); err != nil {
				t.Fatal(err)
			}
		}
		g.on(disk)
		if got := g.log.metrics.ProducerRebuilds.Load(); (got == 1) != lose {
			t.Fatalf("%d rebuilds, snapshot lost: %v", got, lose)
		}
		if a := g.append(from(1, 59, "x")); !a.Duplicate || a.First != 59 {
			t.Fatalf("%+v", a)
		}
		_ = g.log.Close()
	}
}

// TestTruncationForgetsProducers: a batch that was cut off is no duplicate, after
// a crash either.
func TestTruncationForgetsProducers(t *testing.T) {
	for seed := range uint64(10) {
		f := producing(t, Options{Fsync: OnCommit, SegmentBytes: 900})
		for i := range uint64(30) {
			f.append(from(1, i, "x"))
		}
		if err := f.log.Truncate(20); err != nil {
			t.Fatal(err)
		}
		if seed%2 == 0 {
			f.on(f.mem.Crash(seed))
		}
		if a := f.append(from(1, 20, "y")); a.Duplicate || a.First != 20 {
			t.Fatalf("%+v", a)
		}
		if a := f.append(from(1, 19, "x")); !a.Duplicate || a.First != 19 {
			t.Fatalf("%+v", a)
		}
	}
}

// TestTruncationRemovesTheSnapshot: the snapshot of the last roll tells of a
// batch that was cut off and replaced, and would be believed after a crash.
func TestTruncationRemovesTheSnapshot(t *testing.T) {
	f := producing(t, Options{Fsync: OnCommit})
	for i := range uint64(10) {
		f.append(from(1, i, "x"))
	}
	if err := f.log.RollNow(); err != nil {
		t.Fatal(err)
	}
	if err := f.log.Truncate(9); err != nil {
		t.Fatal(err)
	}
	f.append(from(2, 0, "another's"))
	f.append(from(2, 1, "another's"))
	f.on(f.mem.Kill())
	if a := f.append(from(1, 9, "x")); a.Duplicate || a.First != 11 {
		t.Fatalf("%+v", a)
	}
	if a := f.append(from(2, 0, "another's")); !a.Duplicate || a.First != 9 {
		t.Fatalf("%+v", a)
	}
}

func TestTrimForgetsProducers(t *testing.T) {
	f := producing(t, Options{Fsync: OnCommit, SegmentBytes: 900})
	f.append(from(1, 0, "x"))
	for i := range uint64(30) {
		f.append(from(2, i, "x"))
	}
	if err := f.log.TrimBefore(20); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got := f.verdict(from(1, 1, "x")); got != producer.Unknown {
			t.Fatal(got)
		}
		f.reopen()
	}
}
