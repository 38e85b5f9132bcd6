package bench

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/internal/dev"
)

// broker runs a development broker for one test.
func broker(t *testing.T, flags map[string]string) *dev.Server {
	t.Helper()
	server, err := dev.Start(t.Context(), dev.Options{Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return server
}

func dialer(server *dev.Server) Dialer {
	return func(ctx context.Context) (*client.Client, error) { return server.Dial(ctx) }
}

func dial(t *testing.T, server *dev.Server) *client.Client {
	t.Helper()
	c, err := server.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestQuantiles(t *testing.T) {
	all, half := newRecorder(), newRecorder()
	for i := 1; i <= 1000; i++ {
		if i%2 == 0 {
			half.record(time.Duration(i) * time.Microsecond)
		} else {
			all.record(time.Duration(i) * time.Microsecond)
		}
	}
	all.merge(half)
	q := all.quantiles()
	near := func(name string, got, want float64) {
		t.Helper()
		if got < want*0.998 || got > want*1.002 {
			t.Errorf("%s is %v, want about %v", name, got, want)
		}
	}
	if q.Count != 1000 {
		t.Errorf("count %d", q.Count)
	}
	near("p50", q.P50, 500)
	near("p90", q.P90, 900)
	near("p99", q.P99, 990)
	near("p99.9", q.P999, 999)
	near("max", q.Max, 1000)

	none := newRecorder().quantiles()
	if none != (Quantiles{}) {
		t.Errorf("quantiles of nothing: %+v", none)
	}
	extreme := newRecorder()
	extreme.record(-time.Second)
	extreme.record(time.Hour)
	if extreme.quantiles().Count != 2 {
		t.Error("times beyond what a recorder holds are not counted")
	}
}

func TestMessageRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := message{
			run: rapid.Uint64().Draw(t, "run"), sequence: rapid.Uint64().Draw(t, "sequence"),
			sent: time.Duration(rapid.Int64().Draw(t, "sent")),
		}
		payload := noise(rapid.IntRange(messageHead, 200).Draw(t, "size"))
		want.put(payload)
		if got, ok := readMessage(payload, want.run); !ok || got != want {
			t.Fatalf("%+v came back as %+v", want, got)
		}
		if _, ok := readMessage(payload, want.run+1); ok {
			t.Fatal("another run's message counts")
		}
		if _, ok := readMessage(payload[:messageHead-1], want.run); ok {
			t.Fatal("a message without a whole head counts")
		}
	})
}

