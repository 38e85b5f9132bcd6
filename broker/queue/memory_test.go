package queue

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/storage/fs/fstest"
)

// used is what lives in the heap and on stacks, in bytes.
func used() (heap, stacks int64) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc), int64(m.StackInuse)
}

// What a claim costs in memory, whole groups at their bound.
func TestBytesOfAClaim(t *testing.T) {
	const claims, bound = 10_000, 128
	n := newNode(t, Config{MaxInFlight: claims})
	sh := n.stream("s")
	n.fill(sh, claims)
	groups := campaign(10, 100)
	before, _ := used()
	for i := range groups {
		r := n.ref(sh, fmt.Sprint("group-", i))
		for range claims / MaxPollRecords {
			if got := len(n.take(r, MaxPollRecords)); got != MaxPollRecords {
				t.Fatalf("%d records", got)
			}
		}
	}
	after, _ := used()
	if c := n.Stats().Claims; c != groups*claims {
		t.Fatalf("%d claims", c)
	}
	each := (after - before) / int64(groups*claims)
	t.Logf("%d bytes a claim, of %d groups with %d each", each, groups, claims)
	if each > bound {
		t.Errorf("%d bytes a claim, at most %d", each, bound)
	}
	runtime.KeepAlive(n)
}

// A thousand polls that wait cost little, and while nothing happens nothing runs:
// no timer fires and nobody is woken. One record wakes one of them.
func TestAThousandWaitingPolls(t *testing.T) {
	const polls, bound = 1000, 16 << 10
	n := newNode(t, Config{MaxWait: time.Minute})
	sh := n.stream("s")
	r := n.ref(sh, "g")
	heap, stacks := used()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan polled, polls)
	for i := range polls {
		go func() {
			records, err := n.Poll(ctx, r, PollOptions{MaxRecords: 1, Wait: time.Hour, Holder: holder(fmt.Sprint(i % 10))})
			ended <- polled{records, err}
		}()
	}
	n.parked(r, polls)
	heapNow, stacksNow := used()
	each := (heapNow - heap + stacksNow - stacks) / polls
	t.Logf("%d bytes a poll that waits", each)
	if each > bound {
		t.Errorf("%d bytes a poll that waits, at most %d", each, bound)
	}
	_, fired := n.clock.pending()
	for range 59 {
		n.clock.advance(time.Second)
	}
	if _, now := n.clock.pending(); now != fired || n.Stats().Wakeups != 0 {
		t.Fatalf("%d timers fired and %d were woken while nothing happened", now-fired, n.Stats().Wakeups)
	}
	n.publish(sh, "one")
	n.gets(ended, "0")
	n.parked(r, polls-1)
	if st := n.Stats(); st.Wakeups != 1 || st.Waiting != polls-1 {
		t.Fatalf("%d were woken by one record, %d wait", st.Wakeups, st.Waiting)
	}
	cancel()
	for range polls - 1 {
		if p := n.ends(ended); p.err != context.Canceled {
			t.Fatalf("%+v", p)
		}
	}
	if st := n.Stats(); st.Waiting != 0 {
		t.Fatalf("%d wait", st.Waiting)
	}
	in, err := n.shardOf(sh)
	n.must(err)
	in.appends.mu.Lock()
	defer in.appends.mu.Unlock()
	if in.appends.stop != nil || len(in.appends.waiting) != 0 {
		t.Fatal("somebody still listens for appends")
	}
}

// The log of a group that goes on for long is compacted, however much is polled
// and acked.
func TestTheGroupsLogIsCompacted(t *testing.T) {
	n := newNodeOn(t, fstest.New(1), Config{})
	sh := n.stream("s")
	r := n.ref(sh, strings.Repeat("long", 60))
	in, err := n.shardOf(sh)
	n.must(err)
	log := in.marks.Opened().Log
	written := uint64(0)
	for written < 5500 {
		n.fill(sh, 100)
		for _, record := range n.take(r, 100) {
			n.acked(r, record.Offset)
		}
		written = log.Tail()
	}
	until(t, "the log is compacted", func() bool { return log.Bytes() < 1<<20+512<<10 })
	if log.Base() == 0 {
		t.Fatalf("nothing was dropped of %d records", written)
	}
}

// A group that is ready is found without an allocation, whatever the context.
func TestReadyAllocatesNothing(t *testing.T) {
	n := newNode(t, Config{})
	r := n.ref(n.stream("s"), "g")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if allocs := testing.AllocsPerRun(200, func() {
		if err := n.Ready(ended, r); err != nil {
			t.Fatal(err)
		}
	}); allocs != 0 {
		t.Fatalf("%v allocations", allocs)
	}
}
