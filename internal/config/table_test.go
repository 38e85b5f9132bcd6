package config

import (
	"bytes"
	"flag"
	"io"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "rewrite the reference page")

// fieldOf is the address of the field a value is bound to.
func fieldOf(t *testing.T, v value) any {
	t.Helper()
	p := reflect.ValueOf(v).FieldByName("p")
	if !p.IsValid() {
		t.Fatalf("%T has no field p", v)
	}
	return p.Pointer()
}

func eachField(v reflect.Value, path string, f func(path string, address any)) {
	for i := range v.NumField() {
		name := path + "." + v.Type().Field(i).Name
		field := v.Field(i)
		if field.Kind() == reflect.Struct {
			eachField(field, name, f)
			continue
		}
		f(name, field.Addr().Pointer())
	}
}

// TestTableCoversTheStruct: every field has exactly one row.
func TestTableCoversTheStruct(t *testing.T) {
	cfg := new(Config)
	rows := make(map[any]string)
	for _, s := range cfg.Settings() {
		field := fieldOf(t, s.value)
		if other, twice := rows[field]; twice {
			t.Errorf("%s and %s are bound to one field", s.Key, other)
		}
		rows[field] = s.Key
	}
	fields := 0
	eachField(reflect.ValueOf(cfg).Elem(), "Config", func(path string, address any) {
		fields++
		if _, bound := rows[address]; !bound {
			t.Errorf("%s has no row", path)
		}
	})
	if fields != len(rows) {
		t.Errorf("%d fields and %d rows", fields, len(rows))
	}
}

