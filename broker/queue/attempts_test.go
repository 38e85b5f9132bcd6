package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/storage/fs/fstest"
)

// BR-30: a record that takes the broker down with each delivery comes to the
// dead letters after at most one delivery more than it has attempts, in the
// middle of others and as the very first of its group.
func TestAPoisonRecordAndACrashLoop(t *testing.T) {
	const attempts = 5
	for _, poison := range []uint64{0, 3} {
		for seed := range uint64(campaign(10, 200)) {
			mem := fstest.New(seed)
			n := newNodeOn(t, mem, Config{MaxAttempts: attempts})
			sh := n.stream("s")
			n.fill(sh, 6)
			deliveries := 0
			for life := 0; ; life++ {
				if life > 50 {
					t.Fatalf("seed %d: delivered %d times and still in play", seed, deliveries)
				}
				r := n.ref(sh, "g")
				crashed := false
				for records := n.take(r, 1); len(records) > 0; records = n.take(r, 1) {
					if records[0].Offset == poison {
						deliveries++
						crashed = true
						break
					}
					n.acked(r, records[0].Offset)
				}
				if !crashed {
					break
				}
				next := mem.Crash(seed + uint64(life))
				n.again(next)
				mem = next
				sh = n.stream("s")
			}
			i := n.describe(n.ref(sh, "g"))
			if deliveries < attempts || deliveries > attempts+1 || i.DeadLetters != 1 || i.Committed != 6 {
				t.Fatalf("seed %d: delivered %d times, %+v", seed, deliveries, i)
			}
			n.stop()
		}
	}
}

// BR-29: three workers that never finish anything, a broker killed ten times:
// every poison record is listed once, and the cursor stands at the tail.
func TestPoisonRecordsAreListedOnce(t *testing.T) {
	const records = 1000
	mem := fstest.New(1)
	n := newNodeOn(t, mem, Config{Visibility: 100 * time.Millisecond, MaxAttempts: 3, MaxWait: time.Hour})
	sh := n.stream("s")
	n.fill(sh, records)
	rng := rand.New(rand.NewPCG(1, 1))
	for life := range 11 {
		r := n.ref(sh, "g")
		ctx, cancel := context.WithCancel(t.Context())
		var workers sync.WaitGroup
		for id := range 3 {
			workers.Go(func() {
				for ctx.Err() == nil {
					o := PollOptions{MaxRecords: 1 + id*20, Wait: time.Second, Holder: holder(fmt.Sprint(id))}
					if _, err := n.Poll(ctx, r, o); err != nil && ctx.Err() == nil && life == 10 {
						t.Error(err)
						return
					}
				}
			})
		}
		if life < 10 {
			before := n.Stats().Delivered
			for n.Stats().Delivered < before+uint64(rng.IntN(300)) {
				n.clock.advance(50 * time.Millisecond)
				time.Sleep(time.Millisecond)
			}
			next := mem.Crash(uint64(life))
			cancel()
			workers.Wait()
			n.again(next)
			mem = next
			sh = n.stream("s")
			continue
		}
		until(t, "the cursor is at the tail", func() bool {
			n.clock.advance(100 * time.Millisecond)
			return n.describe(r).Committed == records
		})
		cancel()
		workers.Wait()
		dead, err := n.DeadLetters(t.Context(), r)
		n.must(err)
		if len(dead) != records {
			t.Fatalf("%d dead letters of %d", len(dead), records)
		}
		for i, offset := range dead {
			if offset != uint64(i) {
				t.Fatalf("dead letter %d is of offset %d", i, offset)
			}
		}
		if i := n.describe(r); i.InFlight != 0 || i.Owed != 0 {
			t.Fatalf("%+v", i)
		}
		in, err := n.shardOf(sh)
		n.must(err)
		until(t, "no count is left", func() bool { return in.marks.Opened().Index.Len() == 1 })
	}
}

