package main

import (
	"slices"
	"strings"
	"testing"
)

func TestEveryRowHasTwoSidesThatCanRun(t *testing.T) {
	all := contenders()
	used := make(map[string]bool)
	seen := make(map[string]bool)
	for _, r := range catalogue() {
		if seen[r.ID] {
			t.Errorf("two rows are called %s", r.ID)
		}
		seen[r.ID] = true
		for _, id := range []string{r.felix, r.ref} {
			if id == ownBound {
				continue
			}
			used[id] = true
			if all[id].start == nil {
				t.Errorf("row %s needs case %q, which does not exist", r.ID, id)
			}
		}
		if !strings.HasPrefix(r.felix, "felix.") || strings.HasPrefix(r.ref, "felix.") != (r.ID == "stalled-peer") {
			t.Errorf("row %s compares %s with %s", r.ID, r.felix, r.ref)
		}
		if r.Work == "" || r.Reference == "" {
			t.Errorf("row %s does not say what it compares", r.ID)
		}
		if (r.Floor == 0) != (r.Goal == 0) {
			t.Errorf("row %s has floor %v and goal %v", r.ID, r.Floor, r.Goal)
		}
		if r.Floor > 0 && r.Metric.LowerIsBetter() != (r.Goal <= r.Floor) {
			t.Errorf("row %s: goal %v is easier than floor %v", r.ID, r.Goal, r.Floor)
		}
	}
	for id := range all {
		if !used[id] {
			t.Errorf("no row uses case %s", id)
		}
	}
}

// TestMarksOfTheSpeedTable holds the marks against those of the design.
func TestMarksOfTheSpeedTable(t *testing.T) {
	want := map[string][2]float64{
		"publish-1k": {.6, .85}, "publish-256": {.5, .75}, "fanout-bytes": {.6, .85}, "fanout-nats": {.75, 1},
		"lone-publish":      {1.25, 1.1},
		"cache-get-256.p50": {1.4, 1.2}, "cache-get-256.p99": {1.75, 1.4}, "cache-get-256.ops": {.65, .85},
		"cache-put-256.p50": {1.4, 1.2}, "cache-put-256.p99": {1.75, 1.4}, "cache-put-256.ops": {.65, .85},
		"cache-redis-get": {.8, 1.2}, "cache-redis-put": {.8, 1.2}, "cache-kv-get": {1.3, 2}, "cache-kv-put": {1.3, 2},
		"stalled-peer": {1.2, 1.1},
		"durable-1k":   {.4, .65}, "durable-64-disk": {.2, .35}, "durable-64-nats": {5, 10}, "durable-32-redis": {.9, 1.2}, "replay-256": {2, 5},
		"queue-poll100-ack": {1, 2},
	}
	for _, r := range catalogue() {
		marks, judged := want[r.ID]
		if judged && (r.Floor != marks[0] || r.Goal != marks[1] || r.optional) {
			t.Errorf("row %s has floor %v, goal %v, optional %v; want %v", r.ID, r.Floor, r.Goal, r.optional, marks)
		}
		delete(want, r.ID)
	}
	for id := range want {
		t.Errorf("row %s is missing", id)
	}
}

func TestSelectRows(t *testing.T) {
	all := catalogue()
	for list, want := range map[string]string{
		"publish-1k":                      "publish-1k",
		"publish-256, publish-1k":         "publish-1k publish-256",
		"cache-get-256":                   "cache-get-256.p50 cache-get-256.p99 cache-get-256.ops",
		"cache-put-4k.ops":                "cache-put-4k.ops",
		"cache-*-0.p50":                   "cache-get-0.p50 cache-put-0.p50",
		"publish-1k,publish-*,publish-1k": "publish-1k publish-256",
	} {
		rows, err := selectRows(all, list)
		if err != nil || ids(rows) != want {
			t.Errorf("selectRows(%q) = %s, %v; want %s", list, ids(rows), err, want)
		}
	}
	if rows, err := selectRows(all, "all"); err != nil || len(rows) != len(all) {
		t.Errorf("all selects %d of %d rows, %v", len(rows), len(all), err)
	}
}

func TestACaseThatSeveralRowsReadRunsOnce(t *testing.T) {
	rows, err := selectRows(catalogue(), "fanout-*,cache-get-256,*stalled*")
	if err != nil {
		t.Fatal(err)
	}
	got := casesOf(rows)
	want := []string{
		"felix.fanout-4-conns", "raw.bulk-4-conns", "nats.fanout", "nats.fanout-tls", "felix.fanout-10-conns",
		"felix.cache-get-256", "raw.echo-get-256", "felix.peers-one-frozen", "felix.peers", "felix.stall",
	}
	if !slices.Equal(got, want) {
		t.Errorf("cases %v\nwant  %v", got, want)
	}
}

func TestListNamesEveryRow(t *testing.T) {
	var b strings.Builder
	if err := listRows(&b, catalogue()); err != nil {
		t.Fatal(err)
	}
	for _, r := range catalogue() {
		if !strings.Contains(b.String(), r.ID) {
			t.Errorf("the list leaves out %s", r.ID)
		}
	}
}
