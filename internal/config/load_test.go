package config

import (
	"errors"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// files is a file system of a few files.
type files map[string]string

func (f files) ReadFile(name string) ([]byte, error) {
	data, found := f[name]
	if !found {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return []byte(data), nil
}

func load(t *testing.T, s Sources) (*Config, []string) {
	t.Helper()
	if s.FileSystem == nil {
		s.FileSystem = files{}
	}
	if s.CPUs == 0 {
		s.CPUs = 2
	}
	cfg, warnings, err := Load(s)
	if err != nil {
		t.Fatal(err)
	}
	return cfg, warnings
}

func loadYAML(t *testing.T, text string) (*Config, []string, error) {
	t.Helper()
	return Load(Sources{File: "felix.yml", FileSystem: files{"felix.yml": text}, CPUs: 2})
}

func TestDefaults(t *testing.T) {
	cfg, warnings := load(t, Sources{})
	if len(warnings) > 0 {
		t.Errorf("defaults warn: %q", warnings)
	}
	want := &Config{
		Listen: Listen{
			QUICBind: "0.0.0.0:5000", QUICListeners: 1, MetricsBind: "0.0.0.0:8080", MaxConnections: 8192, MaxConnectionsPerIP: 512,
			ConnRecvWindow: 16 << 20, StreamRecvWindow: 16 << 20, KeepAlive: 2 * time.Second, MaxIdleTimeout: 6 * time.Second,
			UDPSendBuffer: 8 << 20, UDPRecvBuffer: 8 << 20, UDPGRO: true,
		},
		Sessions: Sessions{
			MaxFrameBytes: 16 << 20, PreauthMaxFrameBytes: 64 << 10, PreauthMaxStreamsPerConn: 16, AuthTimeout: 10 * time.Second,
			EnforceExpiry: true, ControlStreamDrain: 50 * time.Millisecond,
		},
		Catalog: Catalog{AutoCreateLimit: 1024},
		Publish: Publish{
			QueueWait: 2 * time.Second, AckWait: 2 * time.Second, Workers: 4, QueueDepth: 512, InflightBytes: 64 << 20,
			ConnInflightBytes: 16 << 20, ConnTotalInflightBytes: 64 << 20, Window: 256, RingRecords: 1024, RingBytes: 64 << 20,
		},
		Tenants: Tenants{Burst: time.Second, MetricsMax: 100},
		Subscribe: Subscribe{
			BatchMaxEvents: 64, BatchMaxBytes: 64 << 10, BatchMaxDelay: 250 * time.Microsecond, FanoutBatch: 64, QueueCapacity: 512,
			QueueCapacityMax: 4096, QueueMaxBytes: 256 << 20, QueuePolicy: DropNew, MaxBytesPerWrite: 64 << 10,
			MaxPerIdentity: 4096, MaxPerConnectionTotal: 16384,
		},
		Cache:  Cache{MaxBytes: 256 << 20, MaxEntries: 1 << 20, WatchQueueCapacity: 1024},
		Groups: Groups{Visibility: 30 * time.Second, MaxVisibility: 12 * time.Hour, MaxAttempts: 5, MaxWait: 30 * time.Second, MaxInFlight: 10_000},
		Storage: Storage{
			Fsync: FsyncOnCommit, FsyncInterval: 250 * time.Millisecond, SegmentBytes: 256 << 20, RetentionInterval: time.Minute,
			IndexSpacing: 4096, MaxRecordsPerRead: 10000, RolloverThresholdPercent: 100, MaxOvershootPercent: 100,
			CompactionBytesPerSec: 64 << 20, SoftFreeBytes: 64 << 20, MaxOpenSealed: 256, JournalBytes: 64 << 20, MaxFlushes: 16, OpenParallel: 4,
		},
		Cluster:  Cluster{SyncInterval: 2 * time.Second, Region: "local", Weight: 1},
		Shutdown: Shutdown{Drain: 25 * time.Second, Handoff: 30 * time.Second},
		Process:  Process{Log: "info", LogFormat: LogText, GCPercent: 400},
	}
	if !reflect.DeepEqual(cfg, want) {
		t.Errorf("defaults are\n%+v, want\n%+v", cfg, want)
	}
}

func TestPrecedence(t *testing.T) {
	s := Sources{FileSystem: files{"/etc/felix.yml": "publish_window: 1\npub_queue_depth: 1\nfanout_batch_size: 1\n"}, File: "/etc/felix.yml"}
	s.Environ = []string{"FELIX_BROKER_PUBLISH_WINDOW=2", "FELIX_BROKER_PUB_QUEUE_DEPTH=2", "PATH=/bin"}
	s.Flags = map[string]string{"publish-window": "3"}
	cfg, _ := load(t, s)
	if cfg.Publish.Window != 3 || cfg.Publish.QueueDepth != 2 || cfg.Subscribe.FanoutBatch != 1 || cfg.Subscribe.BatchMaxEvents != 64 {
		t.Errorf("flag, variable, file, default give %d, %d, %d, %d; want 3, 2, 1, 64",
			cfg.Publish.Window, cfg.Publish.QueueDepth, cfg.Subscribe.FanoutBatch, cfg.Subscribe.BatchMaxEvents)
	}
}

func TestWhichFile(t *testing.T) {
	fsys := files{DefaultFile: "publish_window: 1", "/env.yml": "publish_window: 2", "/flag.yml": "publish_window: 3"}
	env := []string{"FELIX_BROKER_CONFIG=/env.yml"}
	for _, tt := range []struct {
		s    Sources
		want int
	}{
		{Sources{FileSystem: files{}}, 256},
		{Sources{FileSystem: fsys}, 1},
		{Sources{FileSystem: fsys, Environ: []string{"FELIX_BROKER_CONFIG="}}, 1},
		{Sources{FileSystem: fsys, Environ: env}, 2},
		{Sources{FileSystem: fsys, Environ: env, File: "/flag.yml"}, 3},
	} {
		if cfg, _ := load(t, tt.s); cfg.Publish.Window != tt.want {
			t.Errorf("%v: window is %d, want %d", tt.s, cfg.Publish.Window, tt.want)
		}
	}
	for _, s := range []Sources{{File: "/none.yml"}, {Environ: []string{"FELIX_BROKER_CONFIG=/none.yml"}}} {
		s.FileSystem = fsys
		if _, _, err := Load(s); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a named file that is missing: %v", err)
		}
	}
}

func TestValues(t *testing.T) {
	for _, tt := range []struct {
		key, text string
		ok        bool
		as        string // how it is printed
	}{
		{"publish_window", "0", true, "0"},
		{"publish_window", " 7 ", true, "7"},
		{"publish_window", "-1", false, ""},
		{"publish_window", "65536", false, ""},
		{"publish_window", "many", false, ""},
		{"publish_window", "1.5", false, ""},
		{"pub_queue_depth", "0", false, ""},
		{"max_connections_per_ip", "0", true, "0"},
		{"max_frame_bytes", "16MiB", true, "16777216"},
		{"max_frame_bytes", "16 MiB", true, "16777216"},
		{"max_frame_bytes", "1MB", true, "1000000"},
		{"max_frame_bytes", "1GiB", true, "1073741824"},
		{"max_frame_bytes", "65536B", true, "65536"},
		{"max_frame_bytes", "2GiB", false, ""},
		{"max_frame_bytes", "0", false, ""},
		{"max_frame_bytes", "16mib", false, ""},
		{"max_frame_bytes", "99999999999999999TiB", false, ""},
		{"max_frame_bytes", "MiB", false, ""},
		{"max_frame_bytes", "", false, ""},
		{"auth_timeout_ms", "0", true, "0"},
		{"auth_timeout_ms", "2500", true, "2500"},
		{"auth_timeout_ms", "2.5s", true, "2500"},
		{"auth_timeout_ms", "2500us", false, ""}, // not whole milliseconds
		{"auth_timeout_ms", "-1s", false, ""},
		{"auth_timeout_ms", "9223372036854775807", false, ""},
		{"ack_wait_timeout_ms", "0", false, ""},
		{"event_batch_max_delay_us", "0", true, "0"},
		{"event_batch_max_delay_us", "1ms", true, "1000"},
		{"pub_ingress_wait", "yes", true, "true"},
		{"pub_ingress_wait", "TRUE", true, "true"},
		{"pub_ingress_wait", "1", true, "true"},
		{"pub_ingress_wait", "no", true, "false"},
		{"pub_ingress_wait", "0", true, "false"},
		{"pub_ingress_wait", "on", false, ""},
		{"pub_ingress_wait", "2", false, ""},
		{"subscriber_queue_policy", "block", true, "block"},
		{"subscriber_queue_policy", "Block", false, ""},
		{"quic_bind", "127.0.0.1:0", true, "127.0.0.1:0"},
		{"quic_bind", "[::1]:5000", true, "[::1]:5000"},
		{"quic_bind", ":5000", true, ":5000"},
		{"quic_bind", "5000", false, ""},
		{"quic_bind", "host:65536", false, ""},
		{"quic_bind", "host:quic", false, ""},
		{"quic_listeners", "0", false, ""},
		{"log_format", "json", true, "json"},
		{"log_format", "xml", false, ""},
		{"gogc", "off", true, "off"},
		{"gogc", "0", false, ""},
		{"gomemlimit", "1GiB", true, "1073741824"},
		{"gomemlimit", "off", true, "off"},
		{"gomemlimit", "1", false, ""},
		{"tenant_publish_bytes_per_sec", "10MiB", true, "10485760"},
		{"tenant_publish_bytes_per_sec", "-1", false, ""},
		{"tenant_publish_burst_ms", "0", false, ""},
		{"tenant_publish_quotas", "", true, ""},
		{"tenant_publish_quotas", "b:2:0, a:1:10,", true, "a:1:10,b:2:0"},
		{"tenant_publish_quotas", "urn:x:y:1:2", true, "urn:x:y:1:2"},
		{"tenant_publish_quotas", "a:1:2,a:3:4", false, ""},
		{"tenant_publish_quotas", "a:1", false, ""},
		{"tenant_publish_quotas", ":1:2", false, ""},
		{"tenant_publish_quotas", "a:x:2", false, ""},
		{"tenant_publish_quotas", "a:1:-2", false, ""},
	} {
		cfg := new(Config)
		l := newLoader(cfg)
		l.set(l.byKey[tt.key], tt.text, "FELIX_X")
		if !tt.ok {
			var bad *ValueError
			if len(l.faults) != 1 || !errors.As(l.faults[0], &bad) || bad.Key != tt.key || bad.Allowed == "" {
				t.Errorf("%s: %q: faults are %v, want a ValueError", tt.key, tt.text, l.faults)
			}
			continue
		}
		if got := l.byKey[tt.key].Text(); len(l.faults) > 0 || got != tt.as {
			t.Errorf("%s: %q is %q, faults %v; want %q", tt.key, tt.text, got, l.faults, tt.as)
		}
	}
}

func TestErrorsSayWhatWhereAndWhatIsAllowed(t *testing.T) {
	_, _, err := Load(Sources{
		File: "f.yml", CPUs: 2,
		FileSystem: files{"f.yml": "quic_bind: x:1\n\nmax_frame_bytes: 1\nquic_bnid: y\ntls_key: [a]\npub_queue_depth:\nquic_bind: z:2\n"},
		Environ:    []string{"FELIX_BROKER_PUBLISH_WINDOW=abc", "FELIX_PUBLISH_WINDOW=1", "FELIX_QUIC_BNID=1", "FELIX_ZZZ=1"},
		Flags:      map[string]string{"fanout-batch-size": "0", "publish-windw": "1", "publish_window": "1"},
	})
	if err == nil {
		t.Fatal("accepted")
	}
	for _, line := range []string{
		`max_frame_bytes is "1" (f.yml:3): want bytes from 4KiB to 1GiB, plain or as in 16MiB`,
		`f.yml:4: unknown setting quic_bnid (did you mean quic_bind?)`,
		`f.yml:5: tls_key needs a plain value: a path, or nothing`,
		`f.yml:6: pub_queue_depth needs a plain value: a whole number from 1 to 1048576`,
		`f.yml:7: quic_bind is already set in line 1`,
		`publish_window is "abc" (FELIX_BROKER_PUBLISH_WINDOW): want a whole number from 0 to 65535`,
		`environment: unknown setting FELIX_PUBLISH_WINDOW (did you mean FELIX_BROKER_PUBLISH_WINDOW?)`,
		`environment: unknown setting FELIX_QUIC_BNID (did you mean FELIX_QUIC_BIND?)`,
		`environment: unknown setting FELIX_ZZZ`,
		`fanout_batch_size is "0" (flag --fanout-batch-size): want a whole number from 1 to 65535`,
		`command line: unknown setting --publish-windw (did you mean --publish-window?)`,
		`command line: unknown setting --publish_window (did you mean --publish-window?)`,
	} {
		if !slices.Contains(strings.Split(err.Error(), "\n"), line) {
			t.Errorf("missing line: %s", line)
		}
	}
	if n := strings.Count(err.Error(), "\n") + 1; n != 12 {
		t.Errorf("%d lines, want 12:\n%v", n, err)
	}
	var unknown *UnknownError
	if !errors.As(err, &unknown) {
		t.Error("no UnknownError in the error")
	}
}

func TestFilesThatAreNoConfiguration(t *testing.T) {
	for text, says := range map[string]string{
		"[1, 2]":                            "want a mapping",
		"just text":                         "want a mapping",
		"a: b: c":                           "f",
		"publish_window: 1\n---\nx: 2":      "more than one",
		"publish_window: {a: 1}":            "plain value",
		"a: &x 1\npublish_window: *x":       "plain value",
		"publish_window: ~":                 "plain value",
		strings.Repeat("#", maxFile) + "\n": "at most",
	} {
		if _, _, err := loadYAML(t, text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.30q: %v, want an error that says %q", text, err, says)
		}
	}
	for _, text := range []string{"", "# nothing\n", "---\n", "{}"} {
		if cfg, _, err := loadYAML(t, text); err != nil || cfg.Publish.Window != 256 {
			t.Errorf("%q: %v, want the defaults", text, err)
		}
	}
}

func TestAliasVariable(t *testing.T) {
	cfg, warnings := load(t, Sources{Environ: []string{"FELIX_SUB_QUEUE_CAPACITY=7"}})
	if cfg.Subscribe.QueueCapacity != 7 || len(warnings) > 0 {
		t.Errorf("capacity is %d, warnings %q", cfg.Subscribe.QueueCapacity, warnings)
	}
	cfg, warnings = load(t, Sources{Environ: []string{"FELIX_SUB_QUEUE_CAPACITY=7", "FELIX_SUBSCRIBER_QUEUE_CAPACITY=8"}})
	if cfg.Subscribe.QueueCapacity != 8 || len(warnings) != 1 || !strings.Contains(warnings[0], "FELIX_SUB_QUEUE_CAPACITY has no effect") {
		t.Errorf("capacity is %d, warnings %q", cfg.Subscribe.QueueCapacity, warnings)
	}
}

func TestInertSettingsWarnOnceEach(t *testing.T) {
	_, warnings := load(t, Sources{
		File:       "f.yml",
		FileSystem: files{"f.yml": "subscriber_writer_lanes: 8\ncore_shards: [1, 2]\n"},
		Environ:    []string{"FELIX_MTU_UPPER_BOUND=4096", "FELIX_QUORUM_READS=lease"},
	})
	want := []string{
		"f.yml:1: subscriber_writer_lanes has no effect: " + whyLanes,
		"f.yml:2: core_shards has no effect: " + whyScheduler,
		"FELIX_MTU_UPPER_BOUND has no effect: " + whyQUIC,
		"FELIX_QUORUM_READS has no effect: " + whySingle,
	}
	if !slices.Equal(warnings, want) {
		t.Errorf("warnings are %q, want %q", warnings, want)
	}
}

func TestStorageSettings(t *testing.T) {
	cfg, warnings := load(t, Sources{Environ: []string{"FELIX_DURABLE_STORAGE_DIR=/data"}})
	s := cfg.Storage
	if s.Dir != "/data" || s.Fsync != FsyncOnCommit || s.Preallocate || s.RetentionBytes != 0 || s.RetentionAge != 0 || s.SegmentBytes != 256<<20 || len(warnings) > 0 {
		t.Errorf("loaded %+v, warnings %q", s, warnings)
	}
	for _, tt := range []struct {
		name    string
		environ []string
		want    []string
	}{
		{"an interval does not choose the mode", []string{"FELIX_DURABLE_STORAGE_DIR=/data", "FELIX_DURABLE_FSYNC_INTERVAL_MS=10"},
			[]string{"durable_fsync_interval_ms (FELIX_DURABLE_FSYNC_INTERVAL_MS) has no effect: durable_fsync_mode is on_commit; ask for periodic by its name"}},
		{"a weaker mode says what it can lose", []string{"FELIX_DURABLE_STORAGE_DIR=/data", "FELIX_DURABLE_FSYNC_MODE=periodic", "FELIX_DURABLE_FSYNC_INTERVAL_MS=10"},
			[]string{"durable_fsync_mode is periodic (FELIX_DURABLE_FSYNC_MODE): a power cut can lose writes that were acknowledged"}},
		{"without a directory", []string{"FELIX_DURABLE_RETENTION_SECONDS=3600", "FELIX_DURABLE_PREALLOCATE=no"},
			[]string{"durable_retention_seconds (FELIX_DURABLE_RETENTION_SECONDS) has no effect without durable_storage_dir: everything is in memory"}},
	} {
		if _, warnings := load(t, Sources{Environ: tt.environ}); !slices.Equal(warnings, tt.want) {
			t.Errorf("%s: warnings %q, want %q", tt.name, warnings, tt.want)
		}
	}
	for _, entry := range []string{
		"FELIX_DURABLE_FSYNC_MODE=always", "FELIX_DURABLE_FSYNC_INTERVAL_MS=0", "FELIX_DURABLE_RETENTION_BYTES=0", "FELIX_DURABLE_RETENTION_SECONDS=0",
		"FELIX_DURABLE_RETENTION_INTERVAL_SECONDS=0", "FELIX_DURABLE_INDEX_SPACING_BYTES=0", "FELIX_DURABLE_MAX_RECORDS_PER_READ=0", "FELIX_DURABLE_SEGMENT_BYTES=59",
	} {
		if _, _, err := Load(Sources{FileSystem: files{}, Environ: []string{entry}}); err == nil {
			t.Errorf("%s is accepted", entry)
		}
	}
}

func TestGroupSettings(t *testing.T) {
	cfg, warnings := load(t, Sources{Environ: []string{
		"FELIX_DURABLE_STORAGE_DIR=/data", "FELIX_GROUP_VISIBILITY_TIMEOUT_MS=500", "FELIX_GROUP_MAX_VISIBILITY_MS=1h", "FELIX_GROUP_MAX_ATTEMPTS=3",
		"FELIX_GROUP_MAX_WAIT_MS=20s", "FELIX_GROUP_MAX_IN_FLIGHT=7",
	}})
	want := Groups{Visibility: 500 * time.Millisecond, MaxVisibility: time.Hour, MaxAttempts: 3, MaxWait: 20 * time.Second, MaxInFlight: 7}
	if cfg.Groups != want || len(warnings) > 0 {
		t.Errorf("loaded %+v, warnings %q, want %+v", cfg.Groups, warnings, want)
	}
	_, warnings = load(t, Sources{Environ: []string{"FELIX_GROUP_MAX_ATTEMPTS=3"}})
	if !slices.Equal(warnings, []string{"group_max_attempts (FELIX_GROUP_MAX_ATTEMPTS) has no effect without durable_storage_dir: everything is in memory"}) {
		t.Errorf("without storage: warnings %q", warnings)
	}
	for _, entry := range []string{
		"FELIX_GROUP_VISIBILITY_TIMEOUT_MS=0", "FELIX_GROUP_MAX_VISIBILITY_MS=29999", "FELIX_GROUP_MAX_ATTEMPTS=0",
		"FELIX_GROUP_MAX_WAIT_MS=0", "FELIX_GROUP_MAX_IN_FLIGHT=0",
	} {
		if _, _, err := Load(Sources{FileSystem: files{}, Environ: []string{entry}}); err == nil {
			t.Errorf("%s is accepted", entry)
		}
	}
}

func TestPromisesThatCannotBeIgnored(t *testing.T) {
	for name := range refusedVariables {
		_, _, err := Load(Sources{FileSystem: files{}, Environ: []string{name + "=/data"}})
		var refused *UnsupportedError
		if !errors.As(err, &refused) || refused.Name != name || !strings.Contains(err.Error(), "unset it") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOthersVariablesAreNotOurs(t *testing.T) {
	for _, entry := range []string{
		"FELIX_BROKERS=a:1", "FELIX_AUTH_TOKEN=x", "FELIX_CONTROLPLANE_BIND=x", "FELIX_RAFT_ANYTHING=x", "FELIX_CACHE_CONN_RECV_WINDOW=1",
		"FELIXIR=1", "HOME=/root", "FELIX_ZZZ=", "broken",
		"FELIX_SERVICE_HOST=10.0.0.1", "FELIX_SERVICE_PORT=5000", "FELIX_BROKER_SERVICE_PORT_QUIC=5000", "FELIX_PORT=udp://10.0.0.1:5000",
		"FELIX_BROKER_PORT=tcp://10.0.0.1:8080", "FELIX_BROKER_PORT_8080_TCP=tcp://10.0.0.1:8080", "FELIX_BROKER_PORT_8080_TCP_ADDR=10.0.0.1",
		"FELIX_PORT_5000_UDP_PROTO=udp", "FELIX_PORT_5000_UDP_PORT=5000",
	} {
		if _, warnings := load(t, Sources{Environ: []string{entry}}); len(warnings) > 0 {
			t.Errorf("%s: warnings %q", entry, warnings)
		}
	}
	if _, _, err := Load(Sources{FileSystem: files{}, Environ: []string{"FELIX_PORT=5000"}}); err == nil {
		t.Error("FELIX_PORT=5000, which nothing reads, is accepted")
	}
}

func TestDerivedDefaults(t *testing.T) {
	for _, tt := range []struct {
		yaml string
		cpus int
		key  string
		want string
	}{
		{"", 1, "quic_listeners", "1"},
		{"", 6, "quic_listeners", "3"},
		{"", 64, "quic_listeners", "4"},
		{"quic_bind: 0.0.0.0:65534", 64, "quic_listeners", "2"},
		{"quic_bind: 127.0.0.1:0", 64, "quic_listeners", "1"},
		{"pub_conn_inflight_bytes: 1MiB", 2, "pub_conn_total_inflight_bytes", "4194304"},
		{"pub_conn_inflight_bytes: 32MiB", 2, "pub_conn_total_inflight_bytes", "67108864"},
		{"pub_conn_inflight_bytes: 32MiB", 2, "pub_stream_recv_window", "33554432"},
		{"max_frame_bytes: 32MiB", 2, "pub_conn_recv_window", "33554432"},
		{"pub_conn_recv_window: 64MiB", 2, "pub_stream_recv_window", "16777216"},
		{"pub_conn_inflight_bytes: 32MiB\npub_conn_recv_window: 20MiB", 2, "pub_stream_recv_window", "20971520"},
		{"pub_inflight_bytes: 8TiB\npub_conn_inflight_bytes: 1TiB", 2, "pub_conn_recv_window", "17179869184"},
		{"max_subscriptions_per_conn: 10", 2, "max_subscriptions_per_conn_total", "40"},
		{"max_frame_bytes: 8KiB\nevent_batch_max_bytes: 8KiB", 2, "preauth_max_frame_bytes", "8192"},
	} {
		cfg, _ := load(t, Sources{File: "f", FileSystem: files{"f": tt.yaml}, CPUs: tt.cpus})
		for _, s := range cfg.Settings() {
			if s.Key == tt.key && s.Text() != tt.want {
				t.Errorf("%q on %d CPUs: %s is %s, want %s", tt.yaml, tt.cpus, tt.key, s.Text(), tt.want)
			}
		}
	}
}

func TestRefusedCombinations(t *testing.T) {
	for yaml, says := range map[string][]string{
		"event_batch_max_bytes: 32MiB":                            {"event_batch_max_bytes is 33554432 (felix.yml:1)", "max_frame_bytes, which is 16777216 (default)"},
		"preauth_max_frame_bytes: 32MiB":                          {"33554432", "16777216"},
		"pub_inflight_bytes: 8MiB":                                {"pub_conn_inflight_bytes is 16777216 (default)", "8388608 (felix.yml:1)"},
		"pub_conn_total_inflight_bytes: 8MiB":                     {"16777216", "8388608"},
		"pub_conn_total_inflight_bytes: 65MiB":                    {"68157440", "67108864"},
		"pub_conn_recv_window: 8MiB":                              {"max_frame_bytes is 16777216", "pub_conn_recv_window, which is 8388608"},
		"pub_stream_recv_window: 8MiB":                            {"16777216", "8388608"},
		"pub_stream_recv_window: 32MiB":                           {"33554432", "16777216"},
		"max_subscriptions_per_conn_total: 10":                    {"4096", "10"},
		"quic_bind: 0.0.0.0:65535\nquic_listeners: 2":             {"quic_listeners is 2", "65535", "65536"},
		"quic_bind: 0.0.0.0:0\nquic_listeners: 2":                 {"quic_listeners is 2", "free port"},
		"tls_cert: a.pem":                                         {"tls_cert is set (felix.yml:1) without tls_key"},
		"tls_key: a.pem":                                          {"tls_key is set (felix.yml:1) without tls_cert"},
		"tls_cert: a.pem\ntls_key: b.pem\ntls_cert_export: c.pem": {"tls_cert_export (felix.yml:3)", "tls_cert (felix.yml:1)"},
		"tls_require_cert: yes":                                   {"tls_require_cert is true (felix.yml:1) without tls_client_ca"},
		"tls_client_cert_bind_subject: yes":                       {"without tls_client_ca"},
	} {
		_, _, err := loadYAML(t, yaml)
		if err == nil {
			t.Errorf("%q is accepted", yaml)
			continue
		}
		for _, part := range says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %v, which does not say %q", yaml, err, part)
			}
		}
	}
	// Equal values are fine.
	if _, _, err := loadYAML(t, "pub_inflight_bytes: 16MiB\npub_conn_total_inflight_bytes: 16MiB\nevent_batch_max_bytes: 16MiB\npreauth_max_frame_bytes: 16MiB\nmax_subscriptions_per_conn_total: 4096\ntls_client_ca: ca.pem\ntls_require_cert: yes\n"); err != nil {
		t.Error(err)
	}
}

func TestKeepAliveIsAdjusted(t *testing.T) {
	for _, tt := range []struct {
		yaml string
		want time.Duration
		warn bool
	}{
		{"keepalive_ms: 2999", 2999 * time.Millisecond, false},
		{"keepalive_ms: 3000", 2 * time.Second, true},
		{"keepalive_ms: 0", 2 * time.Second, true},
		{"max_idle_timeout_ms: 1000", 333 * time.Millisecond, true},
		{"max_idle_timeout_ms: 30000", 2 * time.Second, false},
	} {
		cfg, warnings, err := loadYAML(t, tt.yaml)
		if err != nil {
			t.Fatal(err)
		}
		if cfg.Listen.KeepAlive != tt.want || (len(warnings) == 1) != tt.warn {
			t.Errorf("%q: %s, warnings %q; want %s", tt.yaml, cfg.Listen.KeepAlive, warnings, tt.want)
		}
	}
}

func TestFrameLargerThanItsBudgetWarns(t *testing.T) {
	_, warnings, err := loadYAML(t, "max_frame_bytes: 32MiB")
	if err != nil || len(warnings) != 1 || !strings.Contains(warnings[0], "33554432") || !strings.Contains(warnings[0], "16777216") {
		t.Errorf("%v, warnings %q", err, warnings)
	}
}

func TestSecretsStayUnseen(t *testing.T) {
	secret := ""
	groups := []group{{"A group", []Setting{
		{Key: "plain", value: textValue{new(string), "text"}},
		{Key: "token", Secret: true, value: refusing{textValue{&secret, "a token"}}},
	}}}
	l := &loader{source: map[string]string{}}
	l.set(&groups[0].settings[1], "hush-hush", "FELIX_TOKEN_X")
	if err := errors.Join(l.faults...); err == nil || strings.Contains(err.Error(), "hush") {
		t.Errorf("error %v shows the secret, or is none", err)
	}
	secret = "hush-hush"
	var out strings.Builder
	if err := printGroups(&out, groups); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "hush") || !strings.Contains(out.String(), "# token: set, not shown") {
		t.Errorf("printed:\n%s", out.String())
	}
}

// refusing is a value that nothing satisfies.
type refusing struct{ textValue }

func (refusing) set(string) error { return errValue }

func FuzzFile(f *testing.F) {
	f.Add("publish_window: 1\nlog: debug\n")
	f.Add("? [a]\n: b\n")
	f.Add("<<: {a: 1}\n")
	f.Fuzz(func(t *testing.T, text string) {
		cfg, _, err := loadYAML(t, text)
		if (cfg == nil) != (err != nil) {
			t.Fatalf("configuration %v with error %v", cfg, err)
		}
	})
}
