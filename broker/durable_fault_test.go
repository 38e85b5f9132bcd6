package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/storage/fs/fstest"
)

// A disk that stands still holds the publishes of its own shard, up to their
// bounds, and nobody else's.
func TestSlowDiskHoldsOnlyItsShard(t *testing.T) {
	d, disk := inMemory(t, syncing(), Config{})
	shards := d.durable("s", 2)
	for _, sh := range shards {
		d.sent(sh, batchOf("opens the log"))
	}
	gate := disk.Block(fstest.OpSync, shardDir("s", 0))
	var slow outcomes
	const held = 100
	for range held {
		d.must(d.Publish(t.Context(), shards[0], d.id, sized(1000), Fail, &slow))
	}
	<-gate.Arrived()
	for i := range 50 {
		if at := d.sent(shards[1], batchOf("x")); at != uint64(i+1) {
			t.Fatalf("offset %d", at)
		}
	}
	if n := len(slow.all()); n != 0 {
		t.Fatalf("%d answered before the disk did", n)
	}
	if got := d.Stats().InflightBytes; got != held*1000 {
		t.Fatalf("%d bytes are charged for what is not committed", got)
	}
	if _, tail := shards[0].Bounds(); tail != 1 {
		t.Fatalf("tail %d", tail)
	}
	if st := shards[0].Status(); st.Pending != held || st.State != stream.Serving {
		t.Fatalf("%+v", st)
	}
	// A drain waits for them.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := d.Drain(ctx); err != context.Canceled {
		t.Fatal(err)
	}
	gate.Open()
	d.must(d.Drain(t.Context()))
	for i, r := range slow.all() {
		if r.Err != nil || r.Offset != uint64(i+1) {
			t.Fatalf("publish %d: %+v", i, r)
		}
	}
	if st := d.Stats(); len(slow.all()) != held || st.InflightBytes != 0 {
		t.Fatalf("%d answers, %+v", len(slow.all()), st)
	}
}

// The log takes what its bound allows and holds the lane after that; what is
// held goes on by itself.
func TestFullLogHoldsTheLane(t *testing.T) {
	log := syncing()
	log.MaxPendingBytes = 10_000
	d, disk := inMemory(t, log, Config{})
	sh := d.durable("s", 1)[0]
	d.sent(sh, batchOf("opens the log"))
	gate := disk.Block(fstest.OpSync, ".log")
	var done outcomes
	for range 50 {
		d.must(d.Publish(t.Context(), sh, d.id, sized(1000), Fail, &done))
	}
	if st := d.Stats().Publish; st.Busy != 1 || st.Queued < 35 {
		t.Fatalf("%+v", st)
	}
	disk.Clear()
	gate.Open()
	eventually(t, "all are answered", func() bool { return len(done.all()) == 50 })
	eventually(t, "no place is kept", func() bool { return sh.Status().Pending == 0 })
	for i, r := range done.all() {
		if r.Err != nil || r.Offset != uint64(i+1) {
			t.Fatalf("publish %d: %+v", i, r)
		}
	}
}

// A full disk refuses what it cannot keep, keeps nothing of it, and takes
// writes again by itself when there is room (BR-13).
func TestFullDiskHeals(t *testing.T) {
	inner := fstest.New(1)
	disk := fstest.NewFaults(inner)
	d := openDurable(t, disk, root, manySegments(), Config{})
	sh := d.durable("s", 1)[0]
	sub := d.subscribeAt(sh, stream.SubscribeOptions{Policy: stream.Block})
	d.fill(sh, 20, 2)
	disk.SetQuota(30_000)
	acked := uint64(20)
	var wait sync.WaitGroup
	full := make([]int, 4)
	var mu sync.Mutex
	var kept []uint64
	for w := range full {
		wait.Go(func() {
			for range 60 {
				r := d.send(sh, batchOf(strings.Repeat("x", 300), "y"))
				var storage *StorageFullError
				switch {
				case r.Err == nil:
					mu.Lock()
					kept = append(kept, r.Offset)
					mu.Unlock()
				case errors.As(r.Err, &storage):
					full[w]++
				default:
					t.Errorf("%+v", r)
				}
			}
		})
	}
	wait.Wait()
	acked += 2 * uint64(len(kept))
	if slices.Max(full) == 0 || len(kept) == 0 {
		t.Fatalf("%d kept, %v refused", len(kept), full)
	}
	all := readAll(t, sh, 0)
	if uint64(len(all)) != acked {
		t.Fatalf("%d records, %d acked", len(all), acked)
	}
	f := &follower{t: t, sub: sub}
	for f.next < acked {
		pieces, err := f.sub.Next(t.Context())
		d.must(err)
		for _, p := range pieces {
			if p.Offset() != f.next {
				t.Fatalf("a subscriber got %d, expected %d", p.Offset(), f.next)
			}
			f.next += uint64(p.Count())
			p.Release()
		}
	}
	// A start on the full disk serves reads.
	d.close()
	d = openDurable(t, disk, root, manySegments(), Config{})
	sh = d.durable("s", 1)[0]
	if got := readAll(t, sh, 0); fmt.Sprint(got) != fmt.Sprint(all) {
		t.Fatalf("%d records after a start on the full disk", len(got))
	}
	disk.LiftQuota()
	if at := d.sent(sh, batchOf(strings.Repeat("x", 300))); at != acked {
		t.Fatalf("offset %d after it healed, want %d", at, acked)
	}
}

