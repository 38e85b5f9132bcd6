package queue

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/broker/queue/tracker"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/shardlog"
)

func (n *node) dead(r Ref) string {
	n.t.Helper()
	dead, err := n.DeadLetters(n.t.Context(), r)
	n.must(err)
	return fmt.Sprint(dead)
}

// A dead letter is dropped, or put back in play as if never handed out; what was
// answered is so after a power loss.
func TestDiscardAndRedrive(t *testing.T) {
	mem := fstest.New(1)
	n := newNodeOn(t, mem, Config{Visibility: time.Second, MaxAttempts: 2})
	sh := n.stream("s")
	n.fill(sh, 5)
	r := n.ref(sh, "g")
	n.takes(r, 5, "0 1 2 3 4")
	n.clock.advance(time.Second)
	n.takes(r, 5, "0x2 1x2 2x2 3x2 4x2")
	n.clock.advance(time.Second)
	if got := n.dead(r); got != "[0 1 2 3 4]" {
		t.Fatal(got)
	}
	ctx := t.Context()
	n.must(n.Discard(ctx, r, 1))
	for range 2 {
		if err := n.Discard(ctx, r, 1); !isA[*NotListedError](err) {
			t.Fatal(err)
		}
		if err := n.Redrive(ctx, r, 1); !isA[*NotListedError](err) {
			t.Fatal(err)
		}
	}
	if err := n.Redrive(ctx, r, 99); !isA[*NotListedError](err) {
		t.Fatal(err)
	}
	for range 2 {
		n.must(n.Redrive(ctx, r, 2)) // repeated: it is in play already
	}
	n.must(n.Redrive(ctx, r, 3))
	if err := n.Discard(ctx, r, 2); !isA[*NotListedError](err) {
		t.Fatal(err)
	}
	if i := n.describe(r); i.Committed != 5 || i.Owed != 2 || i.DeadLetters != 2 || !i.Held[0].Redriven {
		t.Fatalf("%+v", i)
	}
	next := mem.Crash(1)
	n.again(next)
	mem = next
	sh = n.stream("s")
	r = n.ref(sh, "g")
	if got := n.dead(r); got != "[0 4]" {
		t.Fatal(got)
	}
	n.takes(r, 5, "2 3")
	n.acked(r, 2)
	n.clock.advance(time.Second)
	next = mem.Crash(2)
	n.again(next)
	mem = next
	sh = n.stream("s")
	r = n.ref(sh, "g")
	n.takes(r, 5, "3x2")       // each delivery of a redriven record counts
	n.must(n.Nack(r, 3, 0, 0)) // the last attempt
	if got := n.dead(r); got != "[0 3 4]" {
		t.Fatal(got)
	}
	n.again(mem.Crash(3))
	r = n.ref(n.stream("s"), "g")
	if i := n.describe(r); i.Committed != 5 || i.Owed != 0 || i.DeadLetters != 3 {
		t.Fatalf("%+v", i)
	}
	n.takes(r, 5, "")
}

// The ack of a redriven record is answered when its letter is gone. When that
// fails it is finished in memory, and a repeated ack tries again.
func TestTheAckOfARedrivenRecord(t *testing.T) {
	mem := fstest.New(1)
	faults := fstest.NewFaults(mem)
	n := newNodeOn(t, faults, Config{})
	sh := n.stream("s")
	n.fill(sh, 2)
	r := n.ref(sh, "g")
	n.takes(r, 2, "0 1")
	n.must(n.DeadLetter(t.Context(), r, 0))
	n.must(n.Redrive(t.Context(), r, 0))
	n.takes(r, 2, "0")
	broken := faults.FailWrite("dead-letters", 0, fstest.ErrIO)
	for range 2 {
		if err := n.ack(r, 0); !isA[*shardlog.IOError](err) {
			t.Fatal(err)
		}
	}
	n.takes(r, 2, "")
	broken.Stop()
	n.acked(r, 0, 0)
	n.again(mem.Crash(1))
	r = n.ref(n.stream("s"), "g")
	if i := n.describe(r); i.Owed != 0 || i.DeadLetters != 0 || i.Committed != 1 {
		t.Fatalf("%+v", i)
	}
}

// A change that fails leaves the list as it was.
func TestLetterChangesThatFail(t *testing.T) {
	faults := fstest.NewFaults(fstest.New(1))
	n := newNodeOn(t, faults, Config{})
	sh := n.stream("s")
	n.fill(sh, 2)
	r := n.ref(sh, "g")
	n.takes(r, 1, "0")
	n.must(n.DeadLetter(t.Context(), r, 0))
	faults.FailWrite("dead-letters", 0, fstest.ErrIO)
	for _, err := range []error{n.Redrive(t.Context(), r, 0), n.Discard(t.Context(), r, 0)} {
		if !isA[*shardlog.IOError](err) {
			t.Fatal(err)
		}
	}
	faults.Clear()
	if i := n.describe(r); i.Owed != 0 || i.DeadLetters != 1 {
		t.Fatalf("%+v", i)
	}
	n.must(n.Redrive(t.Context(), r, 0))
	n.takes(r, 1, "0")
}

