package queue

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/broker/queue/tracker"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/shardlog"
)

// BR-31: records that are only ever left to lapse come to the dead letters and
// let the cursor pass, though nobody polls any more.
func TestLapsesAloneReachTheDeadLetters(t *testing.T) {
	n := newNode(t, Config{Visibility: time.Second, MaxAttempts: 5})
	sh := n.stream("s")
	const records = 100
	n.fill(sh, records)
	r := n.ref(sh, "g")
	for attempt := range uint32(5) {
		for _, record := range n.take(r, records) {
			if record.Attempts != attempt+1 {
				t.Fatalf("%+v", record)
			}
		}
		n.clock.advance(time.Second)
		if attempt < 4 {
			until(t, "the claims have lapsed", func() bool { return n.Stats().Claims == 0 })
		}
	}
	n.clock.advance(60 * time.Second)
	i := n.describe(r)
	if i.DeadLetters != records || i.Committed != records || i.InFlight != 0 || i.Owed != 0 || i.First.State != tracker.AtTail || !i.NextLapse.IsZero() {
		t.Fatalf("%+v", i)
	}
	n.takes(r, records, "")
	if st := n.Stats(); st.DeadLettered != records {
		t.Fatalf("%+v", st)
	}
}

// The timer alone does it too, without a poll or a description.
func TestTheLapseTimerBuries(t *testing.T) {
	n := newNode(t, Config{Visibility: time.Second, MaxAttempts: 1})
	sh := n.stream("s")
	n.fill(sh, 10)
	r := n.ref(sh, "g")
	n.take(r, 10)
	n.clock.advance(time.Second)
	until(t, "all are given up", func() bool { return n.Stats().DeadLettered == 10 })
	if i := n.describe(r); i.Committed != 10 {
		t.Fatalf("%+v", i)
	}
	if set, _ := n.clock.pending(); set != 1 { // the one that evicts
		t.Fatalf("%d timers are set with nothing in flight", set)
	}
}

// BR-28: the settles of a lapsed claim do not touch the one that followed it.
func TestLateSettles(t *testing.T) {
	n := newNode(t, Config{Visibility: time.Second})
	sh := n.stream("s")
	n.fill(sh, 1)
	r := n.ref(sh, "g")
	n.takes(r, 1, "0")
	n.clock.advance(time.Second)
	n.takes(r, 1, "0x2")
	for range 2 {
		if err := n.Nack(r, 0, 1, 0); !isA[*tracker.StaleError](err) {
			t.Fatal(err)
		}
		if _, err := n.Extend(r, 0, 1, time.Minute); !isA[*tracker.StaleError](err) {
			t.Fatal(err)
		}
	}
	if i := n.describe(r); i.InFlight != 1 || i.Owed != 0 || i.Held[0].Attempts != 2 {
		t.Fatalf("%+v", i)
	}
	n.acked(r, 0, 0)
	if i := n.describe(r); i.InFlight != 0 || i.Owed != 0 || i.Committed != 1 {
		t.Fatalf("%+v", i)
	}
}

// BR-35: acks race the lapse of their claims while a second poller waits and
// every tenth write of the cursor fails. Every record is finished, delivered
// again or both, none is stuck, and none that was answered ok comes again.
func TestAcksRaceTheirLapse(t *testing.T) {
	faults := fstest.NewFaults(fstest.New(1))
	n := newNodeOn(t, faults, Config{Visibility: 50 * time.Millisecond, MaxVisibility: 50 * time.Millisecond, MaxWait: time.Hour, MaxAttempts: 1 << 30})
	sh := n.stream("s")
	rounds := campaign(500, 10_000)
	r := n.ref(sh, "g")
	var finished sync.Map // when the ack of an offset was answered
	var now atomic.Int64
	handed := func(records []Record, since int64) {
		for _, record := range records {
			if at, ok := finished.Load(record.Offset); ok && at.(int64) < since {
				t.Errorf("offset %d again, polled after its ack was answered", record.Offset)
			}
		}
	}
	var acks atomic.Int64
	ack := func(offset uint64) {
		// A failed write answers an error; the same ack again writes again.
		for {
			if acks.Add(1)%10 == 0 {
				faults.FailWrite("groups", 1, fstest.ErrIO)
			}
			if err := n.ack(r, offset); err == nil {
				finished.Store(offset, now.Add(1))
				return
			} else if !isA[*shardlog.IOError](err) {
				t.Error(err)
				return
			}
		}
	}
	stop := make(chan struct{})
	var second sync.WaitGroup
	second.Go(func() {
		for {
			since := now.Add(1)
			records, err := n.Poll(t.Context(), r, PollOptions{MaxRecords: 5, Wait: time.Hour, Holder: holder("second")})
			if err != nil && !isA[*shardlog.IOError](err) {
				t.Error(err)
				return
			}
			handed(records, since)
			for _, record := range records {
				ack(record.Offset)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	for range rounds {
		n.publish(sh, "record")
		since := now.Add(1)
		records, err := n.Poll(t.Context(), r, PollOptions{MaxRecords: 5, Holder: holder("first")})
		if err != nil && !isA[*shardlog.IOError](err) {
			t.Fatal(err)
		}
		handed(records, since)
		var race sync.WaitGroup
		race.Go(func() { n.clock.advance(50 * time.Millisecond) })
		for _, record := range records {
			race.Go(func() { ack(record.Offset) })
		}
		race.Wait()
	}
	_, tail := sh.Bounds()
	until(t, "all are finished", func() bool {
		n.clock.advance(50 * time.Millisecond)
		faults.Clear()
		return n.describe(r).Committed == tail
	})
	close(stop)
	n.publish(sh, "last")
	second.Wait()
	if i := n.describe(r); i.InFlight != 0 || i.Owed != 0 || i.DeadLetters != 0 {
		t.Fatalf("%+v", i)
	}
}

// A wall clock that is set forward or back by an hour ends no claim early and
// leaves none standing.
func TestClockSteps(t *testing.T) {
	n := newNode(t, Config{Visibility: 10 * time.Second})
	sh := n.stream("s")
	n.fill(sh, 2)
	r := n.ref(sh, "g")
	n.takes(r, 1, "0")
	n.clock.advance(-time.Hour) // without a monotonic reading time stands still
	n.takes(r, 1, "1")
	if i := n.describe(r); i.InFlight != 2 {
		t.Fatalf("%+v", i)
	}
	n.clock.advance(time.Hour + 10*time.Second)
	until(t, "both are owed", func() bool { return n.describe(r).Owed == 2 })
}