func TestTableIsConsistent(t *testing.T) {
	keys, envs := make(map[string]bool), map[string]bool{fileEnv: true}
	once := func(names map[string]bool, name string) {
		if name != "" && names[name] {
			t.Errorf("%s stands twice", name)
		}
		names[name] = true
	}
	key := regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)*$`)
	for _, s := range Settings() {
		once(keys, s.Key)
		for _, env := range append([]string{s.Env}, s.Aliases...) {
			once(envs, env)
			if isForeign(env) && !strings.HasPrefix(env, "FELIX_CONTROLPLANE_") {
				t.Errorf("%s is read here and listed as another program's", env)
			}
		}
		if !key.MatchString(s.Key) || s.Flag() != strings.ReplaceAll(s.Key, "_", "-") {
			t.Errorf("key %q, flag %q", s.Key, s.Flag())
		}
		if !strings.HasSuffix(s.Help, ".") || s.Allowed() == "" {
			t.Errorf("%s: help %q, allowed %q", s.Key, s.Help, s.Allowed())
		}
		if (s.Derived == "") != (s.derive == nil) || s.Derived != "" && s.Default != "" {
			t.Errorf("%s: default %q, derived %q", s.Key, s.Default, s.Derived)
		}
		switch s.value.(type) {
		case textValue, optionalSize, optionalSeconds, quotasValue, addrPortValue, labelsValue:
		default:
			if s.Default == "" && s.Derived == "" {
				t.Errorf("%s has no default", s.Key)
			}
		}
	}
	for _, old := range inertSettings {
		once(keys, old.key)
		once(envs, old.env)
		if isForeign(old.env) && !strings.HasPrefix(old.env, "FELIX_CONTROLPLANE_") {
			t.Errorf("%s is listed twice", old.env)
		}
	}
	for name := range refusedVariables {
		once(envs, name)
	}
	for _, pair := range atMost {
		l := newLoader(new(Config))
		for _, key := range []string{pair.small, pair.large} {
			if _, isNumber := l.byKey[key].value.(number); !isNumber {
				t.Errorf("%s is compared and is no number", key)
			}
		}
	}
}

// TestNamesOfTheOriginal holds the names that existing files and manifests
// use (broker 14.1, 14.2).
func TestNamesOfTheOriginal(t *testing.T) {
	names := map[string]string{
		"FELIX_QUIC_BIND": "quic_bind", "FELIX_BROKER_METRICS_BIND": "metrics_bind", "FELIX_MAX_FRAME_BYTES": "max_frame_bytes",
		"FELIX_ACK_ON_COMMIT": "ack_on_commit", "FELIX_PREAUTH_MAX_FRAME_BYTES": "preauth_max_frame_bytes",
		"FELIX_PREAUTH_MAX_STREAMS_PER_CONN": "preauth_max_streams_per_conn", "FELIX_AUTH_TIMEOUT_MS": "auth_timeout_ms",
		"FELIX_MAX_CLIENT_CONNECTIONS": "max_client_connections", "FELIX_PUBLISH_QUEUE_WAIT_MS": "publish_queue_wait_timeout_ms",
		"FELIX_ACK_WAIT_TIMEOUT_MS": "ack_wait_timeout_ms", "FELIX_BROKER_PUB_WORKERS_PER_CONN": "pub_workers_per_conn",
		"FELIX_BROKER_PUB_QUEUE_DEPTH": "pub_queue_depth", "FELIX_BROKER_PUBLISH_INFLIGHT_BYTES": "pub_inflight_bytes",
		"FELIX_BROKER_PUBLISH_CONN_INFLIGHT_BYTES":       "pub_conn_inflight_bytes",
		"FELIX_BROKER_PUBLISH_CONN_TOTAL_INFLIGHT_BYTES": "pub_conn_total_inflight_bytes",
		"FELIX_BROKER_PUB_CONN_RECV_WINDOW":              "pub_conn_recv_window", "FELIX_BROKER_PUB_STREAM_RECV_WINDOW": "pub_stream_recv_window",
		"FELIX_BROKER_PUBLISH_WINDOW": "publish_window", "FELIX_PUB_INGRESS_WAIT": "pub_ingress_wait", "FELIX_CORE_SHARDS": "core_shards",
		"FELIX_EVENT_BATCH_MAX_EVENTS": "event_batch_max_events", "FELIX_EVENT_BATCH_MAX_BYTES": "event_batch_max_bytes",
		"FELIX_EVENT_BATCH_MAX_DELAY_US": "event_batch_max_delay_us", "FELIX_FANOUT_BATCH": "fanout_batch_size",
		"FELIX_SUBSCRIBER_QUEUE_CAPACITY": "subscriber_queue_capacity", "FELIX_SUBSCRIBER_QUEUE_CAPACITY_MAX": "subscriber_queue_capacity_max",
		"FELIX_SUB_QUEUE_POLICY": "subscriber_queue_policy", "FELIX_MAX_SUBSCRIPTIONS_PER_CONN": "max_subscriptions_per_conn",
		"FELIX_MAX_SUBSCRIPTIONS_PER_CONN_TOTAL": "max_subscriptions_per_conn_total", "FELIX_SUB_WRITER_LANES": "subscriber_writer_lanes",
		"FELIX_MAX_SUB_WRITER_LANES": "max_subscriber_writer_lanes", "FELIX_SUB_LANE_QUEUE_DEPTH": "subscriber_lane_queue_depth",
		"FELIX_SUB_LANE_QUEUE_POLICY": "subscriber_lane_queue_policy", "FELIX_SUB_LANE_SHARD": "subscriber_lane_shard",
		"FELIX_SUB_SINGLE_WRITER_PER_CONN": "subscriber_single_writer_per_conn", "FELIX_SUB_FLUSH_MAX_ITEMS": "subscriber_flush_max_items",
		"FELIX_SUB_FLUSH_MAX_DELAY_US": "subscriber_flush_max_delay_us", "FELIX_SUB_MAX_BYTES_PER_WRITE": "subscriber_max_bytes_per_write",
		"FELIX_SUB_STREAMS_PER_CONN": "sub_streams_per_conn", "FELIX_SUB_STREAM_MODE": "sub_stream_mode",
		"FELIX_CACHE_SEND_WINDOW": "cache_send_window", "FELIX_DISABLE_TIMINGS": "disable_timings",
		"FELIX_CONTROL_STREAM_DRAIN_TIMEOUT_MS": "control_stream_drain_timeout_ms", "FELIX_SHUTDOWN_DRAIN_TIMEOUT_MS": "shutdown_drain_timeout_ms",
		"FELIX_SHUTDOWN_PREDRAIN_MS": "shutdown_predrain_ms", "FELIX_SHUTDOWN_HANDOFF_TIMEOUT_MS": "shutdown_handoff_timeout_ms",
		"FELIX_CONTROLPLANE_URL": "controlplane_url", "FELIX_CONTROLPLANE_SYNC_INTERVAL_MS": "controlplane_sync_interval_ms",
		"FELIX_RECORD_PUBLISHERS": "record_publishers",
	}
	have := make(map[string]string)
	for _, s := range Settings() {
		have[s.Env] = s.Key
	}
	for _, old := range inertSettings {
		have[old.env] = old.key
	}
	for env, key := range names {
		if have[env] != key {
			t.Errorf("%s has the key %q, want %q", env, have[env], key)
		}
	}
	for _, env := range []string{
		"FELIX_QUIC_LISTENERS", "FELIX_MAX_CONNECTIONS_PER_IP", "FELIX_TENANT_PUBLISH_BYTES_PER_SEC", "FELIX_TENANT_PUBLISH_MSGS_PER_SEC",
		"FELIX_TENANT_PUBLISH_BURST_MS", "FELIX_TENANT_PUBLISH_QUOTAS", "FELIX_TENANT_METRICS_MAX", "FELIX_SUB_QUEUE_MAX_BYTES",
		"FELIX_TLS_CERT", "FELIX_TLS_KEY", "FELIX_TLS_CLIENT_CA", "FELIX_TLS_CLIENT_CERT_BIND_SUBJECT", "FELIX_TLS_REQUIRE_CERT",
		"FELIX_TLS_REQUIRE_ALPN", "FELIX_TLS_CERT_EXPORT", "FELIX_UDP_SEND_BUFFER", "FELIX_UDP_RECV_BUFFER", "FELIX_KEEPALIVE_MS",
		"FELIX_MAX_IDLE_TIMEOUT_MS", "FELIX_LOG", "FELIX_WORKER_THREADS", "FELIX_AUTH_ENFORCE_EXPIRY", "FELIX_CACHE_MAX_BYTES",
		"FELIX_CACHE_MAX_ENTRIES", "FELIX_LOG_FORMAT", "FELIX_CATALOG",
		"FELIX_DURABLE_STORAGE_DIR", "FELIX_DURABLE_FSYNC_MODE", "FELIX_DURABLE_FSYNC_INTERVAL_MS", "FELIX_DURABLE_SEGMENT_BYTES",
		"FELIX_DURABLE_RETENTION_BYTES", "FELIX_DURABLE_RETENTION_SECONDS", "FELIX_DURABLE_RETENTION_INTERVAL_SECONDS",
		"FELIX_DURABLE_INDEX_SPACING_BYTES", "FELIX_DURABLE_MAX_RECORDS_PER_READ", "FELIX_DURABLE_PREALLOCATE",
		"FELIX_DURABLE_VERIFY_ALL_ON_OPEN", "FELIX_DURABLE_REPAIR_CHECKSUM_TAIL", "FELIX_DURABLE_ROLLOVER_THRESHOLD_PERCENT",
		"FELIX_DURABLE_MAX_OVERSHOOT_PERCENT", "FELIX_STORAGE_COMPACTION_BYTES_PER_SEC", "FELIX_STORAGE_IO_URING",
	} {
		if _, known := have[env]; !known {
			t.Errorf("%s is not known", env)
		}
	}
}

// TestPrintedConfigurationLoadsAgain draws configurations, prints them and
// loads what was printed.
func TestPrintedConfigurationLoadsAgain(t *testing.T) {
	texts := map[string][]string{
		"quic_bind": {":7000", "[::1]:0"}, "tls_client_ca": {"", "/etc/ca: 1.pem", "#x", "true", "0123", "ca\u2028.pem"},
		"tls_require_alpn": {"yes"}, "publish_window": {"0", "9"}, "subscriber_queue_policy": {"block", "drop_old"},
		"event_batch_max_delay_us": {"0", "1ms"}, "tenant_publish_quotas": {"a:1:2,b:c:3:4"}, "gogc": {"off", "50"},
		"gomemlimit": {"2GiB"}, "log": {"info,session=debug"}, "log_format": {"json"}, "pub_conn_inflight_bytes": {"1MiB", "16MiB"},
		"keepalive_ms": {"0", "1s"}, "max_idle_timeout_ms": {"100", "30s"}, "worker_threads": {"3"}, "udp_gro": {"no"},
		"durable_storage_dir": {"/data"}, "durable_fsync_mode": {"none", "periodic"}, "durable_retention_bytes": {"1GiB", "1"},
		"node_labels":      {"rack=a1,tier=x"},
		"node_client_addr": {"10.0.0.4:5000"}, "region_id": {"eu-west-1"}, "shutdown_handoff_timeout_ms": {"0"},
		"durable_retention_seconds": {"60", "24h"}, "storage_compaction_bytes_per_sec": {"0", "1MiB"},
	}
	rapid.Check(t, func(t *rapid.T) {
		flags := make(map[string]string)
		for _, key := range sortedKeys(texts) {
			if rapid.Bool().Draw(t, key+"?") {
				flags[strings.ReplaceAll(key, "_", "-")] = rapid.SampledFrom(texts[key]).Draw(t, key)
			}
		}
		if rapid.Bool().Draw(t, "control plane?") {
			flags["controlplane-url"], flags["node-token-file"] = "https://a:8443,https://b:8443", "/etc/felix/token"
		}
		first, _, err := Load(Sources{FileSystem: files{}, Flags: flags, CPUs: 8})
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := Print(&out, first); err != nil {
			t.Fatal(err)
		}
		second, warnings, err := Load(Sources{FileSystem: files{"f": out.String()}, File: "f", CPUs: 1})
		if err != nil {
			t.Fatalf("%v in\n%s", err, out.String())
		}
		if !reflect.DeepEqual(first, second) {
			t.Fatalf("loaded\n%+v, printed\n%+v", second, first)
		}
		for _, w := range warnings {
			if strings.Contains(w, "keepalive") {
				t.Fatalf("an adjusted value is adjusted again: %s", w)
			}
		}
	})
}

// TestReferencePage compares docs/configuration.md with the table.
func TestReferencePage(t *testing.T) {
	comparePage(t, "../../docs/configuration.md", "TestReferencePage", WriteDocs)
}

// TestControlPlanePage compares docs/controlplane-configuration.md with its
// table.
func TestControlPlanePage(t *testing.T) {
	comparePage(t, "../../docs/controlplane-configuration.md", "TestControlPlanePage", WriteControlPlaneDocs)
}

func comparePage(t *testing.T, page, test string, write func(io.Writer) error) {
	t.Helper()
	var want bytes.Buffer
	if err := write(&want); err != nil {
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
		t.Errorf("%s is not what the table says; rewrite it with: go test ./internal/config -run %s -update", page, test)
	}
}
