package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/bench/internal/measure"
	"github.com/felixlog/felix/bench/internal/schedule"
)

func samples(bytes ...uint64) []Sample {
	out := make([]Sample, len(bytes))
	for i, b := range bytes {
		out[i] = Sample{Round: i, Result: measure.Result{Records: 1, Bytes: b, Elapsed: time.Second}}
	}
	return out
}

func latencies(ms ...int) []Sample {
	out := make([]Sample, len(ms))
	for i, v := range ms {
		out[i] = Sample{Round: i, Result: measure.Result{Records: 1, Elapsed: time.Second, P50: time.Duration(v) * time.Millisecond}}
	}
	return out
}

func TestVerdicts(t *testing.T) {
	rate := Row{ID: "rate", Metric: measure.MBPerSec, Floor: .6, Goal: .85}
	late := Row{ID: "late", Metric: measure.P50Micros, Floor: 1.25, Goal: 1.1}
	info := Row{ID: "info", Metric: measure.MBPerSec}
	ref, refLate := samples(100, 100, 100, 100, 100), latencies(100, 100, 100, 100, 100)
	for _, c := range []struct {
		name       string
		row        Row
		felix, ref []Sample
		want       Verdict
	}{
		{"goal", rate, samples(90, 90, 90, 10, 10), ref, Goal},
		{"floor", rate, samples(70, 70, 70, 10, 99), ref, Floor},
		{"exactly the floor", rate, samples(60, 60, 60, 60, 60), ref, Floor},
		{"below", rate, samples(59, 59, 59, 59, 59), ref, Below},
		{"lower latency is better: goal", late, latencies(110, 90, 100, 150, 105), refLate, Goal},
		{"lower latency is better: floor", late, latencies(120, 120, 120, 120, 120), refLate, Floor},
		{"lower latency is better: below", late, latencies(130, 130, 130, 130, 130), refLate, Below},
		{"not judged", info, samples(1, 1, 1, 1, 1), ref, Info},
		{"four rounds prove nothing", rate, samples(90, 90, 90, 90), ref, Unproven},
		{"no rounds", rate, nil, nil, Invalid},
	} {
		t.Run(c.name, func(t *testing.T) {
			if l := Judge(c.row, schedule.Unpinned, c.felix, c.ref); l.Verdict != c.want {
				t.Errorf("verdict %s (%s), want %s; ratio %+v", l.Verdict, l.Why, c.want, l.Ratio)
			}
		})
	}
}

func TestOneRunWithDropsMakesTheLineInvalid(t *testing.T) {
	row := Row{ID: "fanout", Metric: measure.MBPerSec, Floor: .6, Goal: .85}
	felix := samples(100, 100, 100, 100, 100)
	felix[3].Result.Lost = 7
	l := Judge(row, schedule.Pinned, felix, samples(100, 100, 100, 100, 100))
	if l.Verdict != Invalid || !strings.Contains(l.Why, "round 4") || !strings.Contains(l.Why, "7 deliveries lost") {
		t.Errorf("verdict %s, why %q", l.Verdict, l.Why)
	}
	if l.Felix.N != 0 || l.Ratio.N != 0 {
		t.Errorf("an invalid line still shows figures: %+v", l)
	}
}

func TestABadReferenceRoundIsLeftOutWithItsPair(t *testing.T) {
	row := Row{ID: "r", Metric: measure.MBPerSec, Floor: .6, Goal: .85}
	ref := samples(100, 100, 100, 100, 100, 100)
	ref[0] = Sample{Failed: "nats-server ended"}
	l := Judge(row, schedule.Unpinned, samples(1000, 90, 90, 90, 90, 90), ref)
	if l.Verdict != Goal || l.Ratio.N != 5 || l.Ratio.Median != .9 {
		t.Errorf("line %+v", l)
	}
	for i := range 4 {
		ref[i] = Sample{Failed: "nats-server ended"}
	}
	l = Judge(row, schedule.Unpinned, samples(90, 90, 90, 90, 90, 90), ref)
	if l.Verdict != Invalid || !strings.Contains(l.Why, "nats-server ended") {
		t.Errorf("with 4 of 6 references gone the verdict is %s (%s)", l.Verdict, l.Why)
	}
}

