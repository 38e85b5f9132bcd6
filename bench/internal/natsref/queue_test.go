package natsref

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/felixlog/felix/bench/internal/measure"
)

// backlog runs a server with a backlog of records of 64 bytes.
func backlog(t *testing.T, records int, always bool) (context.Context, Target) {
	t.Helper()
	return serve(t, ServerSpec{JetStream: true, SyncAlways: always, Dir: t.TempDir(), Backlog: records, BacklogBytes: 64})
}

func TestEveryWayDrainsTheBacklogOnce(t *testing.T) {
	const records = 1530 // a last batch that is not full
	ctx, target := backlog(t, records, true)
	for _, way := range []string{WayFetch, WayFetchAnswered, WayConsume} {
		for _, workers := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s by %d", way, workers), func(t *testing.T) {
				spec := QueueSpec{Target: target, Way: way, Records: records, RecordBytes: 64, Workers: workers, Batch: 100}
				w, err := target.hire(ctx, workers, records, func(error) {})
				if err != nil {
					t.Fatal(err)
				}
				defer w.close()
				work := map[string]worker{WayFetch: fetchAndAck, WayFetchAnswered: fetchAndConfirm, WayConsume: consumeAndAck}[way]
				for range 2 { // the second through a consumer of its own
					part, err := w.drain(ctx, spec, work, time.Minute)
					if err != nil || part.Records != records || part.Elapsed <= 0 {
						t.Fatalf("drained %+v of %d records: %v", part, records, err)
					}
				}
				names := w.js[0]
				s, err := names.Stream(ctx, streamName)
				if err != nil {
					t.Fatal(err)
				}
				if info, err := s.Info(ctx); err != nil || info.State.Consumers != 0 {
					t.Errorf("consumers left behind: %+v, %v", info.State, err)
				}
			})
		}
	}
}

func TestQueueEndsWithItsTime(t *testing.T) {
	ctx, target := backlog(t, 20_000, false)
	r, err := Queue(ctx, QueueSpec{Target: target, Phases: brief(), Way: WayFetch, Records: 20_000, RecordBytes: 64, Workers: 2, Batch: 10})
	if err != nil {
		t.Fatal(err)
	}
	if r.Records == 0 || r.Bytes != 64*r.Records || r.Window != 2*10*64 || r.Elapsed < brief().Measure {
		t.Errorf("result %+v", r)
	}
}

func TestAcksOfClaimedRecordsAreCounted(t *testing.T) {
	ctx, target := backlog(t, 3000, true)
	for _, inFlight := range []int{0, 1, 8} {
		r, err := Acks(ctx, AckSpec{Target: target, Phases: brief(), Records: 3000, Claimed: 2500, RecordBytes: 64, InFlight: inFlight})
		if err != nil {
			t.Fatalf("%d in flight: %v", inFlight, err)
		}
		if r.Records == 0 || r.Elapsed < brief().Measure {
			t.Errorf("%d in flight: %+v", inFlight, r)
		}
	}
}

// TestWhatTheWorkersDidNotDoIsNoticed has workers that cheat.
func TestWhatTheWorkersDidNotDoIsNoticed(t *testing.T) {
	const records = 500
	ctx, target := backlog(t, records, false)
	spec := QueueSpec{Target: target, Records: records, RecordBytes: 64, Workers: 1, Batch: 100}
	w, err := target.hire(ctx, 1, records, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	again := func(_ context.Context, c jetstream.Consumer, batch int, b *measure.Backlog) error {
		first := true
		for b.Open() {
			err := fetch(c, batch, b, func(msg jetstream.Msg) error {
				if first {
					first = false
					b.Take(-1) // counted when it comes again
					return msg.Nak()
				}
				return msg.Ack()
			})
			if err != nil {
				return err
			}
		}
		return nil
	}
	if _, err := w.drain(ctx, spec, again, time.Minute); err == nil || !strings.Contains(err.Error(), "501 deliveries") {
		t.Errorf("a record that came twice: %v", err)
	}
	uncounted := func(ctx context.Context, c jetstream.Consumer, _ int, b *measure.Backlog) error {
		if _, err := claim(ctx, c, 10); err != nil {
			return err
		}
		return nil
	}
	if _, err := w.drain(ctx, spec, uncounted, time.Minute); err == nil || !strings.Contains(err.Error(), "0 records taken, 10 delivered") {
		t.Errorf("records that nobody acknowledged: %v", err)
	}
	if _, err := Queue(ctx, QueueSpec{Target: target, Phases: brief(), Way: WayFetch, Records: records + 1, Workers: 1, Batch: 1}); err == nil {
		t.Error("a backlog of another size passes")
	}
	if _, err := Queue(ctx, QueueSpec{Target: target, Way: "other"}); err == nil {
		t.Error("an unknown way passes")
	}
	if _, err := Acks(ctx, AckSpec{Target: target, Records: records, Claimed: records + 1}); err == nil {
		t.Error("more claims than records pass")
	}
}
