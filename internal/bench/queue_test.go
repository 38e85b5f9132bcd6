package bench

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/internal/dev"
)

// durable runs a development broker that keeps its messages for one test.
func durable(t *testing.T) *dev.Server {
	t.Helper()
	server, err := dev.Start(t.Context(), dev.Options{Data: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Shutdown(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return server
}

func TestQueueCountsEveryMessageOnce(t *testing.T) {
	c := dial(t, durable(t))
	// What was there before is not part of a run.
	if _, err := c.Publish(t.Context(), "load", []byte("earlier")); err != nil {
		t.Fatal(err)
	}
	for _, b := range []Queue{
		{Total: 1000, Warmup: 77, PayloadBytes: 100, Concurrency: 3, Batch: 64, AcksInFlight: 4},
		{Total: 1, Concurrency: 4, Batch: 1, AcksInFlight: 1},
		{Total: 330, Warmup: 1, PayloadBytes: 10, Concurrency: 1, Batch: 7, AcksInFlight: 8},
	} {
		b.Stream = "load"
		var told atomic.Uint64
		r, err := b.Run(t.Context(), c, func(n uint64) { told.Add(n) })
		if err != nil {
			t.Fatal(err)
		}
		if r.Messages != b.Total || r.Bytes != b.Total*uint64(b.PayloadBytes) || r.Redelivered != 0 || r.Unfinished != 0 {
			t.Errorf("%+v: measured %+v", b, r)
		}
		if told.Load() != b.Total {
			t.Errorf("progress was told of %d messages, want %d", told.Load(), b.Total)
		}
		if least := max(b.Total/uint64(b.Batch), 1); r.PollLatencyUS.Count < least || r.AckLatencyUS.Count < least {
			t.Errorf("%d poll and %d ack latencies, want %d at least", r.PollLatencyUS.Count, r.AckLatencyUS.Count, least)
		}
	}
}

func TestQueueNeedsAStreamWithALog(t *testing.T) {
	b := Queue{Stream: "load", Total: 1, Concurrency: 1, Batch: 1, AcksInFlight: 1}
	if _, err := b.Run(t.Context(), dial(t, broker(t, nil)), func(uint64) {}); !errors.Is(err, client.ErrUnsupported) {
		t.Errorf("err = %v", err)
	}
}
