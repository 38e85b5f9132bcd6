package measure

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"
)

func TestInvalidRunsAreNamed(t *testing.T) {
	good := Result{Records: 100, Bytes: 1000, Elapsed: time.Second, Window: 100}
	with := func(change func(*Result)) Result {
		r := good
		change(&r)
		return r
	}
	for _, c := range []struct {
		name string
		r    Result
		ok   bool
	}{
		{"good", good, true},
		{"lost", with(func(r *Result) { r.Lost = 1 }), false},
		{"repeated", with(func(r *Result) { r.Repeated = 1 }), false},
		{"nothing moved", with(func(r *Result) { r.Records = 0 }), false},
		{"no time passed", with(func(r *Result) { r.Elapsed = 0 }), false},
		{"shorter than ten windows", with(func(r *Result) { r.Bytes = 999 }), false},
		{"empty payloads have no window", with(func(r *Result) { r.Bytes, r.Window = 0, 0 }), true},
		{"a memory run moves nothing", Result{RSS: 1 << 20, RSSBound: 1 << 30}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if why := c.r.Invalid(); (why == "") != c.ok {
				t.Errorf("Invalid() = %q, want ok %v", why, c.ok)
			}
		})
	}
}

func TestMetrics(t *testing.T) {
	r := Result{Records: 3000, Bytes: 6_000_000, Elapsed: 2 * time.Second, P50: 1500 * time.Nanosecond, P99: 2 * time.Millisecond, RSS: 3 << 20, Flushes: 6}
	for m, want := range map[Metric]float64{MBPerSec: 3, RecordsPerSec: 1500, OpsPerSec: 1500, P50Micros: 1.5, P99Micros: 2000, RSSMiB: 3, FlushesPerThousand: 2} {
		if got := m.Of(r); got != want {
			t.Errorf("metric %d (%s) = %v, want %v", m, m.Unit(), got, want)
		}
	}
	if got := MBPerSec.Of(Result{Bytes: 1}); got != 0 {
		t.Errorf("no time gives rate %v", got)
	}
}

func TestResultCrossesTheProcessBoundary(t *testing.T) {
	r := Result{Records: 1, Bytes: 2, Elapsed: 3, P50: 4, P99: 5, Lost: 6, Repeated: 7, Window: 8, RSS: 9, RSSBound: 10, Flushes: 11}
	r.Note("client", "%d connections", 4)
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var back Result
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back, r) {
		t.Errorf("%s decodes to %+v", b, back)
	}
}
