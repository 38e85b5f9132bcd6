package stream

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// Subscriptions come and go all the time while batches are published. Each
// sees every batch from its start on, once, whether it got it as history or
// live.
func TestJoinUnderLoad(t *testing.T) {
	const joiners, joins, batches = 8, 500, 3000
	sh := newShard(t, Config{RingRecords: 64, QueuePolicy: Block, QueueCapacity: 16})
	stop := make(chan struct{})
	var publisher, readers sync.WaitGroup
	publisher.Add(1)
	go func() {
		defer publisher.Done()
		rng := rand.New(rand.NewPCG(1, 1))
		for i := 0; ; i++ {
			publishAll(t, sh, 1, 1+rng.IntN(4))
			select {
			case <-stop:
				if i >= batches {
					return
				}
			default:
			}
		}
	}()
	for j := range joiners {
		readers.Add(1)
		go func() {
			defer readers.Done()
			rng := rand.New(rand.NewPCG(2, uint64(j)))
			for range joins {
				start := Latest()
				switch rng.IntN(3) {
				case 0:
					start = Earliest()
				case 1:
					oldest, tail := sh.Bounds()
					start = FromOffset(oldest + rng.Uint64N(tail-oldest+1))
				}
				sub, err := sh.Subscribe(context.Background(), SubscribeOptions{Start: start, Capacity: 1 + rng.IntN(8)})
				if err != nil {
					continue // the ring moved on before we were there
				}
				r := newReader(t, sub)
				r.until(sub.LiveOffset() + rng.Uint64N(20))
				if r.missing != 0 {
					t.Errorf("start %d, live %d: %d records missing", sub.StartOffset(), sub.LiveOffset(), r.missing)
				}
				sub.Close()
			}
		}()
	}
	readers.Wait()
	close(stop)
	publisher.Wait()
	if st := sh.hub.Stats(); st.Subscriptions != 0 || st.Queued() != 0 || st.DroppedBatches != 0 {
		t.Fatalf("%+v", st)
	}
}

// Ten readers, one of which stands still: for every policy, what is received
// and what is counted as dropped is what was published.
func TestEveryLossIsCounted(t *testing.T) {
	const readers, batches, perBatch, capacity = 10, 2000, 3, 32
	for _, policy := range []QueuePolicy{DropNew, DropOld} {
		t.Run(policy.String(), func(t *testing.T) {
			sh := newShard(t, Config{})
			all := make([]*reader, readers)
			for i := range all {
				all[i] = newReader(t, subscribe(t, sh, SubscribeOptions{Policy: policy, Capacity: capacity}))
			}
			var lively sync.WaitGroup
			done := make(chan struct{})
			for _, r := range all[1:] {
				lively.Add(1)
				go func() {
					defer lively.Done()
					for {
						select {
						case <-done:
							r.rest()
							return
						case <-r.sub.Wake():
							r.rest()
						}
					}
				}()
			}
			publishAll(t, sh, batches, perBatch)
			close(done)
			lively.Wait()

			frozen := all[0]
			if info := frozen.sub.Info(); info.Depth != capacity || info.DroppedBatches != batches-capacity {
				t.Errorf("the frozen reader: %+v", info)
			}
			frozen.rest()
			var dropped uint64
			for i, r := range all {
				b, n := r.sub.Dropped()
				dropped += n
				if r.batches+b != batches || r.records+n != batches*perBatch {
					t.Errorf("reader %d: received %d records and dropped %d of %d", i, r.records, n, batches*perBatch)
				}
				// Losses after the last batch received show at the next one.
				if gap := base + batches*perBatch - r.next; r.missing+gap != n {
					t.Errorf("reader %d: offsets show %d missing, %d were dropped", i, r.missing+gap, n)
				}
				r.sub.Close()
			}
			st := sh.hub.Stats()
			if st.DroppedRecords != dropped || (st.DropOldEmulated == st.DroppedBatches) != (policy == DropOld) {
				t.Errorf("%d records dropped: %+v", dropped, st)
			}
		})
	}
}

