package demo

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/examples"
	"github.com/felixlog/felix/internal/dev"
)

func dialer(t *testing.T) Dialer {
	t.Helper()
	server, err := dev.Start(t.Context(), dev.Options{Flags: map[string]string{"subscriber-queue-policy": "block"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return func(ctx context.Context) (*client.Client, error) { return server.Dial(ctx) }
}

func TestEveryReadingSeesEverything(t *testing.T) {
	show := New(slices.Collect(examples.QuakeLines()), 0)
	report, err := show.Run(t.Context(), dialer(t))
	if err != nil {
		t.Fatal(err)
	}
	if report.Published != 1707 || report.Received != 1707 || !report.InOrder || report.CacheNetworks != 12 ||
		report.CacheWrites != 1707 || !report.CacheCorrect || !report.OK || report.Paced {
		t.Errorf("report %+v", report)
	}
	if report.PublishRate <= 0 || report.ReceiveRate <= 0 || report.DeliveryMedianUS <= 0 || report.CachePutMedianUS <= 0 || report.CacheGetMedianUS <= 0 {
		t.Errorf("a figure is missing: %+v", report)
	}
	end := show.Snapshot()
	if end.Published != 1707 || end.Received != 1707 || end.Cached != 1707 || !end.InOrder || len(end.Latest) != 12 || end.Last.Place == "" {
		t.Errorf("the show ended at %+v", end)
	}
	line, err := json.Marshal(report)
	if err != nil || !strings.HasPrefix(string(line), `{"published":1707,"received":1707,"in_order":true,"cache_networks":12,`) {
		t.Errorf("as JSON: %s, error %v", line, err)
	}
}

func TestPacedDemoSaysSo(t *testing.T) {
	report, err := New(slices.Collect(examples.QuakeLines())[:50], 5000).Run(t.Context(), dialer(t))
	if err != nil {
		t.Fatal(err)
	}
	if !report.Paced || !report.OK || report.Total() != 50 {
		t.Errorf("report %+v", report)
	}
}

// A wrong value in the cache is seen: here somebody overwrites a network's
// entry after the last quake of that network.
func TestWrongCacheIsSeen(t *testing.T) {
	records := slices.Collect(examples.QuakeLines())[:20]
	d := New(records, 0)
	held := d.expected()
	timing := newTiming(len(records))
	d.published, d.received, d.cached = 20, 20, 20
	if r := d.report(held, nil, timing, 0); !r.OK {
		t.Fatalf("report %+v", r)
	}
	for network := range held {
		held[network] = []byte("{}")
		break
	}
	if r := d.report(held, nil, timing, 0); r.CacheCorrect || r.CacheOK() || r.OK {
		t.Errorf("report %+v", r)
	}
	held["zz"] = []byte("{}")
	if r := d.report(held, nil, timing, 0); r.CacheOK() {
		t.Errorf("a network too many: %+v", r)
	}
}

func TestRecordsThatAreNoQuakesAreRefused(t *testing.T) {
	for _, record := range []string{"", "{", `{"mag":1}`} {
		_, err := New([][]byte{[]byte(record)}, 0).Run(t.Context(), dialer(t))
		if err == nil || !strings.Contains(err.Error(), "record 0") {
			t.Errorf("%q: error %v", record, err)
		}
	}
}
