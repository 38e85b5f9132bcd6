package config

import "strings"

// An inert setting belongs to the original broker and does nothing in this
// one. It is accepted, so that its files and manifests load, and its absence
// of effect is said aloud.
type inert struct {
	key string // YAML key, if it has one
	env string
	why string
}

const (
	whyLanes     = "every subscription has a stream and a feeder of its own"
	whyScheduler = "the Go runtime schedules"
	whyTimings   = "latency histograms are always on and cost next to nothing"
	whyQUIC      = "the QUIC stack governs this itself"
	whySingle    = "this broker keeps one copy and talks to no other broker"
	whyFlush     = "flushes are gathered, one at a time for a log, which needs no ring"
	whyTold      = "the control plane tells the interval"
	whyBridges   = "bridges between regions are kept by the control plane"
	whyKafka     = "there is no Kafka listener"
	whyTracing   = "there is no trace export"
)

var inertSettings = []inert{
	{"subscriber_writer_lanes", "FELIX_SUB_WRITER_LANES", whyLanes},
	{"", "FELIX_SUB_EGRESS_LANES", whyLanes},
	{"max_subscriber_writer_lanes", "FELIX_MAX_SUB_WRITER_LANES", whyLanes},
	{"subscriber_lane_queue_depth", "FELIX_SUB_LANE_QUEUE_DEPTH", whyLanes},
	{"", "FELIX_SUB_QUEUE_BOUND", whyLanes},
	{"subscriber_lane_queue_policy", "FELIX_SUB_LANE_QUEUE_POLICY", whyLanes},
	{"", "FELIX_SUB_QUEUE_MODE", whyLanes},
	{"subscriber_lane_shard", "FELIX_SUB_LANE_SHARD", whyLanes},
	{"subscriber_single_writer_per_conn", "FELIX_SUB_SINGLE_WRITER_PER_CONN", whyLanes},
	{"subscriber_flush_max_items", "FELIX_SUB_FLUSH_MAX_ITEMS", whyLanes},
	{"subscriber_flush_max_delay_us", "FELIX_SUB_FLUSH_MAX_DELAY_US", whyLanes},
	{"sub_streams_per_conn", "FELIX_SUB_STREAMS_PER_CONN", whyLanes},
	{"sub_stream_mode", "FELIX_SUB_STREAM_MODE", whyLanes},

	{"core_shards", "FELIX_CORE_SHARDS", whyScheduler},
	{"", "FELIX_IO_RUNTIME_THREADS", whyScheduler},
	{"", "FELIX_PUMP_COLOCATE", whyScheduler},
	{"disable_timings", "FELIX_DISABLE_TIMINGS", whyTimings},
	{"", "FELIX_TIMING_SAMPLE_EVERY", whyTimings},
	{"", "FELIX_CONN_STATS_MS", "the metrics carry the statistics of QUIC connections"},

	{"cache_send_window", "FELIX_CACHE_SEND_WINDOW", whyQUIC},
	{"", "FELIX_MTU_UPPER_BOUND", whyQUIC},
	{"", "FELIX_INITIAL_MTU", whyQUIC},
	{"", "FELIX_MAX_UDP_PAYLOAD", whyQUIC},
	{"", "FELIX_MTU_BLACK_HOLE_COOLDOWN_MS", whyQUIC},
	{"", "FELIX_INITIAL_CWND", whyQUIC},
	{"", "FELIX_ACK_ELICITING_THRESHOLD", whyQUIC},
	{"", "FELIX_ACK_FREQ_DISABLE", whyQUIC},

	{"", "FELIX_BROKER_PUB_FLUSH_CONCURRENCY", "one flush of a log serves all that wait for it; storage_max_flushes bounds those of the process"},
	{"", "FELIX_PUBLISH_QUORUM_TIMEOUT_MS", whySingle},
	{"", "FELIX_QUORUM_READS", whySingle},
	{"", "FELIX_SHARD_MOVE_HOLD_MS", whySingle},
	{"", "FELIX_SHARD_MOVE_HOLD_MAX", whySingle},
	{"", "FELIX_SHARD_MOVE_BYTES_PER_SEC", whySingle},
	{"", "FELIX_REPLICATION_REBUILD_MAX_CONCURRENT", whySingle},
	{"", "FELIX_REPLICATION_REBUILD_BYTES_PER_SEC", whySingle},
	{"", "FELIX_STORAGE_IO_URING", whyFlush},
	{"", "FELIX_NODE_HEARTBEAT_INTERVAL_MS", whyTold},
	{"", "FELIX_REGION_BRIDGES", whyBridges},
	{"", "FELIX_INTERNAL_BIND", whySingle},
	{"", "FELIX_INTERNAL_TLS_CERT", whySingle},
	{"", "FELIX_INTERNAL_TLS_KEY", whySingle},
	{"", "FELIX_INTERNAL_TLS_CA", whySingle},
	{"", "FELIX_INTERNAL_ALLOW_UNAUTHENTICATED", whySingle},
	{"", "FELIX_INTERNAL_FENCE", whySingle},
	{"", "FELIX_INTERNAL_CONNS_PER_PEER", whySingle},
	{"", "FELIX_INTERNAL_STREAMS_PER_CONN", whySingle},
	{"", "FELIX_INTERNAL_MAX_INFLIGHT", whySingle},
	{"", "FELIX_INTERNAL_REQUEST_TIMEOUT_MS", whySingle},
	{"", "FELIX_INTERNAL_HANDSHAKE_TIMEOUT_MS", whySingle},
	{"", "FELIX_INTERNAL_IDLE_TIMEOUT_MS", whySingle},
	{"", "FELIX_INTERNAL_RECONNECT_BASE_MS", whySingle},
	{"", "FELIX_INTERNAL_RECONNECT_MAX_MS", whySingle},
	{"", "FELIX_INTERNAL_MAX_INBOUND_CONNECTIONS", whySingle},
	{"", "FELIX_INTERNAL_MAX_INBOUND_CONNECTIONS_PER_SOURCE", whySingle},
	{"", "FELIX_KAFKA_LISTEN", whyKafka},
	{"", "FELIX_KAFKA_ADVERTISE_ADDR", whyKafka},
	{"", "FELIX_KAFKA_TLS", whyKafka},
	{"", "FELIX_KAFKA_ANONYMOUS_TENANT", whyKafka},
	{"", "FELIX_KAFKA_DEFAULT_NAMESPACE", whyKafka},
	{"", "FELIX_KAFKA_MAX_CONNECTIONS", whyKafka},
	{"", "FELIX_KAFKA_MAX_CONNECTIONS_PER_IP", whyKafka},
	{"", "FELIX_KAFKA_AUTH_TIMEOUT_MS", whyKafka},
	{"", "FELIX_SERVICE_INSTANCE_ID", whyTracing},
}

