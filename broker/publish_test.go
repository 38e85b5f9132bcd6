package broker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/felixlog/felix/broker/admission"
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
	for i := range uint32(shards) {
		sh := s.Shard(i)
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

// What each policy does when a stage has no room. Counters say so, nothing is
// kept, and the refusal does not count against the tenant's quota.
func TestPoliciesAtEachStage(t *testing.T) {
	stages := []struct {
		reason admission.Reason
		cfg    Config
		// fill uses up the stage's room, on a stream whose lane is busy.
		fill func(f *fixture, sh *stream.Shard)
	}{
		{TenantQuota, Config{Quota: admission.Quota{MessagesPerSec: 10}}, func(f *fixture, sh *stream.Shard) {
			for range 8 { // two are gone for making the lane busy
				f.must(f.Publish(f.t.Context(), sh, f.id, batchOf("x"), Fail, nil))
			}
		}},
		{BytesFull, Config{ConnInflightBytes: 100}, func(f *fixture, sh *stream.Shard) {
			f.must(f.Publish(f.t.Context(), sh, f.id, sized(80), Fail, nil))
		}},
		{BytesFull, Config{ConnInflightBytes: 100, ConnTotalInflightBytes: 150}, func(f *fixture, sh *stream.Shard) {
			f.must(f.Publish(f.t.Context(), sh, f.conn.Identity(testTenant, "another"), sized(100), Fail, nil))
		}},
		{BytesFull, Config{InflightBytes: 100}, func(f *fixture, sh *stream.Shard) {
			f.must(f.Publish(f.t.Context(), sh, f.NewConnection().Identity(testTenant, "someone"), sized(80), Fail, nil))
		}},
		{QueueFull, Config{Schedule: schedule.Config{Share: 3, Executors: 2}}, func(f *fixture, sh *stream.Shard) {
			for range 3 {
				f.must(f.Publish(f.t.Context(), sh, f.id, batchOf("x"), Fail, nil))
			}
		}},
	}
	policies := map[string]Policy{"drop": Drop, "fail": Fail, "try": Try, "wait": Wait, "backpressure": Backpressure}
	for i, stage := range stages {
		for name, policy := range policies {
			t.Run(fmt.Sprintf("%d %s %s", i, stage.reason, name), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					f := newFixture(t, stage.cfg)
					defer f.Close()
					sh := f.shard("s")
					defer f.busy(sh)()
					stage.fill(f, sh)
					before := f.Stats()

					ctx, cancel := context.WithCancelCause(t.Context())
					gone := errors.New("the connection is gone")
					// No 90-byte batch has room anywhere, and after a minute
					// of waiting the connection goes.
					stop := time.AfterFunc(time.Minute, func() { cancel(gone) })
					defer stop.Stop()
					began := time.Now()
					var done outcomes
					err := f.Publish(ctx, sh, f.id, sized(90), policy, &done)
					waited := time.Since(began)

					var overload *OverloadedError
					isOverload := errors.As(err, &overload) && overload.Reason == stage.reason
					wantWait := map[Policy]time.Duration{Wait: DefaultQueueWait, Backpressure: time.Minute}[policy]
					var want admission.Stats
					switch {
					case stage.reason == TenantQuota && policy == Backpressure:
						if err != nil || waited != 100*time.Millisecond {
							t.Fatalf("%v after %v", err, waited)
						}
						want.ThrottledDelayed = 1
					case policy == Backpressure:
						if err != gone || waited != time.Minute {
							t.Fatalf("%v after %v", err, waited)
						}
					case stage.reason == TenantQuota:
						if !isOverload || waited != 0 || overload.RetryAfter != 100*time.Millisecond {
							t.Fatalf("%v (%+v) after %v", err, overload, waited)
						}
					default:
						if !isOverload || waited != wantWait || overload.RetryAfter != 10*time.Millisecond {
							t.Fatalf("%v (%+v) after %v", err, overload, waited)
						}
					}
					if policy != Backpressure {
						dropped, refused := uint64(0), uint64(0)
						switch policy {
						case Drop:
							dropped = 1
						case Fail, Wait:
							refused = 1
						}
						switch stage.reason {
						case TenantQuota:
							want.ThrottledDropped, want.ThrottledRefused = dropped, refused
						case BytesFull:
							want.BytesFullDropped, want.BytesFullRefused = dropped, refused
						case QueueFull:
							want.QueueFullDropped, want.QueueFullRefused = dropped, refused
						}
					}
					for _, got := range f.TenantStats() {
						got.Messages, got.Bytes = 0, 0
						if got != want {
							t.Errorf("counted %+v, want %+v", got, want)
						}
					}
					if err != nil {
						after := f.Stats()
						if after.InflightBytes != before.InflightBytes || after.Publish.Queued != before.Publish.Queued || after.Publish.Waiting != 0 {
							t.Errorf("a refused publish left %+v, before %+v", after, before)
						}
						if len(done.all()) != 0 {
							t.Error("a refused publish was completed")
						}
					}
				})
			})
		}
	}
}

