package telemetry

import (
	"bytes"
	"flag"
	"fmt"
	"iter"
	"maps"
	"math"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the reference page")

func newMetrics(tenants int) *Metrics { return New(Options{TenantMax: tenants, Version: "test"}) }

// gather reads all felix series as "name{labels}" -> value; a histogram is its
// count.
func gather(t *testing.T, m *Metrics) map[string]float64 {
	t.Helper()
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := make(map[string]float64)
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "felix_") {
			continue
		}
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			var labels []string
			for _, l := range metric.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			if len(labels) > 0 {
				name += "{" + strings.Join(labels, ",") + "}"
			}
			switch {
			case metric.Counter != nil:
				series[name] = metric.GetCounter().GetValue()
			case metric.Gauge != nil:
				series[name] = metric.GetGauge().GetValue()
			case metric.Histogram != nil:
				series[name] = float64(metric.GetHistogram().GetSampleCount())
			}
		}
	}
	return series
}

func expect(t *testing.T, series map[string]float64, want map[string]float64) {
	t.Helper()
	for name, value := range want {
		if got, found := series[name]; !found || got != value {
			t.Errorf("%s is %v (present: %v), want %v", name, got, found, value)
		}
	}
}

func accounts(a map[string]TenantAccount) iter.Seq2[string, TenantAccount] {
	return func(yield func(string, TenantAccount) bool) {
		for _, tenant := range slices.Sorted(maps.Keys(a)) {
			if !yield(tenant, a[tenant]) {
				return
			}
		}
	}
}

// TestReferencePage compares docs/metrics.md with the metrics.
func TestReferencePage(t *testing.T) {
	const page = "../../docs/metrics.md"
	var want bytes.Buffer
	if err := newMetrics(100).WriteDocs(&want); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(page, want.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want.Bytes()) {
		t.Errorf("%s is not what the metrics say; rewrite it with: go test ./internal/telemetry -run TestReferencePage -update", page)
	}
}

// TestDefinitionsAreWhatIsGathered: the page lists every series, with its
// type and labels, and nothing else.
func TestDefinitionsAreWhatIsGathered(t *testing.T) {
	m := newMetrics(1)
	m.Connections.AuthRefused("expired")
	m.Process.DrainForced("connections")
	m.ReadFrom(func() Snapshot {
		return Snapshot{TenantAccounts: accounts(map[string]TenantAccount{"a": {}}), Storage: &StorageSnapshot{}}
	})
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	gathered := make(map[string]Definition)
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "felix_") {
			continue
		}
		d := Definition{Name: family.GetName(), Type: strings.ToLower(family.GetType().String()), Help: family.GetHelp()}
		for _, l := range family.GetMetric()[0].GetLabel() {
			d.Labels = append(d.Labels, l.GetName())
		}
		slices.Sort(d.Labels)
		gathered[d.Name] = d
	}
	defined := make(map[string]bool)
	for _, d := range m.Definitions() {
		slices.Sort(d.Labels)
		got, found := gathered[d.Name]
		if !found || defined[d.Name] {
			t.Errorf("%s is defined and gathered: %v, defined before: %v", d.Name, found, defined[d.Name])
			continue
		}
		if got.Type != d.Type || got.Help != d.Help || !slices.Equal(got.Labels, d.Labels) {
			t.Errorf("gathered %+v, defined %+v", got, d)
		}
		if !strings.HasSuffix(d.Help, ".") {
			t.Errorf("%s: help %q is no sentence", d.Name, d.Help)
		}
		defined[d.Name] = true
	}
	for name := range gathered {
		if !defined[name] {
			t.Errorf("%s is gathered and not defined", name)
		}
	}
}