func TestTable(t *testing.T) {
	row := Row{ID: "publish-1k", Work: "publish acked in memory, 1 KiB x 64", Reference: "raw quic-go bulk", Metric: measure.MBPerSec, Floor: .6, Goal: .85}
	lone := Row{ID: "lone", Work: "one in flight", Reference: "raw quic-go echo", Metric: measure.P50Micros, Floor: 1.25, Goal: 1.1}
	five := samples(204_000_000, 204_000_000, 204_000_000, 204_000_000, 204_000_000)
	noisyOurs := samples(170_000_000, 170_000_000, 170_000_000, 160_000_000, 180_000_000)
	for i := range noisyOurs {
		noisyOurs[i].Foreign = .3
		five[i].Foreign = .3
	}
	lost := latencies(1, 1, 1, 1, 1)
	lost[0].Result.Lost = 3
	var b bytes.Buffer
	lines := []Line{
		Judge(row, schedule.Unpinned, noisyOurs, five),
		Judge(row, schedule.Pinned, five, five),
		Judge(lone, schedule.Pinned, lost, latencies(1, 1, 1, 1, 1)),
	}
	lines[0].Notes = []string{"felix, client: 1 publisher", "reference, lost: 1 %"}
	lines[1].Notes = []string{"felix, client: 1 publisher", "reference, lost: 2 %"}
	err := Table(&b, lines)
	if err != nil {
		t.Fatal(err)
	}
	want := `ROW         MODE  FELIX  REFERENCE  UNIT  RATIO  RANGE         FLOOR   GOAL    VERDICT
publish-1k  U     170    204        MB/s  0.833  0.784..0.882  >=0.6   >=0.85  floor*
publish-1k  P     204    204        MB/s  1.00   1.00..1.00    >=0.6   >=0.85  goal*
lone        P     -      -          us    -      -             <=1.25  <=1.1   INVALID

Ratio: median over rounds of Felix divided by the reference of the same round; range: its lowest and highest.
U: client and server on all CPUs (for claims). P: client on one CPU, server on another (for regressions).
*: other processes used more than 8 % of the machine; run again on a quiet one.

publish-1k: publish acked in memory, 1 KiB x 64
  against raw quic-go bulk
  U, P: felix, client: 1 publisher
  U: reference, lost: 1 %
  P: reference, lost: 2 %

lone: one in flight
  against raw quic-go echo
  P: felix, round 1: 3 deliveries lost
`
	if b.String() != want {
		t.Errorf("table:\n%s\nwant:\n%s", b.String(), want)
	}
}

func TestFiguresHaveThreeDigits(t *testing.T) {
	for x, want := range map[float64]string{0: "0", .04567: "0.0457", .6: "0.600", 1: "1.00", 12.345: "12.3", 999.4: "999", 1234567: "1230000", 99999: "100000"} {
		if got := significant(x); got != want {
			t.Errorf("significant(%v) = %s, want %s", x, got, want)
		}
	}
}

func TestDocumentIsOneJSONValue(t *testing.T) {
	row := Row{ID: "r", Metric: measure.MBPerSec, Floor: .6, Goal: .85}
	d := Document{Rounds: 5, Lines: []Line{
		Judge(row, schedule.Unpinned, samples(10, 10, 10, 10, 10), samples(100, 100, 100, 100, 100)),
		Judge(Row{ID: "i", Metric: measure.MBPerSec}, schedule.Unpinned, samples(10), samples(100)),
	}}
	var b bytes.Buffer
	if err := d.Write(&b); err != nil {
		t.Fatal(err)
	}
	var back struct {
		Lines []struct {
			ID      string  `json:"id"`
			Unit    string  `json:"unit"`
			Verdict Verdict `json:"verdict"`
			Ratio   struct {
				Median float64 `json:"median"`
			} `json:"ratio"`
			Samples []struct {
				Result measure.Result `json:"result"`
			} `json:"felix_samples"`
		} `json:"lines"`
	}
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if l := back.Lines[0]; l.ID != "r" || l.Unit != "MB/s" || l.Verdict != Below || l.Ratio.Median != .1 || len(l.Samples) != 5 || l.Samples[0].Result.Bytes != 10 {
		t.Errorf("first line reads %+v", l)
	}
	if f := d.Failing(); len(f) != 1 || f[0].ID != "r" {
		t.Errorf("failing lines %+v", f)
	}
}
