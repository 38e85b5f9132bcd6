package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"

	"github.com/felixlog/felix/broker/schedule"
	"github.com/felixlog/felix/broker/stream"
)

func TestPublishReachesItsSubscribers(t *testing.T) {
	f := newFixture(t, Config{})
	sh := f.shard("s")
	sub := f.subscribe(sh, stream.SubscribeOptions{})
	var done outcomes
	batch := batchOf("one", "", "three")
	f.must(f.Publish(t.Context(), sh, f.id, batch, Fail, &done))
	copy(batch.Block, make([]byte, len(batch.Block))) // it was borrowed
	_, tail := sh.Bounds()
	if r := done.all(); len(r) != 1 || r[0].Err != nil || r[0].HasOffset || r[0].Offset != tail-3 {
		t.Fatalf("%+v, tail %d", r, tail)
	}
	pieces, err := sub.Poll()
	if err != nil || len(pieces) != 1 || pieces[0].Count() != 3 || string(pieces[0].Envelope.Block()) != string(batchOf("one", "", "three").Block) {
		t.Fatalf("%+v %v", pieces, err)
	}
	pieces[0].Release()
	f.must(f.Publish(t.Context(), sh, f.id, batchOf(), Fail, &done))
	if r := done.all(); len(r) != 2 || r[1].Err != nil || r[1].Offset != tail {
		t.Fatalf("a batch without records: %+v", r)
	}
	for tenant, st := range f.TenantStats() {
		if tenant != testTenant || st.Messages != 3 || st.Bytes != 8 {
			t.Fatalf("%s: %+v", tenant, st)
		}
	}
}

// Publishers race on a few shards, lanes are now free and now busy: each sees
// its own batches answered and delivered in its order.
func TestOrderPerShard(t *testing.T) {
	const shards, publishers, each = 2, 4, 400
	f := newFixture(t, Config{})
	f.must(f.AddStream(fullName("s"), StreamOptions{Shards: shards}))
	s, err := f.Stream(testTenant, testNamespace, "s")
	f.must(err)
	var wait sync.WaitGroup
	var frees []func()
	for i := range uint32(shards) {
		sh := s.Shard(i)
		frees = append(frees, f.busy(sh)) // so that the first ones queue
		sub := f.subscribe(sh, stream.SubscribeOptions{Policy: stream.Block, Capacity: 3})
		wait.Add(1)
		go func() {
			defer wait.Done()
			defer sub.Close()
			last := make([]uint32, publishers)
			for seen := 0; seen < publishers*each; {
				pieces, err := sub.Next(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				for _, p := range pieces {
					record := p.Records()[4:]
					publisher, n := binary.BigEndian.Uint32(record), binary.BigEndian.Uint32(record[4:])
					if last[publisher] != n {
						t.Errorf("publisher %d: batch %d where %d was due", publisher, n, last[publisher])
					}
					last[publisher] = n + 1
					p.Release()
					seen++
				}
			}
		}()
		for p := range uint32(publishers) {
			wait.Add(1)
			go func() {
				defer wait.Done()
				id := f.NewConnection().Identity(testTenant, fmt.Sprint(p))
				var done outcomes
				for n := range uint32(each) {
					record := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, p), n)
					if err := f.Publish(t.Context(), sh, id, batchOf(string(record)), Backpressure, &done); err != nil {
						t.Error(err)
					}
				}
				eventually(t, "all are answered", func() bool { return len(done.all()) == each })
				var last uint64
				for i, r := range done.all() {
					if r.Err != nil || i > 0 && r.Offset <= last {
						t.Errorf("publisher %d: answer %d is %+v after offset %d", p, i, r, last)
					}
					last = r.Offset
				}
			}()
		}
	}
	for _, free := range frees {
		eventually(t, "publishes queue", func() bool { return f.Stats().Publish.Queued > 0 })
		free()
	}
	wait.Wait()
	st := f.Stats()
	if st.Publish.Inline == 0 || st.Publish.Executed == 0 || st.InflightBytes != 0 || st.Failed != 0 {
		t.Fatalf("%+v", st)
	}
}