// Of two that change the same dead letter at once, one finds what the other made.
func TestLetterChangesAtOnce(t *testing.T) {
	n := newNode(t, Config{})
	sh := n.stream("s")
	r := n.ref(sh, "g")
	for range campaign(50, 1000) {
		n.publish(sh, "x")
		offset := n.take(r, 1)[0].Offset
		n.must(n.DeadLetter(t.Context(), r, offset))
		var errs [2]error
		var both sync.WaitGroup
		both.Go(func() { errs[0] = n.Discard(t.Context(), r, offset) })
		both.Go(func() { errs[1] = n.Redrive(t.Context(), r, offset) })
		both.Wait()
		discarded, inPlay := errs[0] == nil, errs[1] == nil
		if discarded == inPlay {
			t.Fatal(errs)
		}
		want := ""
		if inPlay {
			want = fmt.Sprint(offset)
		}
		n.takes(r, 1, want)
		if inPlay {
			n.acked(r, offset)
		}
		if got := n.dead(r); got != "[]" {
			t.Fatal(got)
		}
	}
}

// A dead letter ahead of a gap stays one when the group is built anew, whether it
// was discarded since or not; put back in play it is handed out as if never
// before, and so is one that a seek went back behind. What says so goes when the
// position has passed.
func TestDeadLettersAheadOfAGap(t *testing.T) {
	mem := fstest.New(1)
	n := newNodeOn(t, mem, Config{MaxAttempts: 6})
	sh := n.stream("s")
	n.fill(sh, 6)
	r := n.ref(sh, "g")
	n.takes(r, 6, "0 1 2 3 4 5")
	restart := func(seed uint64) {
		t.Helper()
		next := mem.Crash(seed)
		n.again(next)
		mem = next
		sh = n.stream("s")
		r = n.ref(sh, "g")
	}
	for range 5 {
		n.must(n.Nack(r, 4, 0, 0))
		n.take(r, 1)
	}
	n.must(n.Nack(r, 4, 0, 0)) // the last attempt
	for _, offset := range []uint64{1, 2, 3} {
		n.must(n.DeadLetter(t.Context(), r, offset))
	}
	if got := n.dead(r); got != "[1 2 3 4]" {
		t.Fatal(got)
	}
	until(t, "all is written", func() bool { g := n.find(r); defer g.release(); return g.outboxQuiet() })
	n.must(n.Discard(t.Context(), r, 2))
	n.must(n.Redrive(t.Context(), r, 3))
	for seed := range uint64(3) {
		restart(seed)
		if got := n.dead(r); got != "[1 4]" {
			t.Fatal(got)
		}
		records := n.take(r, 6)
		if got := shown(records); got[:3] != "0x"+fmt.Sprint(seed+2) || len(records) != 3 || records[1].Offset != 3 || records[2].Offset != 5 {
			t.Fatal(got)
		}
		n.Unclaim(r, records[1:])
	}
	n.seek(r, at(0), false, Moved{0, true})
	if got := n.dead(r); got != "[1 4]" {
		t.Fatal(got)
	}
	restart(7)
	if records := n.take(r, 6); len(records) != 6 {
		t.Fatal(shown(records))
	}
	n.must(n.DeadLetter(t.Context(), r, 5))
	n.acked(r, 0, 1, 2, 3, 4)
	until(t, "one key is left", func() bool {
		in, err := n.shardOf(sh)
		n.must(err)
		return in.marks.Opened().Index.Len() == 1
	})
	if i := n.describe(r); i.Committed != 6 || i.DeadLetters != 3 {
		t.Fatalf("%+v", i)
	}
}

// Who gives up on a record that is being given up waits with the others; an ack
// that comes meanwhile wins, and the dead letter is taken back.
func TestDeadLettersUnderWay(t *testing.T) {
	for name, acked := range map[string]bool{"listed": false, "acked meanwhile": true} {
		faults := fstest.NewFaults(fstest.New(1))
		n := newNodeOn(t, faults, Config{})
		sh := n.stream("s")
		n.fill(sh, 2)
		r := n.ref(sh, "g")
		n.takes(r, 2, "0 1")
		gate := faults.Block(fstest.OpSync, "dead-letters")
		ends := make(chan error, 3)
		for range cap(ends) {
			go func() { ends <- n.DeadLetter(t.Context(), r, 1) }()
		}
		<-gate.Arrived()
		g := n.find(r)
		until(t, "all wait", func() bool {
			g.mu.Lock()
			defer g.mu.Unlock()
			return len(g.burials.dones[1]) == cap(ends)
		})
		g.release()
		if acked {
			n.acked(r, 1)
		}
		gate.Open()
		for range cap(ends) {
			if err := <-ends; isA[*tracker.InvalidError](err) != acked || !acked && err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		want := "[1]"
		if acked {
			want = "[]"
		}
		until(t, name, func() bool { return n.dead(r) == want })
		n.takes(r, 2, "")
	}
}

// Names that would not be told apart on disk are refused.
func TestNamesOfGroups(t *testing.T) {
	n := newNode(t, Config{})
	sh := n.stream("s")
	for _, name := range []string{"", "g\x1f1", "\x1f"} {
		if err := n.Ready(t.Context(), Ref{Shard: sh, Group: name}); !isA[*NameError](err) {
			t.Errorf("%q: %v", name, err)
		}
	}
}
