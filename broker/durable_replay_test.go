package broker

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/storage"
	"github.com/felixlog/felix/storage/fs/fstest"
	"github.com/felixlog/felix/storage/segment"
	"github.com/felixlog/felix/storage/shardlog"
)

// small makes everything a reader passes through small, so that short tests
// cross all the borders.
func small() Config {
	return Config{Streams: stream.Config{RingRecords: 40, PageBytes: 700}}
}

// History is read at the reader's pace: a slow one with a small queue misses
// nothing, however much is published meanwhile (BR-18).
func TestReplayIsNeverDropped(t *testing.T) {
	for _, policy := range []stream.QueuePolicy{stream.DropNew, stream.DropOld, stream.Block} {
		for _, capacity := range []int{1, 16, 256} {
			t.Run(fmt.Sprint(policy, " ", capacity), func(t *testing.T) {
				d, _ := inMemory(t, manySegments(), small())
				sh := d.durable("s", 1)[0]
				history := uint64(3000 * soak())
				d.fill(sh, history, 10)
				sub := d.subscribeAt(sh, stream.SubscribeOptions{Start: stream.Earliest(), Capacity: capacity, Policy: policy, EndOnDrop: true})
				if sub.StartOffset() != 0 || sub.LiveOffset() != history {
					t.Fatalf("from %d, live %d", sub.StartOffset(), sub.LiveOffset())
				}
				end := history + history/2
				var publisher sync.WaitGroup
				publisher.Go(func() { d.fill(sh, end, 3) })
				f := follow(t, sub)
				f.pause = runtime.Gosched
				d.must(f.until(history))
				// What was published meanwhile is caught up with, and after that
				// the policy holds. A reader that lagged then resumes.
				for f.next < end {
					err := f.until(end)
					var lagged *stream.LaggedError
					if err != nil && (!errors.As(err, &lagged) || policy == stream.Block) {
						t.Fatal(err)
					}
					if err != nil {
						f.sub = d.subscribeAt(sh, stream.SubscribeOptions{Start: stream.FromOffset(f.next), Capacity: capacity, Policy: policy, EndOnDrop: true})
					}
				}
				publisher.Wait()
				if f.missing != 0 || f.records != end {
					t.Fatalf("%d records, %d missing, of %d", f.records, f.missing, end)
				}
			})
		}
	}
}

// Readers come and go at every kind of start while batches are published:
// each sees every record from its start on, once (reliability 12).
func TestDurableJoinUnderLoad(t *testing.T) {
	const joiners = 4
	joins := 60 * soak()
	for _, policy := range []stream.QueuePolicy{stream.DropNew, stream.Block} {
		t.Run(policy.String(), func(t *testing.T) {
			d, _ := inMemory(t, manySegments(), small())
			sh := d.durable("s", 1)[0]
			d.fill(sh, 1000, 4)
			stop := make(chan struct{})
			var publisher, readers sync.WaitGroup
			publisher.Go(func() {
				rng := rand.New(rand.NewPCG(1, 1))
				for {
					_, tail := sh.Bounds()
					d.fill(sh, tail+1+rng.Uint64N(12), 1+rng.IntN(4))
					select {
					case <-stop:
						return
					default:
					}
				}
			})
			var lagged atomic.Int64
			for j := range joiners {
				readers.Go(func() {
					rng := rand.New(rand.NewPCG(2, uint64(j)))
					for range joins {
						oldest, tail := sh.Bounds()
						start := stream.Latest()
						switch rng.IntN(4) {
						case 0:
							start = stream.FromOffset(oldest + rng.Uint64N(tail-oldest+1))
						case 1:
							start = stream.FromOffset(tail - min(tail, rng.Uint64N(100)))
						case 2:
							start = stream.FromOffset(tail)
						}
						sub, err := sh.Subscribe(t.Context(), stream.SubscribeOptions{
							Start: start, Capacity: 1 + rng.IntN(8), Policy: policy, EndOnDrop: true,
						})
						if err != nil {
							t.Error(err)
							return
						}
						f := follow(t, sub)
						err = f.until(sub.LiveOffset() + rng.Uint64N(20))
						if lag := new(stream.LaggedError); errors.As(err, &lag) {
							lagged.Add(1)
							if lag.ResumeFrom != f.next {
								t.Errorf("read up to %d, lagged from %d", f.next, lag.ResumeFrom)
							}
							err = nil
						}
						if err != nil || f.missing != 0 {
							t.Errorf("start %d, live %d: %d missing, %v", sub.StartOffset(), sub.LiveOffset(), f.missing, err)
						}
						sub.Close()
					}
				})
			}
			readers.Wait()
			close(stop)
			publisher.Wait()
			if st := d.Stats().Subscribe; st.Subscriptions != 0 || st.Queued() != 0 {
				t.Errorf("%+v", st)
			}
			t.Logf("%d of %d lagged", lagged.Load(), joiners*joins)
		})
	}
}