func (d *dialect) inertByKey(key string) *inert {
	for i := range d.inert {
		if d.inert[i].key == key {
			return &d.inert[i]
		}
	}
	return nil
}

func (d *dialect) inertByEnv(env string) *inert {
	for i := range d.inert {
		if d.inert[i].env == env {
			return &d.inert[i]
		}
	}
	return nil
}

// refusedVariables promise something that ignoring them would break.
var refusedVariables = map[string]string{
	"FELIX_DURABLE_OFFLOAD_DIR":     "this broker copies no segments away; with it, retention would delete what is believed to be kept elsewhere",
	"FELIX_NODE_REFRESH_TOKEN":      "a refresh token does not belong in the environment, where every child process reads it",
	"FELIX_STORAGE_FAULT_FILE":      "there is no fault injection in this build",
	"FELIX_STORAGE_POWER_LOSS_ROOT": "there is no fault injection in this build",
}

// An UnsupportedError is a setting that must not be ignored and cannot be
// honoured.
type UnsupportedError struct {
	Name string
	Why  string
}

func (e *UnsupportedError) Error() string {
	return e.Name + " is not supported: " + e.Why + "; unset it"
}

// foreignPrefixes begin the variables of the control plane.
var foreignPrefixes = []string{"FELIX_CONTROLPLANE_", "FELIX_RAFT_", "FELIX_BOOTSTRAP_", "FELIX_READINESS_"}

