package stream

import (
	"math/rand/v2"
	"sync"
	"testing"
)

func TestBlockLosesNothing(t *testing.T) {
	const readers, batches = 10, 600
	sh := newShard(t, Config{})
	var wait sync.WaitGroup
	for i := range readers {
		sub := subscribe(t, sh, SubscribeOptions{Policy: Block, Capacity: 1 + i%3})
		wait.Add(1)
		go func() {
			defer wait.Done()
			eventually(t, "a batch waits", func() bool { return sh.hub.Stats().Blocked > 0 })
			r := newReader(t, sub)
			r.until(base + 2*batches)
			if r.missing != 0 {
				t.Errorf("reader %d: %d records missing", i, r.missing)
			}
			sub.Close()
		}()
	}
	publishAll(t, sh, batches, 2)
	wait.Wait()
	if st := sh.hub.Stats(); st.DroppedBatches != 0 || st.Blocked == 0 || st.Enqueued != readers*batches {
		t.Fatalf("%+v", st)
	}
}

// A full queue holds up the publish, not the other subscribers.
func TestBlockedBatchReachesTheOthersFirst(t *testing.T) {
	sh := newShard(t, Config{})
	full := subscribe(t, sh, SubscribeOptions{Policy: Block, Capacity: 1})
	other := newReader(t, subscribe(t, sh, SubscribeOptions{Policy: Block, Capacity: 10}))
	dropping := newReader(t, subscribe(t, sh, SubscribeOptions{Capacity: 10}))
	publish(t, sh, 1, nil)
	var s settlement
	if !publish(t, sh, 1, &s) {
		t.Fatal("a full queue under block took a batch")
	}
	other.rest()
	dropping.rest()
	if other.batches != 2 || dropping.batches != 2 || s.n.Load() != 0 {
		t.Fatalf("others have %d and %d batches, settled %d", other.batches, dropping.batches, s.n.Load())
	}
	pieces, _ := full.Poll()
	if s.n.Load() != 0 || len(pieces) != 1 {
		t.Fatal("taking without releasing made room")
	}
	pieces[0].Release()
	if s.n.Load() != 1 {
		t.Fatal("room did not settle the batch")
	}
	r := newReader(t, full)
	r.next++
	r.rest()
	if r.missing != 0 || r.batches != 1 {
		t.Fatalf("the blocked batch was lost: %+v", r)
	}
}

func TestBlockedBatchSettlesWhenItsReaderGoes(t *testing.T) {
	for name, leave := range map[string]func(*Subscription){
		"closed":  (*Subscription).Close,
		"removed": func(s *Subscription) { s.shard.stream.End(ErrRemoved) },
	} {
		t.Run(name, func(t *testing.T) {
			sh := newShard(t, Config{})
			subs := []*Subscription{
				subscribe(t, sh, SubscribeOptions{Policy: Block, Capacity: 1}),
				subscribe(t, sh, SubscribeOptions{Policy: Block, Capacity: 1}),
			}
			publish(t, sh, 1, nil)
			var s settlement
			if !publish(t, sh, 1, &s) {
				t.Fatal("not waiting")
			}
			leave(subs[0])
			if name == "closed" {
				if s.n.Load() != 0 {
					t.Fatal("settled with one queue still full")
				}
				leave(subs[1])
			}
			if s.n.Load() != 1 {
				t.Fatalf("settled %d times", s.n.Load())
			}
			for _, sub := range subs {
				sub.Close()
			}
			if s.n.Load() != 1 {
				t.Fatalf("settled %d times", s.n.Load())
			}
		})
	}
}

// Readers leave while their queues are full, over and over: every batch
// settles exactly once.
func TestBlockWithReadersThatLeave(t *testing.T) {
	sh := newShard(t, Config{RingRecords: 8})
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for i := range 6 {
		readers.Add(1)
		go func() {
			defer readers.Done()
			rng := rand.New(rand.NewPCG(3, uint64(i)))
			for {
				select {
				case <-stop:
					return
				default:
				}
				sub := subscribe(t, sh, SubscribeOptions{Policy: Block, Capacity: 1 + rng.IntN(2)})
				r := newReader(t, sub)
				for range rng.IntN(4) {
					r.until(r.next + 1)
				}
				if rng.IntN(2) == 0 {
					pieces, _ := sub.Poll()
					sub.Close()
					for _, p := range pieces {
						p.Release()
					}
				} else {
					sub.Close()
				}
			}
		}()
	}
	// Enough batches follow for the last readers to see theirs.
	publishAll(t, sh, 3000, 1)
	close(stop)
	var publisher sync.WaitGroup
	gone := make(chan struct{})
	publisher.Add(1)
	go func() {
		defer publisher.Done()
		for {
			publishAll(t, sh, 1, 1)
			select {
			case <-gone:
				return
			default:
			}
		}
	}()
	readers.Wait()
	close(gone)
	publisher.Wait()
	if st := sh.hub.Stats(); st.Subscriptions != 0 || st.Queued() != 0 {
		t.Fatalf("%+v", st)
	}
}