// A publisher that finds its lane free all the time does not outrun a reader
// that keeps up but shares its processor.
func TestBurstDoesNotOverflowAReaderThatKeepsUp(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	f := newFixture(t, Config{})
	sh := f.shard("s")
	sub := f.subscribe(sh, stream.SubscribeOptions{Capacity: 16})
	const batches = 20_000
	var received int
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			pieces, err := sub.Next(t.Context())
			if err != nil {
				return
			}
			for _, p := range pieces {
				received++
				p.Release()
			}
		}
	}()
	batch := batchOf("x")
	for range batches {
		f.must(f.Publish(t.Context(), sh, f.id, batch, Fail, nil))
	}
	f.must(f.RemoveStream(fullName("s")))
	<-done
	if dropped, _ := sub.Dropped(); dropped != 0 || received != batches {
		t.Fatalf("%d of %d batches received, %d dropped", received, batches, dropped)
	}
	if st := f.Stats().Publish; st.Inline != batches {
		t.Fatalf("the lane was not free: %+v", st)
	}
	sub.Close()
}

// A tenant that fills its share, and all it may borrow, leaves the other
// tenant's share and lanes alone.
func TestFloodedQueueServesAnotherTenant(t *testing.T) {
	f := newFixture(t, Config{Schedule: schedule.Config{Share: 4, Executors: 2}})
	sh := f.shard("s")
	free := f.busy(sh)
	queued := 0
	for f.Publish(t.Context(), sh, f.id, batchOf("x"), Fail, nil) == nil {
		queued++
	}
	if queued != 4 {
		t.Fatalf("%d publishes were queued, the share is 4 and the other 4 are not to borrow", queued)
	}
	f.must(f.AddTenant("other"))
	f.must(f.AddNamespace("other", testNamespace))
	f.must(f.AddStream(StreamName{Tenant: "other", Namespace: testNamespace, Name: "s"}, StreamOptions{}))
	s, err := f.Stream("other", testNamespace, "s")
	f.must(err)
	var done outcomes
	other := &fixture{Broker: f.Broker, t: t, id: f.NewConnection().Identity("other", "x")}
	f.must(f.Publish(t.Context(), s.Shard(0), other.id, batchOf("x"), Fail, &done))
	if len(done.all()) != 1 {
		t.Fatal("a free lane did not run at once")
	}
	freeOther := other.busy(s.Shard(0))
	for range 4 {
		f.must(f.Publish(t.Context(), s.Shard(0), other.id, batchOf("x"), Fail, nil))
	}
	if err := f.Publish(t.Context(), s.Shard(0), other.id, batchOf("x"), Fail, nil); err == nil {
		t.Fatal("the queue holds more than its capacity")
	}
	free()
	freeOther()
	eventually(t, "the queue is empty", func() bool { return f.Stats().Publish.Queued == 0 })
}

func TestPublishOfAnotherTenantIsRefused(t *testing.T) {
	f := newFixture(t, Config{})
	sh := f.shard("s")
	var mismatch *TenantMismatchError
	if err := f.Publish(t.Context(), sh, f.conn.Identity("other", "x"), batchOf("x"), Fail, nil); !errors.As(err, &mismatch) {
		t.Fatal(err)
	}
}

// One refused publish leaves no trace for those after it, whatever the reason.
func TestRefusedPublishIsAlone(t *testing.T) {
	f := newFixture(t, Config{ConnInflightBytes: 1000, Schedule: schedule.Config{Share: 300}})
	sh, removed := f.shard("s"), f.shard("removed")
	f.must(f.RemoveStream(fullName("removed")))
	foreign := f.conn.Identity("other", "x")
	for round := range 50 {
		free := f.busy(sh)
		var done outcomes
		good := 0
		for i := range 256 {
			switch {
			case i != (round*37)%256:
				f.must(f.Publish(t.Context(), sh, f.id, batchOf("x"), Fail, &done))
				good++
			case round%3 == 0:
				if f.Publish(t.Context(), removed, f.id, batchOf("x"), Fail, &done) == nil {
					t.Fatal("accepted for a removed stream")
				}
			case round%3 == 1:
				if f.Publish(t.Context(), sh, foreign, batchOf("x"), Fail, &done) == nil {
					t.Fatal("accepted for another tenant")
				}
			default:
				if f.Publish(t.Context(), sh, f.id, sized(1000), Fail, &done) == nil {
					t.Fatal("accepted over the byte budget")
				}
			}
		}
		free()
		eventually(t, "the good ones are complete", func() bool { return len(done.all()) == good })
		last := uint64(0)
		for _, r := range done.all() {
			if r.Err != nil || r.Offset <= last {
				t.Fatalf("%+v after %d", r, last)
			}
			last = r.Offset
		}
	}
	if st := f.Stats(); st.InflightBytes != 0 || st.Publish.Queued != 0 || st.Publish.Busy != 0 {
		t.Fatalf("%+v", st)
	}
}
