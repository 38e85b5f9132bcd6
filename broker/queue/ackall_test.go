package queue

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/felixlog/felix/broker/queue/tracker"
	"github.com/felixlog/felix/storage/fs/fstest"
)

// A batchLine hears of batches and their flushes.
type batchLine struct {
	mu      sync.Mutex
	ends    [][]Failure
	flushed int // batches told when it was flushed last
}

func (l *batchLine) SettledAll(failed []Failure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ends = append(l.ends, failed)
}

func (l *batchLine) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flushed = len(l.ends)
}

func (l *batchLine) told() (ends, flushed int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.ends), l.flushed
}

// ackAll acks and gives the failures, "offset: error" each.
func (n *node) ackAll(r Ref, offsets ...uint64) (failed []string) {
	n.t.Helper()
	l := &batchLine{}
	n.AckAll(r, offsets, l)
	until(n.t, "the batch is answered", func() bool { ends, _ := l.told(); return ends == 1 })
	for _, f := range l.ends[0] {
		failed = append(failed, fmt.Sprintf("%d: %v", f.Offset, f.Err))
	}
	return failed
}

// A batch of acks writes the cursor once, whatever its order, and is answered
// when that is on disk; its receiver is flushed behind the answer.
func TestABatchOfAcksIsOneWrite(t *testing.T) {
	faults := fstest.NewFaults(fstest.New(1))
	n := newNodeOn(t, faults, Config{})
	sh := n.stream("s")
	n.fill(sh, 1000)
	r := n.ref(sh, "g")
	n.take(r, 1000)
	n.describe(r) // the handed mark is written
	offsets := make([]uint64, 1000)
	for i := range offsets {
		offsets[i] = uint64(len(offsets) - 1 - i)
	}
	writes, syncs := n.Stats().CursorWrites, faults.Syncs()
	gate := faults.Block(fstest.OpSync, "groups")
	l := &batchLine{}
	n.AckAll(r, offsets, l)
	<-gate.Arrived()
	if ends, _ := l.told(); ends != 0 {
		t.Fatal("answered before it is on disk")
	}
	gate.Open()
	until(t, "answered and flushed", func() bool { ends, flushed := l.told(); return ends == 1 && flushed == 1 })
	if w, s := n.Stats().CursorWrites-writes, faults.Syncs()-syncs; len(l.ends[0]) != 0 || w != 1 || s != 1 {
		t.Fatalf("failed %v; %d writes of the cursor, %d syncs", l.ends[0], w, s)
	}
	if i := n.describe(r); i.Committed != 1000 || i.InFlight != 0 {
		t.Fatalf("%+v", i)
	}
	if failed := n.ackAll(r, 3, 3, 999); failed != nil {
		t.Fatalf("acked again: %v", failed)
	}
}

// Each offset of a batch has the outcome that an ack of its own would have:
// those that cannot be acked do not hinder the others.
func TestABatchOfAcksFailsOneByOne(t *testing.T) {
	n := newNode(t, Config{})
	sh := n.stream("s")
	n.fill(sh, 6)
	r := n.ref(sh, "g")
	n.takes(r, 4, "0 1 2 3")
	l := &batchLine{}
	n.AckAll(r, []uint64{1, 9, 0, 5, 3}, l)
	until(t, "answered", func() bool { ends, _ := l.told(); return ends == 1 })
	failed := l.ends[0]
	if len(failed) != 2 || failed[0].Offset != 9 || failed[1].Offset != 5 ||
		!isA[*tracker.InvalidError](failed[0].Err) || !isA[*tracker.InvalidError](failed[1].Err) {
		t.Fatalf("%v", failed)
	}
	if i := n.describe(r); i.Committed != 2 || i.InFlight != 1 {
		t.Fatalf("%+v", i)
	}
	n.again(n.fs)
	sh = n.stream("s")
	r = n.ref(sh, "g")
	n.takes(r, 1, "2x2")
	if failed := n.ackAll(r, 2); failed != nil {
		t.Fatal(failed)
	}
}

// A write of the cursor that fails fails what waited for it and nothing else,
// and the same batch succeeds when it comes again.
func TestABatchOfAcksWhoseCursorFails(t *testing.T) {
	faults := fstest.NewFaults(fstest.New(1))
	n := newNodeOn(t, faults, Config{})
	sh := n.stream("s")
	n.fill(sh, 10)
	r := n.ref(sh, "g")
	n.take(r, 10)
	n.describe(r)
	faults.FailWrite("groups", 1, errors.New("broken"))
	failed := n.ackAll(r, 0, 1, 5)
	if len(failed) != 2 {
		t.Fatalf("%v", failed)
	}
	if failed := n.ackAll(r, 0, 1, 5); failed != nil {
		t.Fatalf("again: %v", failed)
	}
	if i := n.describe(r); i.Committed != 2 {
		t.Fatalf("%+v", i)
	}
}

// The letter of a redriven record is gone before the batch is answered.
func TestABatchOfAcksEndsRedrives(t *testing.T) {
	n := newNode(t, Config{})
	sh := n.stream("s")
	n.fill(sh, 3)
	r := n.ref(sh, "g")
	n.takes(r, 3, "0 1 2")
	n.must(n.DeadLetter(t.Context(), r, 1))
	n.must(n.Redrive(t.Context(), r, 1))
	n.takes(r, 1, "1")
	if failed := n.ackAll(r, 0, 1, 2); failed != nil {
		t.Fatal(failed)
	}
	n.again(n.fs)
	r = n.ref(n.stream("s"), "g")
	n.takes(r, 3, "")
	if i := n.describe(r); i.Committed != 3 || i.DeadLetters != 0 || i.Owed != 0 {
		t.Fatalf("%+v", i)
	}
}

// A group that is not ready fails all.
func TestABatchOfAcksOfNoGroup(t *testing.T) {
	n := newNode(t, Config{})
	sh := n.stream("s")
	l := &batchLine{}
	n.AckAll(Ref{Shard: sh, Group: "g"}, []uint64{0, 1}, l)
	if len(l.ends) != 1 || len(l.ends[0]) != 2 || !isA[*UnavailableError](l.ends[0][1].Err) {
		t.Fatalf("%v", l.ends)
	}
}