// A second delivery waits until its count is on disk, a first one of a group
// with a mark does not wait, and the very first does.
func TestWhatAHandOutWaitsFor(t *testing.T) {
	faults := fstest.NewFaults(fstest.New(1))
	n := newNodeOn(t, faults, Config{})
	sh := n.stream("s")
	n.fill(sh, 4)
	r := n.ref(sh, "g")
	poll := func(want string, waits bool) {
		t.Helper()
		gate := faults.Block(fstest.OpSync, "groups")
		end := n.poll(t.Context(), r, PollOptions{MaxRecords: 1, Holder: holder("c")})
		if waits {
			<-gate.Arrived()
			select {
			case p := <-end:
				t.Fatalf("handed out before it is on disk: %+v", p)
			default:
			}
			gate.Open()
			n.gets(end, want)
		} else {
			n.gets(end, want)
			gate.Open()
		}
		n.describe(r) // what was not waited for is on disk
		faults.Clear()
	}
	poll("0", true)
	poll("1", false)
	n.must(n.Nack(r, 0, 0, 0))
	poll("0x2", true)
	poll("2", false)
}

// A hand-out that did not happen does not count, on disk neither.
func TestCountsOfHandOutsThatDidNotHappen(t *testing.T) {
	mem := fstest.New(1)
	n := newNodeOn(t, mem, Config{})
	sh := n.stream("s")
	n.fill(sh, 2)
	r := n.ref(sh, "g")
	n.takes(r, 2, "0 1")
	n.must(n.Nack(r, 0, 0, 0))
	n.must(n.Nack(r, 1, 0, 0))
	for range 4 {
		n.Unclaim(r, n.takes(r, 2, "0x2 1x2"))
	}
	n.takes(r, 2, "0x2 1x2")
	n.must(n.Nack(r, 0, 0, 0))
	n.Unclaim(r, n.takes(r, 1, "0x3"))
	n.describe(r)
	until(t, "counts are written", func() bool { g := n.find(r); defer g.release(); return g.outboxQuiet() })
	n.again(mem.Crash(4))
	r = n.ref(n.stream("s"), "g")
	n.takes(r, 2, "0x3 1x3")
}

// A count that cannot be written leaves the record where it was; others of the
// poll are handed out.
func TestACountThatCannotBeWritten(t *testing.T) {
	faults := fstest.NewFaults(fstest.New(1))
	n := newNodeOn(t, faults, Config{})
	sh := n.stream("s")
	n.fill(sh, 3)
	r := n.ref(sh, "g")
	n.takes(r, 2, "0 1")
	n.describe(r)
	n.must(n.Nack(r, 0, 0, 0))
	faults.FailWrite("groups", 0, fstest.ErrNoSpace)
	n.takes(r, 3, "2")
	if _, err := n.Poll(t.Context(), r, PollOptions{MaxRecords: 3, Holder: holder("c")}); !errors.Is(err, fstest.ErrNoSpace) {
		t.Fatal(err)
	}
	faults.Clear()
	n.takes(r, 3, "0x2")
}

// The handed mark that moves while it is being written is written once more,
// though nobody waits for it.
func TestTheHandedMarkCatchesUp(t *testing.T) {
	mem := fstest.New(1)
	faults := fstest.NewFaults(mem)
	n := newNodeOn(t, faults, Config{})
	sh := n.stream("s")
	n.fill(sh, 4)
	r := n.ref(sh, "g")
	n.takes(r, 1, "0")
	gate := faults.Block(fstest.OpSync, "groups")
	n.takes(r, 1, "1")
	<-gate.Arrived()
	n.takes(r, 1, "2")
	gate.Open()
	until(t, "the marks are written", func() bool { g := n.find(r); defer g.release(); return g.outboxQuiet() })
	n.again(mem.Crash(1))
	n.takes(n.ref(n.stream("s"), "g"), 4, "0x2 1x2 2x2 3")
}

