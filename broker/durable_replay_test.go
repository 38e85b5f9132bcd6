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
	"github.com/felixlog/felix/internal/soak"
	"github.com/felixlog/felix/storage"
	"github.com/felixlog/felix/storage/fs/fstest"
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
				history := uint64(3000 * soak.Times())
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
	joins := 60 * soak.Times()
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
	end := uint64(1500 * soak.Times())
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
	end := uint64(6000 * soak.Times())
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
