package queue

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/felixlog/felix/storage/fs/fstest"
)

// after lets time pass, and then so many groups are in memory.
func (n *node) after(d time.Duration, groups int) {
	n.t.Helper()
	n.clock.advance(d)
	until(n.t, fmt.Sprint(groups, " groups in memory"), func() bool { return n.Stats().Groups == groups })
}

// A group that nobody uses leaves memory and is built again from disk, with what
// it knew; one with a claim, with a poll that waits, or that remembers what the
// disk does not, stays.
func TestIdleGroupsAreEvicted(t *testing.T) {
	n := newNode(t, Config{Visibility: time.Minute, MaxVisibility: time.Hour, IdleAfter: 10 * time.Minute, MaxWait: time.Hour})
	sh := n.stream("s")
	n.fill(sh, 5)
	idle, claims, waits, ahead := n.ref(sh, "idle"), n.ref(sh, "claims"), n.ref(sh, "waits"), n.ref(sh, "ahead")
	n.takes(idle, 2, "0 1")
	n.acked(idle, 0)
	n.must(n.Nack(idle, 1, 0, 0))
	n.takes(idle, 2, "1x2 2")
	n.must(n.Nack(idle, 1, 0, 0))
	n.must(n.Nack(idle, 2, 0, 0))
	n.takes(ahead, 2, "0 1")
	n.acked(ahead, 1)
	n.must(n.Nack(ahead, 0, 0, 0))
	n.takes(claims, 1, "0")
	if _, err := n.Extend(claims, 0, 1, 25*time.Minute); err != nil {
		t.Fatal(err)
	}
	n.acked(waits, n.take(waits, 5)[0].Offset)
	n.acked(waits, 1, 2, 3, 4)
	end := n.poll(t.Context(), waits, waiting("w", 1))
	n.parked(waits, 1)
	n.after(9*time.Minute, 4)
	n.after(2*time.Minute, 3)
	if err := n.ack(idle, 1); !isA[*UnavailableError](err) {
		t.Fatal(err) // not ready
	}
	n.takes(idle, 5, "1x3 2x2 3 4")
	n.publish(sh, "more")
	n.gets(end, "5")
	n.takes(ahead, 2, "0x2 2")
	n.acked(claims, 0)
	until(t, "all but the one ahead of a gap are evicted", func() bool {
		n.clock.advance(time.Minute) // claims lapse, and are owed
		return n.Stats().Groups == 1
	})
	if st := n.Stats(); st.Evicted != 4 {
		t.Fatalf("%+v", st)
	}
}

// Without groups no timer is set.
func TestNoTimerWithoutGroups(t *testing.T) {
	n := newNode(t, Config{})
	sh := n.stream("s")
	n.ref(sh, "g")
	n.after(10*time.Minute, 0)
	until(t, "no timer", func() bool { set, _ := n.clock.pending(); return set == 0 })
}

// As many groups as may be are in memory: one that is not in use makes room for
// another, and where all are in use a group more is refused.
func TestTooManyGroups(t *testing.T) {
	n := newNode(t, Config{MaxGroups: 3})
	sh := n.stream("s")
	n.fill(sh, 2)
	var refs []Ref
	for i := range 3 {
		refs = append(refs, n.ref(sh, fmt.Sprint("g", i)))
		n.takes(refs[i], 1, "0")
		n.clock.advance(time.Second)
	}
	if err := n.Ready(t.Context(), Ref{Shard: sh, Group: "more"}); !isA[*GroupLimitError](err) {
		t.Fatal(err)
	}
	n.acked(refs[1], 0)
	n.describe(refs[1])
	n.ref(sh, "more")
	if st := n.Stats(); st.Groups != 3 || st.Evicted != 1 {
		t.Fatalf("%+v", st)
	}
	if err := n.ack(refs[1], 0); !isA[*UnavailableError](err) {
		t.Fatal(err)
	}
	n.acked(refs[0], 0)
	n.must(n.Ready(t.Context(), refs[1]))
	n.takes(refs[1], 1, "1")
}

// A stream that is removed and registered again at once finds its groups, and
// what was acked is acked.
func TestTheSameStreamAgain(t *testing.T) {
	n := newNode(t, Config{})
	next := uint64(0)
	var last func()
	rounds := campaign(30, 500)
	for round := range rounds {
		sh := n.stream("s")
		if last != nil {
			go last()
		}
		if round == 0 {
			n.fill(sh, 3*rounds)
		}
		r := n.ref(sh, "g")
		for range 3 {
			records := n.take(r, 1)
			if len(records) != 1 || records[0].Offset != next {
				t.Fatalf("round %d: %v, want %d", round, shown(records), next)
			}
			n.acked(r, next)
			next++
		}
		s := n.streams[len(n.streams)-1]
		s.End(errAgain)
		last = func() { n.End(s.Shard(0), errAgain) }
	}
	last()
}

var errAgain = fmt.Errorf("again")

// Requests while the stream ends get their answer or the cause.
func TestEndUnderLoad(t *testing.T) {
	for seed := range uint64(campaign(20, 300)) {
		n := newNodeOn(t, fstest.New(seed), Config{MaxWait: time.Hour})
		sh := n.stream("s")
		n.fill(sh, 500)
		ended := make(chan error, 4)
		for id := range 4 {
			go func() {
				r := Ref{Shard: sh, Group: fmt.Sprint("g", id%2)}
				for {
					records, err := n.Poll(context.Background(), r, waiting(fmt.Sprint(id), 3))
					for _, record := range records {
						if err == nil {
							err = n.ack(r, record.Offset)
						}
					}
					if err != nil {
						ended <- err
						return
					}
				}
			}()
		}
		until(t, "some are acked", func() bool { return n.Stats().Delivered > 30 })
		n.end(n.streams[0], errAgain)
		for range 4 {
			if err := <-ended; err != errAgain {
				t.Fatal(err)
			}
		}
		n.stop()
	}
}
