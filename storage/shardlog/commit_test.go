package shardlog

import (
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/storage/fs/fstest"
)

// until waits for a condition that another goroutine brings about.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// TestAppendsShareFlushes: 64 appends by 16 writers take at most 16 flushes,
// since what comes while one runs shares the next. Each flush takes as long as
// the writers need to append.
func TestAppendsShareFlushes(t *testing.T) {
	const writers, appends = 16, 64
	f := newFixture(t, Options{Fsync: OnCommit})
	gates := make([]*fstest.Gate, appends)
	for i := range gates {
		gates[i] = f.gate()
		f.faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpSync}, Path: ".log", Times: 1, Gate: gates[i]})
	}
	var wg sync.WaitGroup
	var taken atomic.Int64
	for range writers {
		wg.Go(func() {
			for taken.Add(1) <= appends {
				if _, err := f.log.AppendWait(entry("x")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	flushes := 0
	for ; f.log.Tail() < appends; flushes++ {
		tail := f.log.Tail()
		<-gates[flushes].Arrived()
		until(t, "all writers wait", func() bool { return f.log.Claimed() == min(tail+writers, appends) })
		gates[flushes].Open()
		until(t, "the flush is published", func() bool { return f.log.Tail() > tail })
	}
	wg.Wait()
	if flushes > 16 || f.log.metrics.Syncs.Load() != uint64(flushes) {
		t.Fatalf("%d flushes (%d counted) for %d appends", flushes, f.log.metrics.Syncs.Load(), appends)
	}
	if n := f.log.metrics.SyncBatchAppends.Load(); n != appends {
		t.Fatalf("flushes covered %d appends", n)
	}
}

// orderChecker fails at a completion out of offset order.
type orderChecker struct {
	t    *testing.T
	next atomic.Uint64
}

func (o *orderChecker) Committed(a Appended, err error) {
	if err != nil {
		o.t.Error(err)
	}
	if next := o.next.Load(); a.First != next {
		o.t.Errorf("completion of offset %d, want %d", a.First, next)
	}
	o.next.Store(a.First + uint64(a.Count))
}

func TestCompletionsComeInOffsetOrder(t *testing.T) {
	for _, mode := range []FsyncMode{None, Periodic, OnCommit} {
		f := newFixture(t, Options{Fsync: mode, SegmentBytes: 5000})
		check := &orderChecker{t: t}
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				rng := rand.New(rand.NewPCG(1, uint64(w)))
				for range 200 {
					n := 1 + rng.IntN(4)
					payloads := make([]string, n)
					if _, err := f.log.Append(entry(payloads...), check); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if err := f.log.Flush(); err != nil {
			t.Fatal(err)
		}
		if check.next.Load() != f.log.Tail() || f.log.Tail() != f.log.Claimed() {
			t.Fatalf("completed to %d, tail %d, claimed %d", check.next.Load(), f.log.Tail(), f.log.Claimed())
		}
	}
}

// TestCompletionSeesItsBatch: what a completion hears of can be read at once,
// and in on_commit mode is durable.
func TestCompletionSeesItsBatch(t *testing.T) {
	f := newFixture(t, Options{Fsync: OnCommit, SegmentBytes: 600})
	done := make(chan error, 1)
	for i := range 30 {
		check := completionFunc(func(a Appended, err error) {
			if err == nil && (f.log.Tail() <= a.First || f.log.Durable() <= a.First) {
				err = errors.New("not published")
			}
			if err == nil {
				_, err = f.log.ReadAt(a.Where)
			}
			done <- err
		})
		if _, err := f.log.Append(numbered(uint64(i), 1, 50), check); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

type completionFunc func(Appended, error)

func (f completionFunc) Committed(a Appended, err error) { f(a, err) }

// TestCompletionMayAppend: a chain of appends, each from the completion of the
// one before, in every mode.
func TestCompletionMayAppend(t *testing.T) {
	for _, mode := range []FsyncMode{None, OnCommit} {
		f := newFixture(t, Options{Fsync: mode})
		done := make(chan struct{})
		var next completionFunc
		next = func(a Appended, err error) {
			if err != nil {
				t.Error(err)
			}
			if a.First == 50 {
				close(done)
				return
			}
			if _, err := f.log.Append(entry("x"), next); err != nil {
				t.Error(err)
			}
		}
		if _, err := f.log.Append(entry("x"), next); err != nil {
			t.Fatal(err)
		}
		<-done
	}
}

func TestBarrierHearsInTurn(t *testing.T) {
	f := newFixture(t, Options{Fsync: OnCommit})
	gate := f.block(fstest.OpSync, ".log")
	g := newLedger()
	appendTo := func() {
		if _, err := f.log.Append(entry("x"), g); err != nil {
			t.Fatal(err)
		}
	}
	appendTo()
	<-gate.Arrived()
	appendTo()
	tail := uint64(99)
	heard := make(chan struct{})
	f.log.Barrier(completionFunc(func(_ Appended, err error) {
		tail = f.log.Tail()
		if err != nil || len(g.outcomes()) != 2 {
			t.Errorf("barrier after %d completions: %v", len(g.outcomes()), err)
		}
		close(heard)
	}))
	appendTo()
	gate.Open()
	<-heard
	if tail < 2 {
		t.Fatalf("barrier heard at tail %d", tail)
	}
	g.wait(t, 3)
	if err := f.log.Flush(); err != nil { // nothing is ahead
		t.Fatal(err)
	}
}

func TestPendingBytesAreBounded(t *testing.T) {
	size := sizeOf(entry("x"))
	f := newFixture(t, Options{Fsync: OnCommit, MaxPendingBytes: 4 * size})
	gate := f.block(fstest.OpSync, ".log")
	g := newLedger()
	for range 4 {
		if _, err := f.log.Append(entry("x"), g); err != nil {
			t.Fatal(err)
		}
	}
	<-gate.Arrived()
	if _, err := f.log.Append(entry("x"), g); !errors.Is(err, ErrBusy) {
		t.Fatal(err)
	}
	room := f.log.Room()
	select {
	case <-room:
		t.Fatal("room while the bound is reached")
	default:
	}
	gate.Open()
	<-room
	g.wait(t, 4)
	if _, err := f.log.AppendWait(numbered(4, 1, int(5*size))); err != nil {
		t.Fatal("a batch larger than the bound, alone:", err)
	}
	<-f.log.Room()
}

// TestDuplicatesAreBounded: they have no bytes, and are counted all the same.
func TestDuplicatesAreBounded(t *testing.T) {
	f := newFixture(t, Options{Fsync: OnCommit, Producers: true})
	gate := f.block(fstest.OpSync, ".log")
	e := entry("x")
	e.HasProducer = true
	if _, err := f.log.Append(e, nil); err != nil {
		t.Fatal(err)
	}
	<-gate.Arrived()
	n := 0
	for ; n <= maxGathered; n++ {
		if _, err := f.log.Append(e, nil); err != nil {
			if !errors.Is(err, ErrBusy) {
				t.Fatal(err)
			}
			break
		}
	}
	if n != maxGathered {
		t.Fatalf("%d duplicates wait", n)
	}
	room := f.log.Room()
	gate.Open()
	<-room
}

func TestAfterRoundFollowsItsCompletions(t *testing.T) {
	g := newLedger()
	var rounds, seen atomic.Int64
	f := newFixture(t, Options{Fsync: OnCommit, AfterRound: func() {
		rounds.Add(1)
		seen.Store(int64(len(g.outcomes())))
	}})
	gate := f.block(fstest.OpSync, ".log")
	for i := range 10 {
		if _, err := f.log.Append(entry("x"), g); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			<-gate.Arrived()
		}
	}
	gate.Open()
	g.wait(t, 10)
	until(t, "the rounds end", func() bool { return seen.Load() == 10 })
	if rounds.Load() != 2 {
		t.Fatalf("%d rounds, want 2", rounds.Load())
	}
}

// TestOneWritePerRound: what gathered goes out with one write and one flush.
func TestOneWritePerRound(t *testing.T) {
	f := newFixture(t, Options{Fsync: OnCommit})
	gate := f.block(fstest.OpSync, ".log")
	g := newLedger()
	for i := range 100 {
		if _, err := f.log.Append(entry("x"), g); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			<-gate.Arrived()
		}
	}
	writes, syncs := f.faults.Writes(), f.faults.Syncs()
	gate.Open()
	g.wait(t, 100)
	if err := f.log.Flush(); err != nil {
		t.Fatal(err)
	}
	// The second round's batches, and the mark after each of the two.
	if w, s := f.faults.Writes()-writes, f.faults.Syncs()-syncs; w != 3 || s != 1 {
		t.Fatalf("%d writes and %d flushes", w, s)
	}
}

// TestIdleLogsAreNotFlushed: 200 logs in periodic mode, written once, cost one
// flush each and then none, and no timer runs.
func TestIdleLogsAreNotFlushed(t *testing.T) {
	mem := fstest.New(1)
	faults := fstest.NewFaults(mem)
	clock := newTestClock()
	logs := make([]*Log, 200)
	for i := range logs {
		l, err := Open(faults, "logs/"+string(rune('A'+i%26))+string(rune('a'+i/26)), Options{
			Name: "t", Fsync: Periodic, FsyncInterval: time.Second, Clock: clock,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		logs[i] = l
	}
	base := faults.Syncs()
	clock.advance(10 * time.Second)
	if n := faults.Syncs() - base; n != 0 || clock.armed() != 0 {
		t.Fatalf("%d flushes of logs never written, %d timers", n, clock.armed())
	}
	for _, l := range logs {
		if _, err := l.AppendWait(entry("x")); err != nil {
			t.Fatal(err)
		}
	}
	if n := faults.Syncs() - base; n != 0 {
		t.Fatalf("%d flushes before the interval", n)
	}
	clock.advance(time.Second)
	for _, l := range logs {
		if l.Durable() != 1 {
			t.Fatalf("durable %d after the interval", l.Durable())
		}
	}
	for range 5 {
		clock.advance(time.Second)
	}
	if n := faults.Syncs() - base; n != 200 || clock.armed() != 0 {
		t.Fatalf("%d flushes, %d timers, want 200 and none", n, clock.armed())
	}
}

// TestReadersAndOtherLogsDoNotWaitForASlowFlush: a flush that hangs holds up the
// appends of its own log alone.
func TestReadersAndOtherLogsDoNotWaitForASlowFlush(t *testing.T) {
	for _, op := range []fstest.Op{fstest.OpSync, fstest.OpWrite} {
		f := newFixture(t, Options{Fsync: OnCommit, Gate: NewGate(2)})
		other, err := Open(f.faults, "logs/other", f.log.opts)
		if err != nil {
			t.Fatal(err)
		}
		f.append(entry("seen"))
		gate := f.block(op, testDir)
		g := newLedger()
		if _, err := f.log.Append(entry("hidden"), g); err != nil {
			t.Fatal(err)
		}
		<-gate.Arrived()
		if _, err := f.log.Append(entry("queued"), g); err != nil {
			t.Fatal(err)
		}
		if _, err := other.AppendWait(entry("x")); err != nil {
			t.Fatal(err)
		}
		if got := f.payloads(); len(got) != 1 || got[0] != "seen" || f.log.Tail() != 1 {
			t.Fatalf("read %q, tail %d: not committed yet", got, f.log.Tail())
		}
		gate.Open()
		g.wait(t, 2)
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
