package felix

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/felixtest"
)

func queueNode(t *testing.T) (context.Context, Target) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	n := felixtest.Start(t, felixtest.Durable())
	return ctx, Target{Addr: n.Addr(), CAFile: n.CAFile(), Tenant: n.Tenant(), Token: n.Token(), AdminURL: n.AdminURL()}
}

func TestEveryWayDrainsTheBacklogOnce(t *testing.T) {
	const records = 1530 // a last batch that is not full
	for _, way := range []string{WayPoll, WayConsume} {
		for _, workers := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s by %d", way, workers), func(t *testing.T) {
				ctx, target := queueNode(t)
				w, err := target.hire(ctx, workers, records, 64, 32)
				if err != nil {
					t.Fatal(err)
				}
				defer w.close()
				spec := QueueSpec{Target: target, Way: way, Records: records, RecordBytes: 32, Workers: workers, Batch: 100}
				work := map[string]worker{WayPoll: pollAndAck, WayConsume: consume}[way]
				for range 2 { // the second through a group of its own
					part, err := w.drain(ctx, spec, work, time.Minute)
					if err != nil || part.Records != records || part.Elapsed <= 0 || part.Flushes == 0 {
						t.Fatalf("drained %+v of %d records: %v", part, records, err)
					}
				}
			})
		}
	}
}

func TestQueueEndsWithItsTime(t *testing.T) {
	ctx, target := queueNode(t)
	const records = 20_000
	r, err := Queue(ctx, QueueSpec{
		Target: target, Phases: brief(), Way: WayPoll, Records: records, Fill: 64, RecordBytes: 32, Workers: 2, Batch: 10,
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Records == 0 || r.Bytes != 32*r.Records || r.Elapsed < brief().Measure || r.Flushes == 0 || r.Window != 2*10*32*(1+acksUnderWay) {
		t.Errorf("result %+v", r)
	}
	if _, err := Queue(ctx, QueueSpec{Target: target, Way: "other"}); err == nil {
		t.Error("an unknown way passes")
	}
}

func TestAcksOfClaimedRecordsAreCounted(t *testing.T) {
	for _, spec := range []AckSpec{{Callers: 1, ClaimsPerCall: 1}, {Callers: 8, ClaimsPerCall: 1}, {Callers: 1, ClaimsPerCall: 70}} {
		ctx, target := queueNode(t)
		spec.Target, spec.Phases = target, brief()
		spec.Records, spec.Fill, spec.Claimed, spec.RecordBytes = 3000, 64, 2500, 32
		r, err := Acks(ctx, spec)
		if err != nil {
			t.Fatalf("%+v: %v", spec, err)
		}
		if r.Records == 0 || r.Elapsed < brief().Measure || r.Flushes == 0 {
			t.Errorf("%+v: %+v", spec, r)
		}
	}
}

// TestWhatTheWorkersDidNotDoIsNoticed has workers that cheat.
func TestWhatTheWorkersDidNotDoIsNoticed(t *testing.T) {
	ctx, target := queueNode(t)
	const records = 500
	w, err := target.hire(ctx, 1, records, 64, 32)
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	spec := QueueSpec{Target: target, Records: records, RecordBytes: 32, Workers: 1, Batch: 100}
	forgetful := func(ctx context.Context, _ *client.Client, g *client.Group, batch int, b *measure.Backlog) error {
		claims, err := poll(ctx, g, batch)
		if err != nil {
			return err
		}
		b.Take(len(claims))
		return g.Ack(ctx, claims[1:]...)
	}
	if _, err := w.drain(ctx, spec, forgetful, time.Minute); err == nil || !strings.Contains(err.Error(), "100 of 100 records acknowledged; the broker has finished 0") {
		t.Errorf("a record that nobody acknowledged: %v", err)
	}
	again := func(ctx context.Context, _ *client.Client, g *client.Group, batch int, b *measure.Backlog) error {
		claims, err := poll(ctx, g, batch)
		if err != nil {
			return err
		}
		if err := g.Nack(ctx, claims[0], 0); err != nil {
			return err
		}
		_, err = poll(ctx, g, batch)
		return err
	}
	if _, err := w.drain(ctx, spec, again, time.Minute); err == nil || !strings.Contains(err.Error(), "record 0 was handed out 2 times") {
		t.Errorf("a record that came twice: %v", err)
	}
}

func TestFlushesAreReadOrTheRunFails(t *testing.T) {
	for body, want := range map[string]uint64{
		"# HELP felix_storage_sync_total Flushes.\nfelix_storage_sync_total 12\n": 12,
		"felix_storage_sync_total 1.5e+06\n":                                      1_500_000,
		"felix_storage_sync_totals 3\n":                                           0,
		"felix_storage_sync_total many\n":                                         0,
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
		n, err := Target{AdminURL: s.URL}.flushes(t.Context())
		s.Close()
		if n != want || (err == nil) != (want > 0) {
			t.Errorf("%q: %d flushes, %v", body, n, err)
		}
	}
}