// A record that was given up is not handed out again, whatever of its traces the
// power loss leaves: its count stays until the position on disk has passed it.
func TestACountOutlivesTheBurial(t *testing.T) {
	for seed := range uint64(20) {
		mem := fstest.New(seed)
		faults := fstest.NewFaults(mem)
		n := newNodeOn(t, faults, Config{Visibility: time.Second, MaxAttempts: 2})
		sh := n.stream("s")
		n.fill(sh, 3)
		r := n.ref(sh, "g")
		n.takes(r, 2, "0 1")
		n.must(n.Nack(r, 1, 0, 0))
		n.takes(r, 1, "1x2")
		other := n.ref(sh, "other")
		n.takes(other, 1, "0")
		n.describe(r)
		n.describe(other)
		first, third := fstest.NewGate(), fstest.NewGate()
		syncs := []fstest.Op{fstest.OpSync}
		faults.Inject(fstest.Rule{Ops: syncs, Path: "groups", Times: 1, Gate: first})
		faults.Inject(fstest.Rule{Ops: syncs, Path: "groups", Skip: 1, Gate: third})
		n.Ack(other, 0, make(wait, 1)) // holds the round that the others gather for
		<-first.Arrived()
		n.Ack(r, 0, make(wait, 1))
		n.must(n.Nack(r, 1, 0, 0)) // the last attempt
		until(t, "the dead letter is listed", func() bool { return n.Stats().DeadLettered == 1 })
		first.Open()
		<-third.Arrived()
		next := mem.Crash(seed)
		third.Open()
		n.again(next)
		r = n.ref(n.stream("s"), "g")
		for _, record := range n.take(r, 3) {
			if record.Offset == 1 {
				t.Fatalf("seed %d: given up, and handed out for the %d. time", seed, record.Attempts)
			}
		}
		n.stop()
	}
}

// A record that is acked while the count of its next delivery is written is not
// handed out any more.
func TestAnAckDuringAHandOut(t *testing.T) {
	faults := fstest.NewFaults(fstest.New(1))
	n := newNodeOn(t, faults, Config{})
	sh := n.stream("s")
	n.fill(sh, 3)
	r := n.ref(sh, "g")
	n.takes(r, 3, "0 1 2")
	n.describe(r)
	n.must(n.Nack(r, 1, 0, 0))
	n.must(n.Nack(r, 2, 0, 0))
	gate := faults.Block(fstest.OpSync, "groups")
	end := n.poll(t.Context(), r, PollOptions{MaxRecords: 5, Holder: holder("c")})
	<-gate.Arrived()
	n.acked(r, 1) // ahead of a gap: answered at once
	gate.Open()
	n.gets(end, "2x2")
}

// A record that is acked while it is read for its next delivery is not handed out,
// and its count is not written.
func TestAnAckDuringARead(t *testing.T) {
	n := newNode(t, Config{})
	sh := n.stream("s")
	n.fill(sh, 2)
	src := &tampered{Source: sh}
	r := Ref{Shard: src, Group: "g"}
	n.must(n.Ready(t.Context(), r))
	n.takes(r, 1, "0")
	n.must(n.Nack(r, 0, 0, 0))
	src.read = func() {
		src.read = nil
		n.acked(r, 0)
	}
	n.takes(r, 1, "1")
	until(t, "all is written", func() bool { g := n.find(r); defer g.release(); return g.outboxQuiet() })
	in, err := n.shardOf(sh)
	n.must(err)
	if keys := in.marks.Opened().Index.Len(); keys != 1 {
		t.Fatalf("%d keys, the position is one", keys)
	}
}

// A record put back from the dead letters gets its attempts anew, and a crash
// with each delivery does not make them endless either.
func TestARedrivenPoisonRecordAndACrashLoop(t *testing.T) {
	const attempts = 4
	for seed := range uint64(campaign(5, 100)) {
		mem := fstest.New(seed)
		n := newNodeOn(t, mem, Config{MaxAttempts: attempts})
		sh := n.stream("s")
		n.fill(sh, 2)
		r := n.ref(sh, "g")
		n.takes(r, 2, "0 1")
		n.must(n.DeadLetter(t.Context(), r, 0))
		n.acked(r, 1)
		n.must(n.Redrive(t.Context(), r, 0))
		deliveries := 0
		for ; len(n.take(r, 1)) > 0; deliveries++ {
			if deliveries > 50 {
				t.Fatalf("seed %d: delivered %d times and still in play", seed, deliveries)
			}
			mem = mem.Crash(seed + uint64(deliveries))
			n.again(mem)
			sh = n.stream("s")
			r = n.ref(sh, "g")
		}
		if i := n.describe(r); deliveries != attempts || i.DeadLetters != 1 || i.Committed != 2 {
			t.Fatalf("seed %d: delivered %d times, %+v", seed, deliveries, i)
		}
		n.stop()
	}
}