// Earliest under load, from the first record of many segments.
func TestEarliestUnderLoad(t *testing.T) {
	d, _ := inMemory(t, manySegments(), small())
	sh := d.durable("s", 1)[0]
	d.fill(sh, 500, 4)
	var readers, publisher sync.WaitGroup
	end := uint64(1500 * soak())
	publisher.Go(func() { d.fill(sh, end, 2) })
	for i := range 6 {
		readers.Go(func() {
			sub := d.subscribeAt(sh, stream.SubscribeOptions{Start: stream.Earliest(), Capacity: 1 + i, Policy: stream.Block})
			f := follow(t, sub)
			if err := f.until(end); err != nil || f.missing != 0 || f.records != end {
				t.Errorf("%d records, %d missing of %d: %v", f.records, f.missing, end, err)
			}
			sub.Close()
		})
	}
	readers.Wait()
	publisher.Wait()
}

// A long replay over many segments, resumed after restarts, goes on where it
// was; when retention is faster than the reader it is told, and never moved
// (BR-19).
func TestReplayOverManySegments(t *testing.T) {
	disk := fstest.New(1)
	d := openDurable(t, disk, root, manySegments(), small())
	end := uint64(6000 * soak())
	d.fill(d.durable("s", 1)[0], end, 20)
	var next uint64
	for run := uint64(1); next < end; run++ {
		d.close()
		d = openDurable(t, disk, root, manySegments(), small())
		sub := d.subscribeAt(d.durable("s", 1)[0], stream.SubscribeOptions{Start: stream.FromOffset(next)})
		f := follow(t, sub)
		d.must(f.until(min(end, next+end/4)))
		if f.missing != 0 || f.records != f.next-next {
			t.Fatalf("run %d from %d: %d records, %d missing", run, next, f.records, f.missing)
		}
		next = f.next
	}

	sh := d.durable("s", 1)[0]
	f := follow(t, d.subscribeAt(sh, stream.SubscribeOptions{Start: stream.Earliest()}))
	d.must(f.until(end / 4))
	d.must(d.SetStreamRetention(fullName("s"), stream.Retention{MaxBytes: 20_000}))
	log, err := d.store.OpenLog(t.Context(), storage.Streams, storage.Key{Tenant: testTenant, Namespace: testNamespace, Name: "s"}, storage.LogOptions{})
	d.must(err)
	d.must(log.EnforceRetention())
	oldest, tail := sh.Bounds()
	if oldest <= f.next || oldest >= tail {
		t.Fatalf("retention left %d of %d", oldest, tail)
	}
	var cursor *stream.CursorError
	if err := f.until(end); !errors.As(err, &cursor) || cursor.Reason != stream.TooOld || cursor.Requested != f.next || cursor.Available != oldest {
		t.Fatalf("at %d: %v", f.next, err)
	}
	if f.missing != 0 {
		t.Fatalf("moved by %d", f.missing)
	}
	if _, err := f.sub.Poll(); !errors.As(err, &cursor) {
		t.Fatalf("a second time: %v", err)
	}
	for _, start := range []uint64{0, oldest - 1} {
		if _, err := sh.Subscribe(t.Context(), stream.SubscribeOptions{Start: stream.FromOffset(start)}); !errors.As(err, &cursor) || cursor.Available != oldest {
			t.Errorf("from %d: %v", start, err)
		}
		if _, err := sh.Read(t.Context(), stream.ReadOptions{From: start}); !errors.As(err, &cursor) || cursor.Available != oldest {
			t.Errorf("read at %d: %v", start, err)
		}
	}
	if _, err := sh.Subscribe(t.Context(), stream.SubscribeOptions{Start: stream.FromOffset(tail + 1)}); !errors.As(err, &cursor) || cursor.Reason != stream.InFuture || cursor.Available != tail {
		t.Error(err)
	}
	f = follow(t, d.subscribeAt(sh, stream.SubscribeOptions{Start: stream.Earliest()}))
	if err := f.until(end); err != nil || f.sub.StartOffset() != oldest || f.missing != 0 {
		t.Errorf("earliest is %d, %d missing, %v", f.sub.StartOffset(), f.missing, err)
	}
}

