package broker

import (
	"errors"
	"testing"

	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/storage"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/segment"
	"github.com/felixlog/felix/storage/shardlog"
)

// What a reader does not take in time while it catches up is read again from
// the log, and does not count as lost.
func TestCatchUpFillsHoles(t *testing.T) {
	d, _ := inMemory(t, syncing(), Config{})
	sh := d.durable("s", 1)[0]
	d.fill(sh, 10, 10)
	sub := d.subscribeAt(sh, stream.SubscribeOptions{Start: stream.Earliest(), Capacity: 2, EndOnDrop: true})
	d.fill(sh, 100, 1) // 2 are queued, 88 find the queue full
	f := follow(t, sub)
	d.must(f.until(40))
	d.fill(sh, 150, 1)
	d.must(f.until(150))
	if batches, _ := sub.Dropped(); f.missing != 0 || f.records != 150 || batches != 0 {
		t.Fatalf("%d records, %d missing, %d batches counted as dropped", f.records, f.missing, batches)
	}
	if pieces, err := sub.Poll(); len(pieces) != 0 || err != nil {
		t.Fatal(pieces, err)
	}
	d.fill(sh, 160, 1) // live now: 2 queued, then it lags
	var lagged *stream.LaggedError
	if err := f.until(160); !errors.As(err, &lagged) || lagged.ResumeFrom != 152 {
		t.Fatal(err)
	}
}

// Room that comes back between two batches leaves a hole before or within what
// is queued; the log fills it before what comes after is delivered.
func TestHolesWithinTheQueueAreFilled(t *testing.T) {
	for capacity := 1; capacity <= 3; capacity++ {
		d, _ := inMemory(t, syncing(), Config{})
		sh := d.durable("s", 1)[0]
		d.fill(sh, 10, 10)
		f := follow(t, d.subscribeAt(sh, stream.SubscribeOptions{Start: stream.Earliest(), Capacity: capacity}))
		next := uint64(11)
		d.fill(sh, next, 1)
		d.must(f.until(10)) // history
		for range 20 {
			held, err := f.sub.Poll() // queued, or missed and read from the log
			d.must(err)
			next += uint64(capacity) // the last one is missed
			d.fill(sh, next, 1)
			f.take(held)
			next++ // and the next one is queued
			d.fill(sh, next, 1)
		}
		d.must(f.until(next))
		if batches, _ := f.sub.Dropped(); f.missing != 0 || batches != 0 || f.records != next {
			t.Errorf("capacity %d: %d records, %d missing, %d batches dropped, of %d", capacity, f.records, f.missing, batches, next)
		}
	}
}

// A reader under block that catches up holds nobody, unless it falls behind
// again and again; one that has caught up does.
func TestBlockWhileCatchingUp(t *testing.T) {
	d, _ := inMemory(t, manySegments(), small())
	sh := d.durable("s", 1)[0]
	d.fill(sh, 100, 10)
	f := follow(t, d.subscribeAt(sh, stream.SubscribeOptions{Start: stream.Earliest(), Capacity: 1, Policy: stream.Block}))
	d.fill(sh, 200, 10) // answered, though nobody reads
	d.must(f.until(200))
	pieces, err := f.sub.Poll()
	d.must(err)
	f.take(pieces)
	hold := func() (results []awaited) {
		_, tail := sh.Bounds()
		for i := range uint64(3) {
			w := make(awaited, 1)
			d.must(d.Publish(t.Context(), sh, d.id, numberedBatch(tail+i, 1), Fail, w))
			results = append(results, w)
		}
		return results
	}
	held := hold()
	eventually(t, "a publish waits", func() bool { return d.Stats().Subscribe.Blocked == 1 })
	if len(held[2]) > 0 {
		t.Fatal("answered past a full queue")
	}
	d.must(f.until(203))
	for _, w := range held {
		d.must(w.wait(t).Err)
	}

	again := follow(t, d.subscribeAt(sh, stream.SubscribeOptions{Start: stream.Earliest(), Capacity: 1, Policy: stream.Block}))
	f.sub.Close()
	d.must(again.until(203))
	rounds := 0
	before := d.Stats().Subscribe.Blocked
	for ; d.Stats().Subscribe.Blocked == before; rounds++ {
		if rounds == 20 {
			t.Fatal("a reader that stays behind never holds anybody")
		}
		held := hold()
		// One that came while the reader looks would find it caught up.
		eventually(t, "all are there, or one waits", func() bool {
			_, tail := sh.Bounds()
			return tail == 203+3*uint64(rounds+1) || d.Stats().Subscribe.Blocked > before
		})
		d.must(again.until(203 + 3*uint64(rounds+1)))
		for _, w := range held {
			d.must(w.wait(t).Err)
		}
	}
	// Each round makes the reader fall behind once to three times.
	if rounds < 2 || again.missing != 0 {
		t.Fatalf("held after %d rounds, %d missing", rounds, again.missing)
	}
}