// Refusals past the quota stage give back what they took of it.
func TestRefusalIsRefunded(t *testing.T) {
	for name, cfg := range map[string]Config{
		"bytes": {ConnInflightBytes: 100},
		"slot":  {Schedule: schedule.Config{Share: 1, Executors: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cfg.Quota = admission.Quota{BytesPerSec: 1000, MessagesPerSec: 10}
				f := newFixture(t, cfg)
				defer f.Close()
				sh := f.shard("s")
				free := f.busy(sh)
				f.must(f.Publish(t.Context(), sh, f.id, sized(80), Fail, nil))
				for range 100 {
					var overload *OverloadedError
					if err := f.Publish(t.Context(), sh, f.id, sized(80), Fail, nil); !errors.As(err, &overload) || overload.Reason == TenantQuota {
						t.Fatal(err)
					}
				}
				free()
				synctest.Wait()
				// 3 of 10 messages and 82 of 1000 bytes are gone.
				for range 7 {
					f.must(f.Publish(t.Context(), sh, f.id, sized(100), Fail, nil))
				}
				if f.Publish(t.Context(), sh, f.id, sized(100), Fail, nil) == nil {
					t.Fatal("more than the quota was admitted")
				}
			})
		})
	}
}

// One deadline covers bytes and slot: what the first wait took, the second
// has not.
func TestWaitHasOneDeadline(t *testing.T) {
	bubble(t, func(t *testing.T) {
		f := newFixture(t, Config{ConnInflightBytes: 100, Schedule: schedule.Config{Share: 1, Executors: 1}})
		defer f.Close()
		sh, other := f.shard("s"), f.shard("other")
		defer f.busy(sh)()
		freeOther := f.busy(other)
		// The one slot is taken, by another connection; the identity's bytes
		// are held by a publish that waits for the slot.
		f.must(f.Publish(t.Context(), sh, f.NewConnection().Identity(testTenant, "x"), sized(1), Fail, nil))
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _ = f.Publish(ctx, other, f.id, sized(100), Backpressure, nil) }()
		synctest.Wait()
		time.AfterFunc(1500*time.Millisecond, cancel) // now the bytes are free

		began := time.Now()
		err := f.Publish(t.Context(), other, f.id, sized(50), Wait, nil)
		var overload *OverloadedError
		if !errors.As(err, &overload) || overload.Reason != QueueFull || time.Since(began) != DefaultQueueWait {
			t.Fatalf("%v after %v", err, time.Since(began))
		}

		// And a wait that ends well, when the lane it is for becomes free.
		time.AfterFunc(time.Second, freeOther)
		began = time.Now()
		var done outcomes
		if err := f.Publish(t.Context(), other, f.id, sized(50), Wait, &done); err != nil || time.Since(began) != time.Second {
			t.Fatalf("%v after %v", err, time.Since(began))
		}
		if r := done.all(); len(r) != 1 || r[0].Err != nil {
			t.Fatalf("%+v", r)
		}
	})
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
