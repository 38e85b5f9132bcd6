package felix

import (
	"context"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/bench/internal/frames"
	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/felixtest"
)

func node(t *testing.T, opts ...felixtest.Option) (context.Context, Target) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	n := felixtest.Start(t, opts...)
	return ctx, Target{Addr: n.Addr(), CAFile: n.CAFile(), Tenant: n.Tenant(), Token: n.Token()}
}

// brief has no warm-up: what begins in it would not count, and on a busy
// machine one request can outlast it and the run.
func brief() measure.Phases { return measure.Phases{Measure: 100 * time.Millisecond} }

func TestAckedCountsAnswers(t *testing.T) {
	ctx, target := node(t)
	r, err := Acked(ctx, AckedSpec{Target: target, Phases: brief(), Batch: 8, RecordBytes: 100, Window: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	if r.Records == 0 || r.Records%8 != 0 || r.Bytes != 100*r.Records || r.Lost != 0 || r.Window != 64<<10 {
		t.Errorf("result %+v", r)
	}
}

func TestLoneTimesEveryRecord(t *testing.T) {
	ctx, target := node(t)
	r, err := Lone(ctx, LoneSpec{Target: target, Phases: brief(), RecordBytes: 256})
	if err != nil {
		t.Fatal(err)
	}
	if r.Records == 0 || r.P50 <= 0 || r.P99 < r.P50 {
		t.Errorf("result %+v", r)
	}
}

func TestPublishersWaitForTheDisk(t *testing.T) {
	ctx, target := node(t, felixtest.Durable())
	r, err := Publishers(ctx, PublishersSpec{Target: target, Phases: brief(), Publishers: 8, Clients: 2, RecordBytes: 100})
	if err != nil {
		t.Fatal(err)
	}
	if r.Records == 0 || r.Bytes != 100*r.Records || r.P50 <= 0 || r.P99 < r.P50 {
		t.Errorf("result %+v", r)
	}
}

func TestReplayReadsWholeStreams(t *testing.T) {
	ctx, target := node(t, felixtest.Durable())
	const records = 5000
	r, err := Replay(ctx, ReplaySpec{Target: target, Phases: brief(), Records: records, Batch: 64, RecordBytes: 32})
	if err != nil {
		t.Fatal(err)
	}
	if r.Records == 0 || r.Records%records != 0 || r.Bytes != 32*r.Records {
		t.Errorf("result %+v", r)
	}
}

func TestFanoutCountsEveryDelivery(t *testing.T) {
	for _, conns := range []int{1, 2, 3} {
		ctx, target := node(t, felixtest.WithSetting("subscriber-queue-policy", "block"))
		r, err := Fanout(ctx, FanoutSpec{
			Target: target, Phases: brief(), Subscribers: 3, Conns: conns, Batch: 16, RecordBytes: 64,
			MaxLag: 1024, Window: 64 << 10,
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Records == 0 || r.Bytes != 64*r.Records || r.Lost != 0 || r.Repeated != 0 {
			t.Errorf("%d connections: %+v", conns, r)
		}
	}
}

func TestCacheAnswersGetsAndPuts(t *testing.T) {
	ctx, target := node(t)
	for _, put := range []bool{false, true} {
		for _, size := range []int{0, 256} {
			r, err := Cache(ctx, CacheSpec{Target: target, Phases: brief(), InFlight: 8, Put: put, Value: size, Keys: 50})
			if err != nil {
				t.Fatalf("put %v, %d bytes: %v", put, size, err)
			}
			if r.Records == 0 || r.Bytes != uint64(size)*r.Records || r.P99 < r.P50 {
				t.Errorf("put %v, %d bytes: %+v", put, size, r)
			}
		}
	}
}

func TestStallReportsMemoryBesideItsBound(t *testing.T) {
	ctx, target := node(t)
	spec := StallSpec{
		Target: target, Phases: brief(), Subscribers: 2, Batch: 16, RecordBytes: 1024, Window: 256 << 10,
		PID: os.Getpid(), Allowed: 1,
	}
	r, err := Stall(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	if r.RSS == 0 || r.RSSBound == 0 || r.Invalid() != "" || r.Notes["memory"] == "" {
		t.Errorf("result %+v, invalid %q", r, r.Invalid())
	}
	spec.Allowed = 1 << 50
	if _, err := Stall(ctx, spec); err == nil || !strings.Contains(err.Error(), "longer run") {
		t.Errorf("a run that publishes less than the bound: err = %v", err)
	}
}

func TestStalledPeerAccountsForEveryRecord(t *testing.T) {
	ctx, target := node(t)
	for _, frozen := range []bool{false, true} {
		r, err := StalledPeer(ctx, StalledPeerSpec{
			Target: target, Phases: measure.Phases{Warmup: 20 * time.Millisecond, Measure: 100 * time.Millisecond},
			Subscribers: 3, Every: 2 * time.Millisecond, Batch: 10, RecordBytes: 4096,
			Frozen: frozen, Window: 64 << 10, Queue: 4,
		})
		if err != nil {
			t.Fatalf("frozen %v: %v", frozen, err)
		}
		// Two subscribers are timed, over the 50 batches due after the warm-up.
		if r.Invalid() != "" || r.Records != 2*50*10 || r.Bytes != 4096*r.Records || r.P99 < r.P50 {
			t.Errorf("frozen %v: %+v", frozen, r)
		}
		if (r.Notes["frozen"] != "") != frozen {
			t.Errorf("frozen %v: notes %v", frozen, r.Notes)
		}
	}
}

func TestARefusedTokenEndsTheRun(t *testing.T) {
	ctx, target := node(t)
	target.Token = "not a token"
	if _, err := Lone(ctx, LoneSpec{Target: target, Phases: brief(), RecordBytes: 1}); err == nil {
		t.Error("the run passes")
	}
}

// TestReferencesSendWhatFelixSends checks the fields that decide how long the
// frames of package frames are: an acknowledgement without offset and owner,
// a cache hit with a version of sixteen digits.
func TestReferencesSendWhatFelixSends(t *testing.T) {
	ctx, target := node(t)
	c, err := target.dial(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ack, err := c.Publish(ctx, frames.Stream, []byte("x"))
	if err != nil || ack.HasOffset || ack.Owner != nil {
		t.Errorf("ack %+v, %v: frames.LonePublish has neither offset nor owner", ack, err)
	}
	cache := c.Cache(frames.Cache)
	if err := cache.Put(ctx, "k", []byte("v")); err != nil {
		t.Fatal(err)
	}
	entry, ok, err := cache.GetVersioned(ctx, "k")
	if err != nil || !ok || !entry.HasVersion || len(strconv.FormatUint(entry.Version, 10)) != 16 {
		t.Errorf("entry %+v, %v, %v: frames.CacheGet has a version of 16 digits", entry, ok, err)
	}
}
