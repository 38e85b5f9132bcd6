//go:build !race

package broker

import (
	"testing"

	"github.com/felixlog/felix/broker/admission"
	"github.com/felixlog/felix/broker/stream"
)

// fanout is a shard with subscriptions that one goroutine empties.
type fanout struct {
	*fixture
	sh    *stream.Shard
	subs  []*stream.Subscription
	batch Batch
	done  counter
}

type counter struct{ n int }

func (c *counter) Complete(Result) { c.n++ }

func newFanout(t testing.TB, cfg Config, subs int) *fanout {
	f := &fanout{fixture: newFixture(t, cfg)}
	f.sh = f.shard("s")
	for range subs {
		f.subs = append(f.subs, f.subscribe(f.sh, stream.SubscribeOptions{}))
	}
	payloads := make([]string, 64)
	for i := range payloads {
		payloads[i] = string(make([]byte, 256))
	}
	f.batch = batchOf(payloads...)
	return f
}

// round publishes one batch and delivers it.
func (f *fanout) round() {
	if err := f.Publish(f.t.Context(), f.sh, f.id, f.batch, Fail, &f.done); err != nil {
		f.t.Fatal(err)
	}
	for _, sub := range f.subs {
		pieces, err := sub.Poll()
		if err != nil || len(pieces) != 1 {
			f.t.Fatal(len(pieces), err)
		}
		for _, p := range pieces {
			if frame := p.Envelope.Frame(stream.WithOffsets); len(frame) < len(f.batch.Block) {
				f.t.Fatal("short frame")
			}
			p.Release()
		}
	}
}

func TestPublishAndFanoutAllocateNothing(t *testing.T) {
	for _, cfg := range []Config{{}, {Quota: admission.Quota{BytesPerSec: 1 << 50, MessagesPerSec: 1 << 50}}} {
		for _, subs := range []int{0, 1, 10} {
			f := newFanout(t, cfg, subs)
			for range 100 { // fill ring and pool
				f.round()
			}
			if n := testing.AllocsPerRun(500, f.round); n > 0 {
				t.Errorf("%d subscribers: %v allocations per batch", subs, n)
			}
		}
	}
}

// The other way through the lane: queued, run by an executor, blocked by a
// full queue and settled by its reader.
func TestQueuedPublishAllocatesNothing(t *testing.T) {
	f := newFanout(t, Config{}, 0)
	sub := f.subscribe(f.sh, stream.SubscribeOptions{Policy: stream.Block, Capacity: 1})
	const queued = 20
	round := func() {
		f.done.n = 0
		for range queued {
			if err := f.Publish(t.Context(), f.sh, f.id, f.batch, Fail, nil); err != nil {
				t.Fatal(err)
			}
		}
		for seen := 0; seen < queued; {
			pieces, err := sub.Next(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range pieces {
				p.Release()
				seen++
			}
		}
	}
	for range 20 {
		round()
	}
	if n := testing.AllocsPerRun(50, round); n > queued/4 {
		t.Errorf("%v allocations for %d batches", n, queued)
	}
	if st := f.Stats(); st.Publish.Executed == 0 || st.Subscribe.Blocked == 0 {
		t.Errorf("%+v", st)
	}
}

// A flood that is refused costs no memory.
func TestRefusalAllocatesNothing(t *testing.T) {
	f := newFanout(t, Config{ConnInflightBytes: 20_000}, 0)
	defer f.busy(f.sh)()
	f.must(f.Publish(t.Context(), f.sh, f.id, f.batch, Fail, nil))
	if n := testing.AllocsPerRun(500, func() {
		if f.Publish(f.t.Context(), f.sh, f.id, f.batch, Drop, nil) == nil {
			t.Fatal("accepted")
		}
	}); n > 0 {
		t.Errorf("%v allocations per refused batch", n)
	}
}

func BenchmarkPublishFanout(b *testing.B) {
	for _, c := range []struct {
		name string
		subs int
	}{{"0", 0}, {"1", 1}, {"10", 10}} {
		b.Run(c.name, func(b *testing.B) {
			f := newFanout(b, Config{}, c.subs)
			b.SetBytes(int64(f.batch.PayloadBytes))
			b.ReportAllocs()
			for b.Loop() {
				f.round()
			}
		})
	}
}