// foreignVariables belong to clients, the command line and the control plane,
// which may share an environment with a broker.
var foreignVariables = []string{
	"FELIX_AUTH_TENANT", "FELIX_AUTH_TOKEN", "FELIX_AUTH_TOKEN_FILE", "FELIX_BENCH_EMBED_TS", "FELIX_BROKERS",
	"FELIX_CACHE_CONN_POOL", "FELIX_CACHE_CONN_RECV_WINDOW", "FELIX_CACHE_STREAMS_PER_CONN", "FELIX_CACHE_STREAM_RECV_WINDOW",
	"FELIX_CA_FILE", "FELIX_CLIENT_CERT_FILE", "FELIX_CLIENT_CONFIG", "FELIX_CLIENT_KEY_FILE",
	"FELIX_CLIENT_SUB_QUEUE_CAPACITY", "FELIX_CLIENT_SUB_QUEUE_POLICY", "FELIX_CLI_CONFIG",
	"FELIX_CLUSTER_CONN_POOL", "FELIX_CLUSTER_STREAMS_PER_CONN", "FELIX_CLUSTER_VERBOSE", "FELIX_CONTEXT",
	"FELIX_EVENT_CONN_POOL", "FELIX_EVENT_CONN_RECV_WINDOW", "FELIX_EVENT_ROUTER_MAX_PENDING", "FELIX_EVENT_SEND_WINDOW",
	"FELIX_EVENT_STREAM_RECV_WINDOW", "FELIX_EXCHANGE_TOKEN_TTL_SECONDS", "FELIX_LEADER_SUSPECT_AFTER_MS", "FELIX_NAMESPACE",
	"FELIX_NODE_EXPIRY_SWEEP_INTERVAL_MS", "FELIX_NODE_EXPIRY_TIMEOUT_MS", "FELIX_NODE_REGRANT_MARGIN_MS",
	"FELIX_PLACEMENT_SETTLE_MS", "FELIX_PUBLISH_CHUNK_BYTES", "FELIX_PUBLISH_INFLIGHT_BYTES", "FELIX_PUBLISH_QUEUE_DEPTH",
	"FELIX_PUBLISH_SHARDING", "FELIX_PUB_CONN_POOL", "FELIX_PUB_SHARDING", "FELIX_PUB_SHARD_STREAMS", "FELIX_PUB_STREAMS_PER_CONN",
	"FELIX_REFRESH_TOKEN_TTL_SECONDS", "FELIX_SERVER_NAME", "FELIX_SHARD_MOVES_MAX_CONCURRENT", "FELIX_SHARD_MOVES_MAX_PER_NODE",
	"FELIX_SHARD_MOVE_FENCE_MAX_LAG_RECORDS", "FELIX_SHARD_MOVE_TIMEOUT_MS", "FELIX_SHARD_RECONCILE_INTERVAL_MS",
	"FELIX_SHARD_RESTORE_AFTER_MS", "FELIX_SHARD_RESTORE_STALL_MS", "FELIX_STATUS_PANIC", "FELIX_SUB_DEDICATED_QUEUE_CAPACITY",
	"FELIX_SUB_DEDICATED_THREAD", "FELIX_SUB_DELIVERY_SHAPING", "FELIX_TOKEN",
}

func isForeign(name string) bool {
	for _, prefix := range foreignPrefixes {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	for _, known := range foreignVariables {
		if known == name {
			return true
		}
	}
	return false
}