func TestQueueIsBoundedInBytes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.Int64Range(600, 4000).Draw(rt, "bytes")
		capacity := rapid.IntRange(1, 12).Draw(rt, "capacity")
		sh := newShard(t, Config{RingRecords: 1})
		sub := subscribe(t, sh, SubscribeOptions{Capacity: capacity, MaxBytes: limit})
		defer sub.Close()
		var inHand []Piece
		var depth int
		var bytes int64
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 3).Draw(rt, "op") {
			case 0, 1:
				n := rapid.IntRange(1, 300).Draw(rt, "n")
				size := int64(classSize(classOf(len(blockOfLen(sh.claimed, n))))) + envelopeOverhead
				before, _ := sub.Dropped()
				publish(t, sh, n, nil)
				after, _ := sub.Dropped()
				if taken := depth == 0 || depth < capacity && bytes+size <= limit; taken != (before == after) {
					rt.Fatalf("%d batches, %d of %d bytes, %d more: taken %v", depth, bytes, limit, size, !taken)
				} else if taken {
					depth++
					bytes += size
				}
			case 2:
				pieces, _ := sub.Poll()
				inHand = append(inHand, pieces...)
			case 3:
				if len(inHand) > 0 {
					depth--
					bytes -= inHand[0].Envelope.Size()
					inHand[0].Release()
					inHand = inHand[1:]
				}
			}
			if info := sub.Info(); info.Depth != depth || info.Bytes != bytes || bytes > limit && depth > 1 {
				rt.Fatalf("%d batches of %d, %d bytes of %d; counted %+v", depth, capacity, bytes, limit, info)
			}
		}
		for _, p := range inHand {
			p.Release()
		}
	})
}

// Ten readers that never read: what they hold is bounded by their queues and,
// for history, by what the ring held when they came.
func TestStalledReadersHoldBoundedMemory(t *testing.T) {
	const ringBytes, queueBytes = 64 << 10, 96 << 10
	sh := newShard(t, Config{RingBytes: ringBytes, QueueBytes: queueBytes})
	var subs []*Subscription
	for range 10 {
		publishAll(t, sh, 50, 200)
		subs = append(subs, subscribe(t, sh, SubscribeOptions{Start: Earliest()}))
	}
	publishAll(t, sh, 2000, 200)
	alive := map[*Envelope]int64{}
	for _, s := range subs {
		var history, queued int64
		for _, p := range s.history {
			history += p.Envelope.Size()
			alive[p.Envelope] = p.Envelope.Size()
		}
		for _, p := range s.queue {
			queued += p.Envelope.Size()
			alive[p.Envelope] = p.Envelope.Size()
		}
		if history > ringBytes || queued > queueBytes || queued != s.Info().Bytes {
			t.Errorf("history %d of %d, queue %d of %d, counted %d", history, ringBytes, queued, queueBytes, s.Info().Bytes)
		}
	}
	var total int64
	for _, n := range alive {
		total += n
	}
	if bound := int64(len(subs) * (ringBytes + queueBytes)); total > bound {
		t.Errorf("%d bytes are alive, bound %d", total, bound)
	}
	for _, s := range subs {
		s.Close()
	}
	sh.stream.End(ErrRemoved)
	if st := sh.hub.Stats(); st.PooledBytes == 0 || st.Queued() != 0 {
		t.Errorf("%+v", st)
	}
}

// History is read at the reader's pace: a queue of one batch and live batches
// that overflow it cost it nothing.
func TestHistoryIsNotDropped(t *testing.T) {
	for _, capacity := range []int{1, 16, 256} {
		sh := newShard(t, Config{RingRecords: 5000})
		publishAll(t, sh, 5000, 1)
		sub := subscribe(t, sh, SubscribeOptions{Start: Earliest(), Capacity: capacity})
		publishAll(t, sh, 5000, 1) // evicts all of the ring it started with
		r := newReader(t, sub)
		r.until(base + 5000)
		if r.missing != 0 || r.records != 5000 {
			t.Fatalf("capacity %d: %d records of history, %d missing", capacity, r.records, r.missing)
		}
		r.rest()
		_, dropped := sub.Dropped()
		if r.records != 5000+uint64(capacity) || dropped != 5000-uint64(capacity) {
			t.Fatalf("capacity %d: %d records, %d dropped", capacity, r.records, dropped)
		}
		sub.Close()
	}
}

// A batch of no records takes its turn and changes nothing; records of no
// bytes are records.
func TestEmptyBatchAndEmptyRecords(t *testing.T) {
	sh := newShard(t, Config{})
	sub := subscribe(t, sh, SubscribeOptions{})
	defer sub.Close()
	if publish(t, sh, 0, nil) {
		t.Fatal("waiting")
	}
	if oldest, tail := sh.Bounds(); oldest != base || tail != base {
		t.Fatalf("an empty batch moved the shard to %d..%d", oldest, tail)
	}
	e := sh.hub.NewEnvelope(blockOf("", "x", ""), Meta{Count: 3, PayloadBytes: 1})
	if _, err := sh.Claim(e); err != nil {
		t.Fatal(err)
	}
	if _, err := sh.Apply(e, nil); err != nil {
		t.Fatal(err)
	}
	pieces, _ := sub.Poll()
	if len(pieces) != 1 || pieces[0].Offset() != base {
		t.Fatalf("%+v", pieces)
	}
	if got := payloadsOf(t, pieces[0].Records(), 3); got[0] != "" || got[1] != "x" || got[2] != "" {
		t.Fatalf("%q", got)
	}
	pieces[0].Release()
}
