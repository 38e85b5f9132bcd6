package broker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/felixlog/felix/broker/schedule"
	"github.com/felixlog/felix/broker/stream"
)

// bomb is a Completion that panics.
type bomb struct{ heard atomic.Int32 }

func (b *bomb) Complete(Result) {
	b.heard.Add(1)
	panic("boom")
}

// A completion that panics, wherever it runs, costs nobody else anything.
func TestPanickingCompletion(t *testing.T) {
	var heard atomic.Int32
	f := newFixture(t, Config{Schedule: schedule.Config{Executors: 1, OnPanic: func(any, []byte) { heard.Add(1) }}})
	sh := f.shard("s")
	var inline, settled, queued bomb
	var done outcomes
	f.must(f.Publish(t.Context(), sh, f.id, batchOf("inline"), Fail, &inline))
	sub := f.subscribe(sh, stream.SubscribeOptions{Policy: stream.Block, Capacity: 1})
	f.must(f.Publish(t.Context(), sh, f.id, batchOf("fills"), Fail, nil))
	f.must(f.Publish(t.Context(), sh, f.id, batchOf("settles later"), Fail, &settled))
	f.must(f.Publish(t.Context(), sh, f.id, batchOf("queued"), Fail, &queued))
	f.must(f.Publish(t.Context(), sh, f.id, batchOf("behind"), Fail, &done))
	for seen := 0; seen < 4; {
		pieces, err := sub.Next(t.Context())
		f.must(err)
		for _, p := range pieces {
			seen++
			p.Release()
		}
	}
	eventually(t, "the one behind is complete", func() bool { return len(done.all()) == 1 })
	for _, b := range []*bomb{&inline, &settled, &queued} {
		if n := b.heard.Load(); n != 1 {
			t.Fatalf("completed %d times", n)
		}
	}
	st := f.Stats()
	if st.Publish.Panics != 3 || heard.Load() != 3 || st.InflightBytes != 0 || st.Publish.Busy != 0 || st.Subscribe.Batches != 5 {
		t.Fatalf("%d heard, %+v", heard.Load(), st)
	}
}

func TestRemovalFailsWhatIsQueued(t *testing.T) {
	f := newFixture(t, Config{})
	sh := f.shard("s")
	free := f.busy(sh)
	defer free()
	var done outcomes
	for range 10 {
		f.must(f.Publish(t.Context(), sh, f.id, sized(100), Fail, &done))
	}
	f.must(f.RemoveStream(fullName("s")))
	eventually(t, "all are answered", func() bool { return len(done.all()) == 10 })
	for _, r := range done.all() {
		if r.Err != stream.ErrRemoved {
			t.Fatalf("%+v", r)
		}
	}
	eventually(t, "the lane is free", func() bool { return f.Stats().Publish.Busy == 0 })
	if st := f.Stats(); st.InflightBytes != 0 || st.Failed != 10 || st.Publish.Queued != 0 {
		t.Fatalf("%+v", st)
	}
}

func TestDrainAndClose(t *testing.T) {
	f := newFixture(t, Config{Schedule: schedule.Config{Share: 2, Executors: 1}})
	sh := f.shard("s")
	free := f.busy(sh)
	var queued, refused outcomes
	for range 2 {
		f.must(f.Publish(t.Context(), sh, f.id, batchOf("x"), Fail, &queued))
	}
	waits := make(chan error, 1)
	go func() { waits <- f.Publish(context.Background(), sh, f.id, batchOf("x"), Backpressure, &refused) }()
	eventually(t, "one waits", func() bool { return f.Stats().Publish.Waiting == 1 })

	ctx, cancel := context.WithCancelCause(t.Context())
	over := errors.New("over")
	cancel(over)
	if err := f.Drain(ctx); err != over {
		t.Fatal(err)
	}
	if err := <-waits; err != ErrClosed {
		t.Fatal(err)
	}
	for _, policy := range []Policy{Drop, Fail, Wait, Backpressure} {
		if err := f.Publish(t.Context(), sh, f.id, batchOf("x"), policy, &refused); err != ErrClosed {
			t.Fatal(err)
		}
	}
	free()
	f.must(f.Drain(t.Context()))
	if r := queued.all(); len(r) != 2 || r[0].Err != nil || r[1].Err != nil || len(refused.all()) != 0 {
		t.Fatalf("%+v", r)
	}
	sub := f.subscribe(sh, stream.SubscribeOptions{Start: stream.Earliest()})
	f.Close()
	if pieces, err := sub.Next(t.Context()); err != nil || len(pieces) != 4 {
		t.Fatal(len(pieces), err)
	}
	if _, err := sub.Next(t.Context()); err != ErrClosed {
		t.Fatal(err)
	}
	sub.Close()
	for _, err := range []error{f.AddTenant("x"), f.AddNamespace(testTenant, "x"), f.AddStream(fullName("x"), StreamOptions{})} {
		if err != ErrClosed {
			t.Fatal(err)
		}
	}
	f.Close()
}

