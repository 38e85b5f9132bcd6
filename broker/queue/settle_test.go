package queue

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/broker/queue/tracker"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/shardlog"
)

// A line collects answers and sends them when it is flushed, as a stream's
// writer does.
type line struct {
	mu             sync.Mutex
	answered, sent int
	flushes        int
	failed         error
}

func (l *line) Settled(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answered++
	l.failed = errors.Join(l.failed, err)
}

func (l *line) Flush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flushes++
	l.sent = l.answered
}

func (l *line) all() (answered, sent, flushes int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.answered, l.sent, l.flushes
}

// Acks that come while the cursor is being written share the next write: many
// acks, two writes, two syncs, and the answers of each leave together.
func TestManyAcksAreOneWrite(t *testing.T) {
	faults := fstest.NewFaults(fstest.New(1))
	n := newNodeOn(t, faults, Config{})
	sh := n.stream("s")
	const acks = 500
	n.fill(sh, acks+1)
	r := n.ref(sh, "g")
	n.take(r, 1000)
	n.describe(r) // the handed mark is written
	writes, syncs := n.Stats().CursorWrites, faults.Syncs()
	gate := faults.Block(fstest.OpSync, "groups")
	l := &line{}
	n.Ack(r, 0, l)
	<-gate.Arrived()
	for offset := range uint64(acks) {
		n.Ack(r, offset+1, l)
	}
	if answered, _, _ := l.all(); answered != 0 {
		t.Fatalf("%d answers before anything is on disk", answered)
	}
	gate.Open()
	until(t, "all are answered and sent", func() bool { _, sent, _ := l.all(); return sent == acks+1 })
	if _, _, flushes := l.all(); l.failed != nil || flushes != 2 {
		t.Fatalf("%d flushes, %v", flushes, l.failed)
	}
	if w, s := n.Stats().CursorWrites-writes, faults.Syncs()-syncs; w != 2 || s != 2 {
		t.Fatalf("%d writes of the cursor and %d syncs for %d acks", w, s, acks+1)
	}
}

// An ack ahead of a gap needs nothing from the disk; the one that closes the gap
// carries all.
func TestAcksAheadOfAGapWriteNothing(t *testing.T) {
	faults := fstest.NewFaults(fstest.New(1))
	n := newNodeOn(t, faults, Config{})
	sh := n.stream("s")
	n.fill(sh, 100)
	r := n.ref(sh, "g")
	n.take(r, 100)
	n.describe(r)
	syncs := faults.Syncs()
	for offset := uint64(99); offset > 0; offset-- {
		n.acked(r, offset, offset)
	}
	if s := faults.Syncs() - syncs; s != 0 {
		t.Fatalf("%d syncs", s)
	}
	n.acked(r, 0)
	if s := faults.Syncs() - syncs; s != 1 {
		t.Fatalf("%d syncs", s)
	}
	if i := n.describe(r); i.Committed != 100 {
		t.Fatalf("%+v", i)
	}
}

// A cursor that cannot be written is an error of the ack, and the record is
// finished all the same; a repeated ack is answered when the cursor is written.
func TestACursorThatCannotBeWritten(t *testing.T) {
	mem := fstest.New(1)
	faults := fstest.NewFaults(mem)
	n := newNodeOn(t, faults, Config{})
	sh := n.stream("s")
	n.fill(sh, 3)
	r := n.ref(sh, "g")
	n.take(r, 3)
	n.describe(r)
	broken := faults.FailWrite("groups", 0, fstest.ErrNoSpace)
	for range 2 {
		if err := n.ack(r, 0); !isA[*shardlog.FullError](err) {
			t.Fatal(err)
		}
	}
	n.acked(r, 2) // ahead of the gap: nothing to write
	if i := n.describe(r); i.HasCommitted || i.InFlight != 1 || i.Owed != 0 {
		t.Fatalf("%+v", i)
	}
	n.clock.advance(time.Hour)
	if _, err := n.Poll(t.Context(), r, PollOptions{MaxRecords: 3, Holder: holder("c")}); !isA[*shardlog.FullError](err) {
		t.Fatal(err) // a second delivery is not counted on disk
	}
	broken.Stop()
	n.takes(r, 3, "1x2")
	n.acked(r, 0)
	if i := n.describe(r); i.Committed != 1 {
		t.Fatalf("%+v", i)
	}
	n.acked(r, 1)
	n.again(mem.Crash(1))
	r = n.ref(n.stream("s"), "g")
	if i := n.describe(r); i.Committed != 3 {
		t.Fatalf("%+v", i)
	}
}

// After a failed sync the outcome is unknown and said to be; the claims go on in
// memory, and what was answered is there after the restart.
func TestAFailedSyncOfTheCursor(t *testing.T) {
	mem := fstest.New(1)
	faults := fstest.NewFaults(mem)
	n := newNodeOn(t, faults, Config{})
	sh := n.stream("s")
	n.fill(sh, 3)
	r := n.ref(sh, "g")
	n.take(r, 3)
	n.acked(r, 0)
	faults.FailSync("groups", 1)
	if failed, ok := errors.AsType[*shardlog.SyncFailedError](n.ack(r, 1)); !ok || !failed.Unknown {
		t.Fatal(failed)
	}
	if err := n.ack(r, 2); !isA[*shardlog.SyncFailedError](err) {
		t.Fatal(err)
	}
	n.takes(r, 3, "")
	n.again(mem.Crash(1))
	r = n.ref(n.stream("s"), "g")
	if i := n.describe(r); i.Committed < 1 || i.Committed > 2 {
		t.Fatalf("%+v", i)
	}
}