func TestParametersHaveBounds(t *testing.T) {
	ingest := Ingest{Stream: "s", Total: 1, Concurrency: 1, Batch: 1, InFlight: 1}
	fanout := Fanout{Stream: "s", Total: 1, PayloadBytes: messageHead, Batch: 1, InFlight: 1, Fanout: 1, Connections: 1}
	latency := Latency{Stream: "s", Total: 1, PayloadBytes: messageHead}
	cache := Cache{Cache: "c", Total: 1, Concurrency: 1}
	queue := Queue{Stream: "s", Total: 1, Concurrency: 1, Batch: 1, AcksInFlight: 1}
	for _, ok := range []error{ingest.check(), fanout.check(), latency.check(), cache.check(), queue.check()} {
		if ok != nil {
			t.Errorf("the least that is allowed: %v", ok)
		}
	}
	with := func(change func()) { change() }
	bad := map[string]error{}
	with(func() { b := ingest; b.Total = 0; bad["total 0"] = b.check() })
	with(func() { b := ingest; b.PayloadBytes = -1; bad["negative payload"] = b.check() })
	with(func() { b := ingest; b.Concurrency = maxConcurrency + 1; bad["concurrency"] = b.check() })
	with(func() {
		b := ingest
		b.Batch, b.PayloadBytes = 1000, 1<<20
		bad["a batch too large for a frame"] = b.check()
	})
	with(func() { b := fanout; b.PayloadBytes--; bad["payload without room for the head"] = b.check() })
	with(func() { b := fanout; b.Fanout = 0; bad["no subscriber"] = b.check() })
	with(func() { b := latency; b.PayloadBytes = 0; bad["latency payload"] = b.check() })
	with(func() { b := cache; b.Concurrency = 0; bad["no worker"] = b.check() })
	with(func() { b := queue; b.Batch = maxPoll + 1; bad["a poll of too many"] = b.check() })
	with(func() { b := queue; b.AcksInFlight = 0; bad["no acknowledgement in flight"] = b.check() })
	with(func() {
		b := queue
		b.PayloadBytes = maxPayload
		bad["messages too large to publish in batches"] = b.check()
	})
	for name, err := range bad {
		if !errors.Is(err, ErrParameter) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What is measured is exactly the total; the warm-up goes out as well and is
// in no figure.
func TestIngestCounts(t *testing.T) {
	server := broker(t, nil)
	c := dial(t, server)
	subscription, err := c.Subscribe(t.Context(), "load")
	if err != nil {
		t.Fatal(err)
	}
	defer subscription.Close()
	for _, b := range []Ingest{
		{Total: 1000, Warmup: 77, PayloadBytes: 100, Concurrency: 3, Batch: 64, InFlight: 2},
		{Total: 1, PayloadBytes: 0, Concurrency: 4, Batch: 64, InFlight: 1},
		{Total: 130, Warmup: 1, PayloadBytes: 10, Concurrency: 2, Batch: 7, InFlight: 4, Keys: 5},
	} {
		b.Stream = "load"
		var told atomic.Uint64
		r, err := b.Run(t.Context(), c, func(n uint64) { told.Add(n) })
		if err != nil {
			t.Fatal(err)
		}
		if r.Messages != b.Total || r.Bytes != b.Total*uint64(b.PayloadBytes) || r.Refused != 0 {
			t.Errorf("%+v: measured %d messages, %d bytes, %d refused", b, r.Messages, r.Bytes, r.Refused)
		}
		if told.Load() != b.Total {
			t.Errorf("progress was told of %d messages, want %d", told.Load(), b.Total)
		}
		if least := b.Total / uint64(b.Batch); r.BatchLatencyUS.Count < max(least, 1) {
			t.Errorf("%d batch latencies, want %d at least", r.BatchLatencyUS.Count, least)
		}
		for n := range b.Warmup + b.Total {
			if _, err := subscription.Next(t.Context()); err != nil {
				t.Fatalf("message %d of the stream: %v", n, err)
			}
		}
	}
}

func TestIngestEndsWithItsDuration(t *testing.T) {
	server := broker(t, nil)
	b := Ingest{Stream: "load", Total: Endless, PayloadBytes: 10, Concurrency: 2, Batch: 8, InFlight: 2, Duration: 50 * time.Millisecond}
	r, err := b.Run(t.Context(), dial(t, server), func(uint64) {})
	if err != nil {
		t.Fatal(err)
	}
	if r.Messages == 0 || r.Rate <= 0 {
		t.Errorf("measured %+v", r)
	}
}

// A failure ends the run: it is not counted as a refusal.
func TestIngestFails(t *testing.T) {
	server := broker(t, nil)
	c, err := server.Dial(t.Context(), client.WithNamespace("nowhere"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b := Ingest{Stream: "load", Total: 10_000, Concurrency: 2, Batch: 8, InFlight: 2}
	if _, err := b.Run(t.Context(), c, func(uint64) {}); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("error %v", err)
	}
}

func TestRunsEndWithTheirContext(t *testing.T) {
	server := broker(t, nil)
	c := dial(t, server)
	stopped := errors.New("stopped")
	for name, run := range map[string]func(context.Context, func(uint64)) error{
		"ingest": func(ctx context.Context, progress func(uint64)) error {
			_, err := Ingest{Stream: "load", Total: Endless, Concurrency: 2, Batch: 8, InFlight: 2}.Run(ctx, c, progress)
			return err
		},
		"cache": func(ctx context.Context, progress func(uint64)) error {
			_, err := Cache{Cache: "scratch", Total: Endless, Concurrency: 2}.Run(ctx, c, progress)
			return err
		},
		"latency": func(ctx context.Context, progress func(uint64)) error {
			_, err := Latency{Stream: "load", Total: Endless, PayloadBytes: messageHead}.Run(ctx, dialer(server), progress)
			return err
		},
		"fanout": func(ctx context.Context, progress func(uint64)) error {
			_, err := Fanout{Stream: "load", Total: Endless, PayloadBytes: messageHead, Batch: 8, InFlight: 2, Fanout: 2, Connections: 2}.Run(ctx, dialer(server), progress)
			return err
		},
	} {
		ctx, cancel := context.WithCancelCause(t.Context())
		var told atomic.Uint64
		err := run(ctx, func(n uint64) {
			if told.Add(n) > 100 {
				cancel(stopped)
			}
		})
		if err == nil {
			t.Errorf("%s went on to its end", name)
		}
	}
}

func TestFanoutDeliversAll(t *testing.T) {
	server := broker(t, nil)
	c := dial(t, server)
	// Others publish to the stream meanwhile: their messages are not counted.
	if _, err := c.Publish(t.Context(), "load", bytes.Repeat([]byte{1}, 100)); err != nil {
		t.Fatal(err)
	}
	b := Fanout{Stream: "load", Fanout: 3, Total: 1000, Warmup: 100, PayloadBytes: 64, Batch: 7, InFlight: 3, Connections: 2, Window: 200}
	r, err := b.Run(t.Context(), dialer(server), func(uint64) {})
	if err != nil {
		t.Fatal(err)
	}
	if r.Published != 1000 || r.Delivered != 3000 || r.DeliveredBytes != 3000*64 || r.Lost != 0 || r.OutOfOrder != 0 || r.DeliveryLatencyUS.Count != 3000 {
		t.Errorf("measured %+v", r)
	}
}

// With tiny queues subscribers lose messages: each is counted, as delivered or
// as lost.
func TestFanoutCountsLosses(t *testing.T) {
	server := broker(t, map[string]string{"subscriber-queue-capacity": "1"})
	slow := func(ctx context.Context) (*client.Client, error) {
		return server.Dial(ctx, client.WithWindows(client.Windows{EventConn: 64 << 10, EventStream: 64 << 10}))
	}
	b := Fanout{Stream: "load", Fanout: 4, Total: 2000, PayloadBytes: 4096, Batch: 1, InFlight: 64, Connections: 1}
	r, err := b.Run(t.Context(), slow, func(uint64) {})
	if err != nil {
		t.Fatal(err)
	}
	if r.Delivered+r.Lost != r.Published*4 || r.Published+r.Refused != 2000 {
		t.Errorf("measured %+v", r)
	}
	if r.Lost == 0 {
		t.Errorf("nothing was lost: %+v", r)
	}
}

func TestLatencyCounts(t *testing.T) {
	server := broker(t, nil)
	var told atomic.Uint64
	b := Latency{Stream: "load", Total: 200, Warmup: 20, PayloadBytes: 100}
	r, err := b.Run(t.Context(), dialer(server), func(n uint64) { told.Add(n) })
	if err != nil {
		t.Fatal(err)
	}
	if r.Messages != 200 || r.Lost != 0 || r.AckUS.Count != 200 || r.DeliveryUS.Count != 200 || told.Load() != 200 {
		t.Errorf("measured %+v, progress of %d", r, told.Load())
	}
}

func TestCacheCountsAndCleansUp(t *testing.T) {
	server := broker(t, nil)
	c := dial(t, server)
	var told atomic.Uint64
	b := Cache{Cache: "scratch", Total: 500, Warmup: 50, PayloadBytes: 100, Concurrency: 4}
	r, err := b.Run(t.Context(), c, func(n uint64) { told.Add(n) })
	if err != nil {
		t.Fatal(err)
	}
	for name, phase := range map[string]CachePhase{"put": r.Put, "get": r.Get} {
		if phase.Requests != 500 || phase.Bytes != 500*100 || phase.Missing != 0 || phase.Refused != 0 || phase.LatencyUS.Count != 500 {
			t.Errorf("%s: measured %+v", name, phase)
		}
	}
	if told.Load() != 1000 {
		t.Errorf("progress was told of %d requests, want 1000", told.Load())
	}
	for _, key := range []string{"felix-bench-0", "felix-bench-1023"} {
		if _, found, err := c.Cache("scratch").Get(t.Context(), key); err != nil || found {
			t.Errorf("%s is left behind (error %v)", key, err)
		}
	}
}

// Keys that the cache has no room for are counted as missing.
func TestCacheCountsMissingKeys(t *testing.T) {
	server := broker(t, map[string]string{"cache-max-entries": "100"})
	b := Cache{Cache: "scratch", Total: 1024, PayloadBytes: 10, Concurrency: 2}
	r, err := b.Run(t.Context(), dial(t, server), func(uint64) {})
	if err != nil {
		t.Fatal(err)
	}
	if r.Get.Missing < 1024-200 || r.Get.Missing > 1024 {
		t.Errorf("%d of 1024 keys missing in a cache of 100", r.Get.Missing)
	}
}
