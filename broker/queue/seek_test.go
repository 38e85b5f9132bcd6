package queue

import (
	"context"
	"testing"
	"time"

	"github.com/felixlog/felix/broker/queue/tracker"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/shardlog"
)

func (n *node) seek(r Ref, to Position, ifNew bool, want Moved) {
	n.t.Helper()
	moved, err := n.Seek(n.t.Context(), r, to, ifNew)
	if err != nil || moved != want {
		n.t.Fatalf("%+v, %v, want %+v", moved, err, want)
	}
}

func at(offset uint64) Position { return Position{Kind: At, Offset: offset} }

// A group is created where it is told, once, and moved either way; it stands
// there after a power loss, and what was counted before counts no more.
func TestSeek(t *testing.T) {
	mem := fstest.New(1)
	n := newNodeOn(t, mem, Config{})
	sh := n.stream("s")
	n.fill(sh, 10)
	r := n.ref(sh, "g")
	n.seek(r, Position{Kind: Latest}, true, Moved{10, true})
	n.seek(r, at(3), true, Moved{10, false})
	n.takes(r, 5, "")
	n.seek(r, at(4), false, Moved{4, true})
	n.takes(r, 3, "4 5 6")
	n.acked(r, 5)
	for range 2 {
		n.must(n.Nack(r, 4, 0, 0))
		n.take(r, 1)
	}
	n.must(n.DeadLetter(t.Context(), r, 6))
	n.seek(r, Position{Kind: Earliest}, false, Moved{0, true})
	// Claims of before are void, at the new position and above.
	for _, offset := range []uint64{4, 5, 6} {
		if err := n.ack(r, offset); !isA[*tracker.StaleError](err) {
			t.Fatal(offset, err)
		}
		if err := n.Nack(r, offset, 1, 0); !isA[*tracker.StaleError](err) {
			t.Fatal(offset, err)
		}
	}
	next := mem.Crash(1)
	n.again(next)
	mem = next
	sh = n.stream("s")
	r = n.ref(sh, "g")
	if got := n.dead(r); got != "[6]" {
		t.Fatal(got)
	}
	n.takes(r, 10, "0 1 2 3 4 5 6 7 8 9")
	n.acked(r, 0, 1)
	n.seek(r, at(8), false, Moved{8, true})
	n.acked(r, 3) // below: a duplicate
	n.takes(r, 5, "8 9")
	for _, to := range []Position{at(11), {Kind: At, Offset: 1 << 60}} {
		if _, err := n.Seek(t.Context(), r, to, false); !isA[*tracker.InvalidError](err) {
			t.Fatal(err)
		}
	}
	n.seek(r, at(10), false, Moved{10, true})
	n.takes(r, 5, "")
}

// While the seek is being written polls and settles wait, and everything else of
// the broker goes on; when it cannot be written nothing has changed.
func TestSeekIsExclusive(t *testing.T) {
	faults := fstest.NewFaults(fstest.New(1))
	n := newNodeOn(t, faults, Config{MaxWait: time.Hour})
	sh, other := n.stream("s"), n.stream("other")
	n.fill(sh, 5)
	n.fill(other, 5)
	r, elsewhere := n.ref(sh, "g"), n.ref(other, "g")
	n.takes(r, 2, "0 1")
	n.takes(elsewhere, 1, "0")
	n.describe(r)
	n.describe(elsewhere)

	gate := faults.Block(fstest.OpSync, "groups/t_n_s_")
	sought := make(chan error, 1)
	go func() {
		_, err := n.Seek(t.Context(), r, at(4), false)
		sought <- err
	}()
	<-gate.Arrived()
	end := n.poll(t.Context(), r, PollOptions{MaxRecords: 5, Holder: holder("c")})
	settled := make(chan error, 2)
	go func() { settled <- n.Nack(r, 0, 0, 0) }()
	go func() {
		done := make(wait, 1)
		n.Ack(r, 1, done)
		settled <- <-done
	}()
	n.acked(elsewhere, 0)
	select {
	case p := <-end:
		t.Fatalf("polled during the seek: %+v", p)
	case err := <-settled:
		t.Fatalf("settled during the seek: %v", err)
	default:
	}
	gate.Open()
	n.must(<-sought)
	n.gets(end, "4")
	for range 2 {
		n.must(<-settled) // duplicates below the new position
	}

	for name, fail := range map[string]func(){
		"refused": func() { faults.FailWrite("groups/t_n_s_", 0, fstest.ErrNoSpace) },
	} {
		fail()
		if _, err := n.Seek(t.Context(), r, at(0), false); !isA[*shardlog.FullError](err) {
			t.Fatal(name, err)
		}
		faults.Clear()
		if i := n.describe(r); i.Committed != 4 || i.InFlight != 1 {
			t.Fatalf("%+v", i)
		}
		n.acked(r, 4)
	}
}

// A seek waits for what was being written when it came: a dead letter under way
// is listed, and finished, before the group moves.
func TestASeekWaitsForWhatIsUnderWay(t *testing.T) {
	faults := fstest.NewFaults(fstest.New(1))
	n := newNodeOn(t, faults, Config{})
	sh := n.stream("s")
	n.fill(sh, 3)
	r, other := n.ref(sh, "g"), n.ref(sh, "other")
	n.takes(r, 2, "0 1")
	n.takes(other, 3, "0 1 2")
	n.describe(r)
	n.describe(other)
	gate := faults.Block(fstest.OpSync, "dead-letters")
	buried, sought := make(chan error, 1), make(chan error, 1)
	go func() { buried <- n.DeadLetter(t.Context(), r, 0) }()
	<-gate.Arrived()
	go func() {
		_, err := n.Seek(t.Context(), r, at(2), false)
		sought <- err
	}()
	g := n.find(r)
	defer g.release()
	until(t, "the seek has begun", func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.exclusive != nil
	})
	n.acked(other, 0, 1, 2) // rounds of the log that would carry the seek
	select {
	case err := <-sought:
		t.Fatal("the group has moved before ", err)
	default:
	}
	gate.Open()
	n.must(<-buried)
	n.must(<-sought)
	if i := n.describe(r); i.Committed != 2 || i.DeadLetters != 1 {
		t.Fatalf("%+v", i)
	}
}