// An ack, and its repetition, wait for the write that carries it, not for an
// earlier one that is on its way.
func TestAcksWaitForTheirOwnWrite(t *testing.T) {
	faults := fstest.NewFaults(fstest.New(1))
	n := newNodeOn(t, faults, Config{})
	sh := n.stream("s")
	n.fill(sh, 3)
	r := n.ref(sh, "g")
	n.take(r, 3)
	n.describe(r)
	first, second := fstest.NewGate(), fstest.NewGate()
	faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpSync}, Path: "groups", Times: 1, Gate: first})
	faults.Inject(fstest.Rule{Ops: []fstest.Op{fstest.OpSync}, Path: "groups", Gate: second})
	acks := make([]wait, 3)
	for i := range acks {
		acks[i] = make(wait, 1)
	}
	n.Ack(r, 0, acks[0])
	<-first.Arrived()
	n.Ack(r, 1, acks[1])
	first.Open()
	n.must(<-acks[0])
	<-second.Arrived()
	n.Ack(r, 1, acks[2])
	for _, ack := range acks[1:] {
		if len(ack) > 0 {
			t.Fatal("answered before it is on disk")
		}
	}
	second.Open()
	n.must(<-acks[1])
	n.must(<-acks[2])
}

// What a settle of each offset is answered (wire 12.2).
func TestSettlesThatAreRefused(t *testing.T) {
	n := newNode(t, Config{})
	sh := n.stream("s")
	n.fill(sh, 5)
	r := n.ref(sh, "g")
	n.takes(r, 3, "0 1 2")
	n.acked(r, 0, 0)
	extend := func(offset uint64, attempts uint32) error {
		_, err := n.Extend(r, offset, attempts, time.Second)
		return err
	}
	bury := func(offset uint64) error { return n.DeadLetter(t.Context(), r, offset) }
	for what, c := range map[string]struct {
		err  error
		want string
	}{
		"ack past the tail":         {n.ack(r, 5), "invalid"},
		"ack of one not handed out": {n.ack(r, 4), "invalid"},
		"nack past the tail":        {n.Nack(r, 9, 0, 0), "invalid"},
		"nack not handed out":       {n.Nack(r, 3, 0, 0), "invalid"},
		"nack of a finished one":    {n.Nack(r, 0, 0, 0), "ok"},
		"nack of another delivery":  {n.Nack(r, 1, 2, 0), "stale"},
		"extend another delivery":   {extend(1, 2), "stale"},
		"extend a finished one":     {extend(0, 1), "stale"},
		"dead letter finished":      {bury(0), "invalid"},
		"dead letter past the tail": {bury(5), "invalid"},
	} {
		got := "ok"
		switch {
		case isA[*tracker.InvalidError](c.err):
			got = "invalid"
		case isA[*tracker.StaleError](c.err):
			got = "stale"
		case c.err != nil:
			got = c.err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %v, want %s", what, c.err, c.want)
		}
	}
	if i := n.describe(r); i.InFlight != 2 || i.Committed != 1 {
		t.Fatalf("%+v", i)
	}
}

// A poll that waits delays no ack, however many wait.
func TestAWaitingPollDelaysNoAck(t *testing.T) {
	n := newNode(t, Config{MaxWait: time.Hour})
	sh := n.stream("s")
	n.fill(sh, 3)
	r := n.ref(sh, "g")
	n.takes(r, 3, "0 1 2")
	var ends []<-chan polled
	for i := range 20 {
		ends = append(ends, n.poll(t.Context(), r, waiting(fmt.Sprint(i), 1)))
	}
	n.parked(r, 20)
	n.acked(r, 0, 1, 2)
	if i := n.describe(r); i.Committed != 3 {
		t.Fatalf("%+v", i)
	}
	n.parked(r, 20)
	n.clock.advance(time.Hour)
	for _, end := range ends {
		n.gets(end, "")
	}
}

// A dead letter, once answered, and the cursor behind it survive a power loss.
// If it cannot be listed the record stays where it was.
func TestDeadLetter(t *testing.T) {
	mem := fstest.New(1)
	faults := fstest.NewFaults(mem)
	n := newNodeOn(t, faults, Config{Visibility: 10 * time.Second})
	sh := n.stream("s")
	n.fill(sh, 4)
	r := n.ref(sh, "g")
	n.takes(r, 4, "0 1 2 3")
	broken := faults.FailWrite("dead-letters", 0, fstest.ErrIO)
	if err := n.DeadLetter(t.Context(), r, 1); !isA[*shardlog.IOError](err) {
		t.Fatal(err)
	}
	broken.Stop()
	if i := n.describe(r); i.InFlight != 4 || i.DeadLetters != 0 || i.Held[1].State != tracker.Claimed {
		t.Fatalf("%+v", i)
	}
	n.acked(r, 0)
	n.must(n.DeadLetter(t.Context(), r, 1))
	n.must(n.DeadLetter(t.Context(), r, 3))
	n.again(mem.Crash(9))
	r = n.ref(n.stream("s"), "g")
	if i := n.describe(r); i.Committed != 2 || i.DeadLetters != 2 {
		t.Fatalf("%+v", i)
	}
	dead, err := n.DeadLetters(t.Context(), r)
	if err != nil || fmt.Sprint(dead) != "[1 3]" {
		t.Fatal(dead, err)
	}
}