// Offsets that hold no record are stepped over, and said to be: in history,
// from the ring, live, and in pages.
func TestGenerationStartsAreSkipped(t *testing.T) {
	disk := fstest.New(1)
	log := manySegments()
	d := openDurable(t, disk, root, log, small())
	sh := d.durable("s", 1)[0]
	d.must(sh.Ready(t.Context()))
	raw, err := d.store.OpenLog(t.Context(), storage.Streams, storage.Key{Tenant: testTenant, Namespace: testNamespace, Name: "s"}, storage.LogOptions{})
	d.must(err)
	start := func() {
		block := segment.AppendGenerationBlock(nil, 1)
		_, err := raw.AppendWait(&shardlog.Entry{Kind: segment.GenerationStart, Count: 1, Block: block, Generation: 1})
		d.must(err)
	}
	live := follow(t, d.subscribeAt(sh, stream.SubscribeOptions{}))
	records := uint64(0)
	for i := range 100 {
		for range i % 3 {
			start()
		}
		first := d.sent(sh, numberedBatch(raw.Claimed(), 2))
		records += 2
		d.must(live.until(first + 2))
	}
	start()
	check := func(what string, f *follower, want uint64) {
		t.Helper()
		if f.missing != 0 || f.records != want {
			t.Errorf("%s: %d records, %d missing, want %d", what, f.records, f.missing, want)
		}
	}
	check("live", live, records)
	read := func(what string) {
		t.Helper()
		f := follow(t, d.subscribeAt(sh, stream.SubscribeOptions{Start: stream.Earliest()}))
		if f.sub.LiveOffset() != live.next {
			t.Errorf("%s: live from %d, the last record ends at %d", what, f.sub.LiveOffset(), live.next)
		}
		d.must(f.until(live.next))
		check(what, f, records)
		if n := len(readAll(t, sh, 0)); uint64(n) != records {
			t.Errorf("%s: %d records in pages", what, n)
		}
	}
	read("replayed")
	d.close()
	d = openDurable(t, disk, root, log, small())
	sh = d.durable("s", 1)[0]
	read("replayed after a restart")
	latest := follow(t, d.subscribeAt(sh, stream.SubscribeOptions{}))
	if latest.sub.StartOffset() != live.next+1 || latest.sub.LiveOffset() != live.next+1 {
		t.Errorf("latest is %d, live from %d", latest.sub.StartOffset(), latest.sub.LiveOffset())
	}
}

// A subscription that ends in the middle of a replay says why.
func TestReplayEnds(t *testing.T) {
	d, _ := inMemory(t, manySegments(), small())
	sh := d.durable("s", 1)[0]
	d.fill(sh, 1000, 10)
	closed := d.subscribeAt(sh, stream.SubscribeOptions{Start: stream.Earliest()})
	removed := d.subscribeAt(sh, stream.SubscribeOptions{Start: stream.Earliest()})
	for _, sub := range []*stream.Subscription{closed, removed} {
		f := follow(t, sub)
		d.must(f.until(100))
	}
	closed.Close()
	if pieces, err := closed.Poll(); len(pieces) > 0 || err != stream.ErrSubscriptionClosed {
		t.Errorf("closed: %d pieces, %v", len(pieces), err)
	}
	d.must(d.RemoveStream(fullName("s")))
	f := &follower{t: t, sub: removed, next: 0}
	for {
		pieces, err := f.sub.Next(t.Context())
		if err != nil {
			if err != stream.ErrRemoved {
				t.Errorf("removed: %v", err)
			}
			break
		}
		for _, p := range pieces {
			p.Release()
		}
	}
	if st := d.Stats().Subscribe; st.Subscriptions != 0 {
		t.Errorf("%+v", st)
	}
}