// Close ends a broker whose lanes are stuck behind full queues.
func TestCloseWithWorkLeft(t *testing.T) {
	f := newFixture(t, Config{})
	sh := f.shard("s")
	f.busy(sh)
	var done outcomes
	for range 20 {
		f.must(f.Publish(t.Context(), sh, f.id, batchOf("x"), Fail, &done))
	}
	f.Close()
	if r := done.all(); len(r) != 20 || !errors.Is(r[0].Err, ErrClosed) {
		t.Fatalf("%d answers, first %+v", len(r), r[0])
	}
	if st := f.Stats(); st.InflightBytes != 0 || st.Subscribe.Subscriptions != 0 {
		t.Fatalf("%+v", st)
	}
}

// once is a Completion that must be heard once.
type once struct {
	t *testing.T
	n *atomic.Int64
	b atomic.Bool
}

func (o *once) Complete(Result) {
	if o.b.Swap(true) {
		o.t.Error("completed twice")
	}
	o.n.Add(1)
}

// Everything at once: tenants publish under all policies, subscriptions of all
// policies come and go, streams are removed and registered again. Every
// accepted publish is completed once, and nothing is left in the end.
func TestChurn(t *testing.T) {
	f := newFixture(t, Config{
		ConnInflightBytes: 2000,
		InflightBytes:     4000,
		Schedule:          schedule.Config{Share: 4, Executors: 2},
		Streams:           stream.Config{RingRecords: 16},
	})
	const tenants, streams = 2, 2
	for i := range tenants {
		f.must(f.AddTenant(fmt.Sprint(i)))
		f.must(f.AddNamespace(fmt.Sprint(i), "n"))
	}
	name := func(rng *rand.Rand) StreamName {
		return StreamName{Tenant: fmt.Sprint(rng.IntN(tenants)), Namespace: "n", Name: fmt.Sprint(rng.IntN(streams))}
	}
	var accepted, completed atomic.Int64
	stop := make(chan struct{})
	var publishers, others sync.WaitGroup
	for p := range 6 {
		publishers.Add(1)
		go func() {
			defer publishers.Done()
			rng := rand.New(rand.NewPCG(7, uint64(p)))
			conn := f.NewConnection()
			defer conn.Close()
			for tried := 0; tried < 400; {
				n := name(rng)
				s, err := f.Stream(n.Tenant, n.Namespace, n.Name)
				if err != nil {
					runtime.Gosched()
					continue
				}
				tried++
				id := conn.Identity(n.Tenant, "x")
				ctx, cancel := context.WithCancel(t.Context())
				policy := Policy(rng.IntN(5))
				if policy == Backpressure || policy == Wait {
					go cancel()
				}
				done := &once{t: t, n: &completed}
				if f.Publish(ctx, s.Shard(0), id, sized(rng.IntN(1500)), policy, done) == nil {
					accepted.Add(1)
				} else if done.b.Load() {
					t.Error("refused and completed")
				}
				cancel()
				id.Close()
			}
		}()
	}
	loop := func(seed uint64, step func(rng *rand.Rand)) {
		others.Add(1)
		go func() {
			defer others.Done()
			rng := rand.New(rand.NewPCG(8, seed))
			for {
				select {
				case <-stop:
					return
				default:
					step(rng)
				}
			}
		}()
	}
	for i := range uint64(4) {
		loop(i, func(rng *rand.Rand) {
			n := name(rng)
			s, err := f.Stream(n.Tenant, n.Namespace, n.Name)
			if err != nil {
				return
			}
			sub, err := s.Shard(0).Subscribe(context.Background(), stream.SubscribeOptions{
				Start: stream.Earliest(), Capacity: 1 + rng.IntN(3), Policy: stream.QueuePolicy(1 + rng.IntN(3)),
			})
			if err != nil {
				return
			}
			defer sub.Close()
			for range rng.IntN(20) {
				pieces, err := sub.Poll()
				if err != nil {
					return
				}
				for _, p := range pieces {
					p.Release()
				}
			}
		})
	}
	loop(9, func(rng *rand.Rand) {
		n := name(rng)
		if rng.IntN(3) == 0 {
			_ = f.RemoveStream(n)
		} else if err := f.AddStream(n, StreamOptions{}); err != nil {
			t.Error(err)
		}
	})
	publishers.Wait()
	close(stop)
	others.Wait()
	f.must(f.Drain(t.Context()))
	if accepted.Load() == 0 || accepted.Load() != completed.Load() {
		t.Fatalf("%d accepted, %d completed", accepted.Load(), completed.Load())
	}
	if st := f.Stats(); st.InflightBytes != 0 || st.Publish.Queued != 0 || st.Publish.Busy != 0 || st.Publish.Panics != 0 ||
		st.Subscribe.Subscriptions != 0 || st.Subscribe.Queued() != 0 {
		t.Fatalf("left behind: %+v", st)
	}
}