// A sync that fails leaves the outcome of its publishes unknown and the shard
// without writes; what is durable is read on, and other shards serve.
func TestFailedSyncLeavesReads(t *testing.T) {
	inner := fstest.New(1)
	disk := fstest.NewFaults(inner)
	d := openDurable(t, disk, root, manySegments(), small())
	shards := d.durable("s", 2)
	sh := shards[0]
	d.fill(sh, 200, 3)
	d.sent(shards[1], batchOf("x"))
	replay := d.subscribeAt(sh, stream.SubscribeOptions{Start: stream.Earliest()})
	disk.FailSync(shardDir("s", 0), 0)
	var lost *StorageFailedError
	if r := d.send(sh, numberedBatch(200, 1)); !errors.As(r.Err, &lost) || !strings.Contains(lost.Error(), "s/0") {
		t.Fatalf("%+v", r)
	}
	var unavailable *UnavailableError
	if r := d.send(sh, numberedBatch(200, 1)); !errors.As(r.Err, &unavailable) || unavailable.Reason != stream.Failed {
		t.Fatalf("%+v", r)
	}
	if st := sh.Status(); st.State != stream.ReadOnly || st.Err == nil || st.Tail != 200 {
		t.Fatalf("%+v", st)
	}
	f := follow(t, replay)
	d.must(f.until(200))
	if n := len(readAll(t, sh, 0)); n != 200 {
		t.Fatalf("%d records", n)
	}
	again := follow(t, d.subscribeAt(sh, stream.SubscribeOptions{Start: stream.Earliest()}))
	d.must(again.until(200))
	d.sent(shards[1], batchOf("y"))
	d.close()

	// The next start finds what was durable, at least.
	d = openDurable(t, inner, root, manySegments(), small())
	sh = d.durable("s", 2)[0]
	if n := len(readAll(t, sh, 0)); n < 200 || n > 201 {
		t.Fatalf("%d records", n)
	}
}

// A full queue under block holds the publishes of its shard behind it, in
// order and without the disk; the lane, the other shards and the log go on.
func TestBlockHoldsTheCommitsBehind(t *testing.T) {
	d, _ := inMemory(t, syncing(), Config{})
	shards := d.durable("s", 2)
	sh := shards[0]
	d.must(sh.Ready(t.Context()))
	sub := d.subscribeAt(sh, stream.SubscribeOptions{Policy: stream.Block, Capacity: 1})
	quick := follow(t, d.subscribeAt(sh, stream.SubscribeOptions{}))
	const n = 60
	results := make([]awaited, n)
	for i := range n {
		results[i] = make(awaited, 1)
		d.must(d.Publish(t.Context(), sh, d.id, numberedBatch(uint64(i), 1), Fail, results[i]))
	}
	results[0].wait(t)
	d.must(quick.until(2)) // the others get the batch that waits
	d.sent(shards[1], batchOf("x"))
	eventually(t, "all are on disk", func() bool { return sh.Status().Durable == n })
	for i := 1; i < n; i++ {
		if len(results[i]) > 0 {
			t.Fatalf("publish %d was answered before its turn", i)
		}
	}
	if _, tail := sh.Bounds(); tail != 2 {
		t.Fatalf("tail %d", tail)
	}
	f := follow(t, sub)
	d.must(f.until(n))
	for i := 1; i < n; i++ {
		if r := results[i].wait(t); r.Err != nil || r.Offset != uint64(i) {
			t.Fatalf("publish %d: %+v", i, r)
		}
	}
	eventually(t, "nothing is pending", func() bool { return sh.Status().Pending == 0 })
}

// A completion that panics in a round costs nobody else anything.
func TestPanickingCompletionOnDisk(t *testing.T) {
	d, _ := inMemory(t, syncing(), Config{})
	sh := d.durable("s", 1)[0]
	var b bomb
	for range 5 {
		d.must(d.Publish(t.Context(), sh, d.id, batchOf("x"), Fail, &b))
		d.sent(sh, batchOf("y"))
	}
	if n := b.heard.Load(); n != 5 {
		t.Fatalf("%d completions", n)
	}
	// A batch gives its place back behind its completion.
	eventually(t, "no place is kept", func() bool { return sh.Status().Pending == 0 })
	if st := d.Stats(); st.Publish.Panics != 5 || st.InflightBytes != 0 {
		t.Fatalf("%+v", st)
	}
}