// TestNamesOfTheOriginal holds names that dashboards and alerts use.
func TestNamesOfTheOriginal(t *testing.T) {
	series := gather(t, newMetrics(1))
	for _, name := range []string{
		"felix_publish_requests_total{result=accepted}", "felix_publish_requests_total{result=ok}",
		"felix_publish_requests_total{result=dropped}", "felix_publish_requests_total{result=error}", "felix_publish_bytes_total",
		"felix_broker_acked_publishes_dropped_total{reason=failed}", "felix_broker_publish_worker_restarts_total",
		"felix_broker_json_publishes_total{frame=publish}", "felix_tenant_metrics_overflow_total", "felix_subscribe_dropped_total",
		"felix_sub_queue_dropped_total", "felix_sub_queue_drop_old_emulated_total", "felix_sub_queue_enqueued_total",
		"felix_sub_queue_dequeued_total", "felix_sub_queue_len", "felix_sub_shared_batch_handles_total", "felix_sub_connection_subscribers",
		"felix_sub_active_connections", "felix_subscriber_disconnect_total", "felix_quic_connections_refused_total{reason=limit}",
		"felix_quic_connections_refused_total{reason=per_ip_limit}", "felix_quic_handshake_failures_total", "felix_quic_auth_timeout_total",
		"felix_ready_state", "felix_inflight_requests", "felix_drain_duration_ms", "felix_cache_requests_total{op=get,result=hit}",
		"felix_cache_entries", "felix_cache_bytes", "felix_cache_evictions_total", "felix_broker_ingress_queue_depth",
	} {
		if value, found := series[name]; !found || value != 0 {
			t.Errorf("%s is %v (present: %v), want 0 from the start", name, value, found)
		}
	}
}