// A seek whose caller gives up lands or not, and the group goes on.
func TestASeekGivenUp(t *testing.T) {
	faults := fstest.NewFaults(fstest.New(1))
	n := newNodeOn(t, faults, Config{})
	sh := n.stream("s")
	n.fill(sh, 5)
	r := n.ref(sh, "g")
	n.takes(r, 1, "0")
	n.describe(r)
	gate := faults.Block(fstest.OpSync, "groups")
	ctx, cancel := context.WithCancel(t.Context())
	sought := make(chan error, 1)
	go func() {
		_, err := n.Seek(ctx, r, at(3), false)
		sought <- err
	}()
	<-gate.Arrived()
	cancel()
	if err := <-sought; err == nil {
		t.Fatal("no error")
	}
	gate.Open()
	until(t, "it lands", func() bool { return n.describe(r).Committed == 3 })
	n.takes(r, 1, "3")
}

// A deleted group begins anew: nothing is left of it on disk or in memory, and
// claims of before are stale.
func TestDelete(t *testing.T) {
	mem := fstest.New(1)
	n := newNodeOn(t, mem, Config{})
	sh := n.stream("s")
	n.fill(sh, 6)
	r, neighbour := n.ref(sh, "g"), n.ref(sh, "g2")
	remove := func(r Ref, want bool) {
		t.Helper()
		if existed, err := n.Delete(t.Context(), r); err != nil || existed != want {
			t.Fatal(existed, err)
		}
	}
	remove(r, false)
	n.takes(neighbour, 2, "0 1")
	n.must(n.DeadLetter(t.Context(), neighbour, 1))
	n.takes(r, 5, "0 1 2 3 4")
	n.acked(r, 0)
	n.must(n.DeadLetter(t.Context(), r, 1))
	n.must(n.DeadLetter(t.Context(), r, 2))
	n.must(n.Redrive(t.Context(), r, 2))
	n.must(n.Nack(r, 3, 0, 0))
	n.takes(r, 5, "2 3x2 5")
	remove(r, true)
	remove(r, false)
	if err := n.ack(r, 4); !isA[*tracker.StaleError](err) {
		t.Fatal(err)
	}
	if i := n.describe(r); i.HasCommitted || i.InFlight != 0 || i.Owed != 0 || i.DeadLetters != 0 || i.HighWater != 0 {
		t.Fatalf("%+v", i)
	}
	in, err := n.shardOf(sh)
	n.must(err)
	if marks, letters := in.marks.Opened().Index.Len(), in.letters.Opened().Index.Len(); marks != 2 || letters != 1 {
		t.Fatalf("%d keys and %d dead letters are left, of the neighbour are 2 and 1", marks, letters)
	}
	n.takes(r, 2, "0 1")
	n.must(n.Nack(r, 0, 0, 0))
	remove(r, true)
	n.again(mem.Crash(2))
	sh = n.stream("s")
	r = n.ref(sh, "g")
	n.takes(r, 2, "0 1")
	neighbour = n.ref(sh, "g2")
	if got := n.dead(neighbour); got != "[1]" {
		t.Fatal(got)
	}
	n.takes(neighbour, 1, "0x2")
}

// A deletion that fails leaves the group where it stood, to be deleted again.
func TestADeletionThatFails(t *testing.T) {
	faults := fstest.NewFaults(fstest.New(1))
	n := newNodeOn(t, faults, Config{})
	sh := n.stream("s")
	n.fill(sh, 6)
	r := n.ref(sh, "g")
	n.takes(r, 3, "0 1 2")
	n.acked(r, 0)
	faults.FailWrite("groups", 0, fstest.ErrNoSpace)
	if _, err := n.Delete(t.Context(), r); !isA[*shardlog.FullError](err) {
		t.Fatal(err)
	}
	faults.Clear()
	if i := n.describe(r); i.Committed != 1 || i.InFlight != 2 {
		t.Fatalf("%+v", i)
	}
	if existed, err := n.Delete(t.Context(), r); err != nil || !existed {
		t.Fatal(existed, err)
	}
}

// A poll that has claimed and still reads when the group is moved hands out
// nothing of what it claimed.
func TestASeekUnderAPoll(t *testing.T) {
	n := newNode(t, Config{})
	sh := n.stream("s")
	n.fill(sh, 6)
	src := &tampered{Source: sh}
	r := Ref{Shard: src, Group: "g"}
	n.must(n.Ready(t.Context(), r))
	for _, c := range []struct {
		move func()
		want string
	}{
		{func() { n.seek(r, at(4), false, Moved{4, true}) }, "4 5"},
		{func() { n.seek(r, at(2), false, Moved{2, true}) }, "2 3"},
		{func() {
			if _, err := n.Delete(t.Context(), r); err != nil {
				t.Error(err)
			}
		}, "0 1"},
	} {
		n.seek(r, at(0), false, Moved{0, true})
		src.read = func() {
			src.read = nil
			c.move()
		}
		n.takes(r, 2, c.want)
		if i := n.describe(r); i.InFlight != 2 {
			t.Fatalf("%+v", i)
		}
	}
}