// A reader that stands still, once it reads live, is either told or sees a gap
// of exactly what it lost (BR-17).
func TestDurableLossesAreAccounted(t *testing.T) {
	const readers, batches, perBatch, capacity = 5, 400, 3, 16
	for _, policy := range []stream.QueuePolicy{stream.DropNew, stream.DropOld} {
		for _, from := range []string{"live", "replay"} {
			t.Run(fmt.Sprint(policy, " ", from), func(t *testing.T) {
				d, _ := inMemory(t, syncing(), small())
				sh := d.durable("s", 1)[0]
				d.fill(sh, 300, 10)
				all := make([]*follower, readers)
				for i := range all {
					o := stream.SubscribeOptions{Policy: policy, Capacity: capacity}
					if from == "replay" {
						o.Start = stream.Earliest()
					}
					all[i] = follow(t, d.subscribeAt(sh, o))
					d.must(all[i].until(300))
					pieces, err := all[i].sub.Poll() // nothing left: it reads live
					d.must(err)
					all[i].take(pieces)
				}
				told := d.subscribeAt(sh, stream.SubscribeOptions{Policy: policy, Capacity: capacity, EndOnDrop: true})
				end := uint64(300 + batches*perBatch)
				d.fill(sh, end, perBatch)
				for i, f := range all {
					pieces, err := f.sub.Poll()
					d.must(err)
					f.take(pieces)
					_, lost := f.sub.Dropped()
					if gap := end - f.next; f.missing+gap != lost || lost != (batches-capacity)*perBatch {
						t.Errorf("reader %d: offsets show %d missing, %d counted", i, f.missing+gap, lost)
					}
				}
				f := follow(t, told)
				var lagged *stream.LaggedError
				if err := f.until(end); !errors.As(err, &lagged) || lagged.ResumeFrom != f.next || f.records != capacity*perBatch {
					t.Errorf("%d records, next %d: %v", f.records, f.next, err)
				}
				if n := len(sh.Subscriptions()); n != readers {
					t.Errorf("%d subscriptions are open", n)
				}
			})
		}
	}
}

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
	for ; d.Stats().Subscribe.Blocked == 1; rounds++ {
		if rounds == 20 {
			t.Fatal("a reader that stays behind never holds anybody")
		}
		held := hold()
		eventually(t, "all are on disk", func() bool { return sh.Status().Durable == 203+3*uint64(rounds+1) })
		d.must(again.until(203 + 3*uint64(rounds+1)))
		for _, w := range held {
			d.must(w.wait(t).Err)
		}
	}
	if rounds < 5 || again.missing != 0 {
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