// TestStorageMetrics: without storage there are none; with it, the names of
// the original are there and histograms add up.
func TestStorageMetrics(t *testing.T) {
	m := newMetrics(1)
	for name := range gather(t, m) {
		if strings.HasPrefix(name, "felix_storage_") {
			t.Errorf("%s without storage", name)
		}
	}
	m.ReadFrom(func() Snapshot {
		return Snapshot{Storage: &StorageSnapshot{
			AppendRecords: 30, AppendBatches: 3, Syncs: 2, SyncBatchAppends: 3, Full: 4, UnsyncedBytes: 5, LowSpace: true,
			SyncDuration: Distribution{Bounds: []time.Duration{time.Millisecond, time.Second}, Counts: []uint64{1, 2, 3}, Sum: 9 * time.Second},
		}}
	})
	series := gather(t, m)
	expect(t, series, map[string]float64{
		"felix_storage_append_records_total": 30, "felix_storage_sync_total": 2, "felix_storage_full_total": 4,
		"felix_storage_unsynced_bytes": 5, "felix_storage_low_space": 1,
	})
	for _, name := range []string{
		"felix_storage_append_bytes_total", "felix_storage_sync_failures_total", "felix_storage_index_write_failures_total",
		"felix_storage_segment_roll_total", "felix_storage_segment_roll_background_total", "felix_storage_segment_roll_failed_total",
		"felix_storage_segment_roll_discarded_total", "felix_storage_segment_count", "felix_storage_open_sealed_segments",
		"felix_storage_segment_reserve_failed_total", "felix_storage_retention_segments_deleted_total",
		"felix_storage_retention_bytes_reclaimed_total", "felix_storage_retention_failures_total", "felix_storage_retention_base_offset",
		"felix_storage_read_records_total", "felix_storage_read_bytes_total", "felix_storage_recovery_truncated_bytes",
		"felix_storage_recovery_index_rebuilds_total", "felix_storage_producer_state_rebuilt_total",
	} {
		if _, found := series[name]; !found {
			t.Errorf("no %s", name)
		}
	}
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(m.Registry(), promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	lines := strings.Split(answer.Body.String(), "\n")
	for _, line := range []string{
		"felix_storage_append_batch_records_sum 30", "felix_storage_append_batch_records_count 3",
		"felix_storage_sync_batch_appends_sum 3", "felix_storage_sync_batch_appends_count 2",
		`felix_storage_sync_duration_seconds_bucket{le="0.001"} 1`, `felix_storage_sync_duration_seconds_bucket{le="1"} 3`,
		`felix_storage_sync_duration_seconds_bucket{le="+Inf"} 6`, "felix_storage_sync_duration_seconds_sum 9",
	} {
		if !slices.Contains(lines, line) {
			t.Errorf("missing %s", line)
		}
	}
}

func TestSnapshotIsReadAtEachScrape(t *testing.T) {
	m := newMetrics(2)
	reads := uint64(0)
	m.ReadFrom(func() Snapshot {
		reads++
		return Snapshot{
			Streams: 3, InflightRequests: 4, PublishQueued: 5, SubEnqueued: 10 * reads, SubDequeued: 4, SubDroppedRecords: 7,
			SubDroppedBatches: 2, CacheHits: 8, CacheMisses: 9, CacheEntries: 11,
		}
	})
	gather(t, m)
	expect(t, gather(t, m), map[string]float64{
		"felix_broker_streams": 3, "felix_inflight_requests": 4, "felix_broker_ingress_queue_depth": 5,
		"felix_sub_queue_enqueued_total": 20, "felix_sub_queue_len": 16, "felix_subscribe_dropped_total": 7,
		"felix_sub_queue_dropped_total": 2, "felix_cache_requests_total{op=get,result=hit}": 8,
		"felix_cache_requests_total{op=get,result=miss}": 9, "felix_cache_entries": 11,
	})
	if reads != 2 {
		t.Errorf("two scrapes read %d snapshots", reads)
	}
}

func TestGroups(t *testing.T) {
	m := newMetrics(1)
	m.ReadFrom(func() Snapshot {
		return Snapshot{Groups: GroupSnapshot{Groups: 1, Waiting: 2, Claims: 3, PollsCapped: 4, Trimmed: 5, DeadLettered: 6, Redelivered: 7, Lapsed: 8}}
	})
	m.Groups.Request("group_poll")
	m.Groups.Request("group_poll")
	m.Groups.Request("made up")
	m.Groups.Errors.Inc()
	m.Groups.Delivered.Add(9)
	m.Groups.Latency.Observe(time.Millisecond)
	expect(t, gather(t, m), map[string]float64{
		"felix_groups": 1, "felix_group_polls_waiting": 2, "felix_group_claims": 3, "felix_group_polls_capped_total": 4,
		"felix_group_trimmed_total": 5, "felix_group_dead_lettered_total": 6, "felix_group_redelivered_records_total": 7,
		"felix_group_claims_lapsed_total": 8, "felix_group_requests_total{request=group_poll}": 2, "felix_group_requests_total{request=group_delete}": 0, "felix_group_errors_total": 1,
		"felix_group_delivered_records_total": 9, "felix_group_latency_seconds": 1,
	})
}

func TestTenantsBeyondTheBoundShare(t *testing.T) {
	m := newMetrics(2)
	for range 3 {
		for _, tenant := range []string{"a", "b", "c", "d", "_overflow", "bad\xff"} {
			m.Tenants.For(tenant).Delivered(2, 10)
		}
	}
	one := TenantAccount{Messages: 1, Bytes: 2, QueueFullRefused: 3, ThrottledDelayed: 4}
	m.ReadFrom(func() Snapshot {
		return Snapshot{TenantAccounts: accounts(map[string]TenantAccount{"a": one, "b": one, "c": one, "d": one})}
	})
	series := gather(t, m)
	expect(t, series, map[string]float64{
		"felix_tenant_delivered_messages_total{tenant=a}":                       6,
		"felix_tenant_delivered_bytes_total{tenant=b}":                          30,
		"felix_tenant_delivered_messages_total{tenant=_overflow}":               24,
		"felix_tenant_published_messages_total{tenant=a}":                       1,
		"felix_tenant_published_messages_total{tenant=_overflow}":               2,
		"felix_tenant_publish_queue_full_total{action=refused,tenant=b}":        3,
		"felix_tenant_publish_throttled_total{action=delayed,tenant=_overflow}": 8,
	})
	for name := range series {
		if strings.Contains(name, "tenant=c") || strings.Contains(name, "tenant=d") {
			t.Errorf("%s has a series of its own", name)
		}
	}
	// 12 recordings, and two tenants read at each of two scrapes; the second
	// may count its own before or after it reads the counter.
	if n := gather(t, m)["felix_tenant_metrics_overflow_total"]; n != 14 && n != 16 {
		t.Errorf("%v overflows, want 14 or 16", n)
	}
	// A forgotten tenant leaves room for another.
	kept := m.Tenants.For("a")
	m.Tenants.Forget("a")
	m.Tenants.Forget("never seen")
	kept.Delivered(1, 1)
	m.Tenants.For("c").Delivered(5, 5)
	series = gather(t, m)
	expect(t, series, map[string]float64{"felix_tenant_delivered_messages_total{tenant=c}": 5})
	if _, found := series["felix_tenant_delivered_messages_total{tenant=a}"]; found {
		t.Error("a forgotten tenant keeps its series")
	}
}

func TestNoTenantHasSeriesOfItsOwn(t *testing.T) {
	m := newMetrics(0)
	m.Tenants.For("a").Delivered(1, 1)
	expect(t, gather(t, m), map[string]float64{"felix_tenant_delivered_messages_total{tenant=_overflow}": 1})
}

func TestTenantsAreSafeForConcurrentUse(t *testing.T) {
	m := newMetrics(3)
	m.ReadFrom(func() Snapshot {
		return Snapshot{TenantAccounts: accounts(map[string]TenantAccount{"t0": {}, "t1": {}, "t2": {}, "t3": {}, "t4": {}})}
	})
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			for j := range 200 {
				m.Tenants.For(fmt.Sprintf("t%d", (i+j)%5)).Delivered(1, 1)
				if j%50 == 0 {
					m.Tenants.Forget("t1")
					if _, err := m.Registry().Gather(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	work.Wait()
	if n := len(m.Tenants.own); n > 3 {
		t.Errorf("%d tenants have series of their own, at most 3 may", n)
	}
}

func TestQUICTotalsOutliveConnections(t *testing.T) {
	m := newMetrics(0)
	stats := []ConnStats{
		{SmoothedRTT: time.Millisecond, MTU: 1452, PacketsSent: 10, PacketsLost: 1, BytesSent: 100, BytesReceived: 7, GSO: true, GRO: true},
		{MTU: 1200, PacketsSent: 5, PacketsReceived: 3, GSO: true},
	}
	var done []func()
	for i := range stats {
		done = append(done, m.QUIC.Track(func() ConnStats { return stats[i] }))
	}
	gather(t, m)
	expect(t, gather(t, m), map[string]float64{
		"felix_quic_packets_sent_total": 15, "felix_quic_packets_lost_total": 1, "felix_quic_packets_received_total": 3,
		"felix_quic_path_mtu_bytes{bound=min}": 1200, "felix_quic_path_mtu_bytes{bound=max}": 1452,
		"felix_quic_gso_connections": 2, "felix_quic_gro_connections": 1,
	})
	stats[0].PacketsSent = 12 // counted between the last scrape and the end
	done[0]()
	done[0]()
	expect(t, gather(t, m), map[string]float64{
		"felix_quic_packets_sent_total": 17, "felix_quic_sent_bytes_total": 100, "felix_quic_received_bytes_total": 7,
		"felix_quic_path_mtu_bytes{bound=max}": 1200, "felix_quic_gso_connections": 1,
	})
	done[1]()
	series := gather(t, m)
	expect(t, series, map[string]float64{"felix_quic_packets_sent_total": 17, "felix_quic_path_mtu_bytes{bound=min}": 0, "felix_quic_gso_connections": 0})
	if n := series["felix_quic_rtt_seconds"]; n != 2 {
		t.Errorf("%v round trips seen in two scrapes of one connection with a sample", n)
	}
}

// TestQUICTotalsNeverFall opens and closes connections under scrapes.
func TestQUICTotalsNeverFall(t *testing.T) {
	q := newMetrics(0).QUIC
	var work sync.WaitGroup
	for range 4 {
		work.Go(func() {
			for range 300 {
				q.Track(func() ConnStats { return ConnStats{PacketsSent: 1} })()
			}
		})
	}
	finished := make(chan struct{})
	go func() { work.Wait(); close(finished) }()
	var before uint64
	for ended := false; !ended; {
		select {
		case <-finished:
			ended = true
		default:
		}
		total, _, _, _, _ := q.read()
		if total.PacketsSent < before {
			t.Fatalf("total fell from %d to %d", before, total.PacketsSent)
		}
		before = total.PacketsSent
	}
	if before != 1200 {
		t.Errorf("total is %d, want 1200", before)
	}
}

func TestLatencyBuckets(t *testing.T) {
	for i := range latencyBuckets {
		end := boundOf(i)
		if got := bucketOf(end); got != i {
			t.Errorf("%d ns, the end of bucket %d, is in bucket %d", end, i, got)
		}
		if got := bucketOf(end + 1); got != i+1 {
			t.Errorf("%d ns, past bucket %d, is in bucket %d", end+1, i, got)
		}
	}
	if bucketOf(0) != 0 || bucketOf(math.MaxUint64) != latencyBuckets || bucketOf(math.MaxInt64) != latencyBuckets {
		t.Error("the ends of the range are not in the first and last bucket")
	}
	rapid.Check(t, func(t *rapid.T) {
		ns := rapid.Uint64().Draw(t, "ns")
		i := bucketOf(ns)
		if i < latencyBuckets && ns > boundOf(i) || i > 0 && ns <= boundOf(i-1) {
			t.Fatalf("%d ns is in bucket %d", ns, i)
		}
	})
}

func TestLatencyIsExposed(t *testing.T) {
	m := newMetrics(0)
	for _, d := range []time.Duration{-time.Second, 0, 20 * time.Microsecond, time.Millisecond, time.Hour} {
		m.Publish.Latency.Observe(d)
	}
	answer := httptest.NewRecorder()
	promhttp.HandlerFor(m.Registry(), promhttp.HandlerOpts{}).ServeHTTP(answer, httptest.NewRequest("GET", "/metrics", nil))
	text := answer.Body.String()
	for _, line := range []string{
		`felix_publish_latency_seconds_bucket{le="1.6384e-05"} 2`,
		`felix_publish_latency_seconds_bucket{le="2.4576e-05"} 3`,
		`felix_publish_latency_seconds_bucket{le="0.001048576"} 4`,
		`felix_publish_latency_seconds_bucket{le="17.179869184"} 4`,
		`felix_publish_latency_seconds_bucket{le="+Inf"} 5`,
		`felix_publish_latency_seconds_sum 3600.00102`,
		`felix_publish_latency_seconds_count 5`,
	} {
		if !slices.Contains(strings.Split(text, "\n"), line) {
			t.Errorf("missing %s", line)
		}
	}
}

func TestRecordingDoesNotAllocate(t *testing.T) {
	m := newMetrics(1)
	tenant := m.Tenants.For("a")
	if n := testing.AllocsPerRun(100, func() {
		m.Publish.OK.Inc()
		m.Publish.Bytes.Add(4096)
		m.Publish.Latency.Observe(time.Millisecond)
		tenant.Delivered(64, 4096)
		m.Tenants.For("a")
	}); n != 0 {
		t.Errorf("recording allocates %v times", n)
	}
}

func TestTwoSetsOfMetricsLiveSideBySide(t *testing.T) {
	a, b := newMetrics(1), newMetrics(1)
	a.Publish.OK.Inc()
	if n := gather(t, b)["felix_publish_requests_total{result=ok}"]; n != 0 {
		t.Error("two sets of metrics share a counter")
	}
}

func BenchmarkLatency(b *testing.B) {
	l := newMetrics(0).Publish.Latency
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			l.Observe(123 * time.Microsecond)
		}
	})
}

func BenchmarkCounter(b *testing.B) {
	c := newMetrics(0).Publish.OK
	b.ReportAllocs()
	for b.Loop() {
		c.Inc()
	}
}
