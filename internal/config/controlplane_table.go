package config

import (
	"fmt"
	"strings"
	"time"
)

// maxPeriod bounds the periods of loops.
const maxPeriod = time.Hour

func (c *ControlPlane) groups() []group {
	return []group{
		{"Listeners", c.listeners()},
		{"Storage", c.storage()},
		{"Raft", c.Raft.settings()},
		{"Feeds", []Setting{
			{Key: "changes_limit", Env: "FELIX_CONTROLPLANE_CHANGES_LIMIT", Default: "1000", value: countValue{&c.ChangesPage, 1, 10_000},
				Help: "Changes in one answer of a feed."},
			{Key: "change_retention_max_rows", Env: "FELIX_CONTROLPLANE_CHANGE_RETENTION_MAX_ROWS", Default: "10000", value: countValue{&c.ChangesKept, 1, 1 << 24},
				Help: "Changes kept of each feed, and deletions remembered of each kind; a broker that is further behind takes a snapshot."},
		}},
		{"Identities", c.Auth.settings()},
		{"Bootstrap", c.Bootstrap.settings()},
		{"Membership and placement", c.Liveness.settings()},
		{"Moves", c.Moves.settings()},
		{"Probes, shutdown and logs", c.process()},
	}
}

func (c *ControlPlane) listeners() []Setting {
	return []Setting{
		{Key: "bind_addr", Env: "FELIX_CONTROLPLANE_BIND", Default: "0.0.0.0:8443", value: addressValue{&c.Bind},
			Help: "Address of the API (TCP). It speaks plain HTTP unless tls_cert is set."},
		{Key: "metrics_bind", Env: "FELIX_CONTROLPLANE_METRICS_BIND", Default: "0.0.0.0:8080", value: addressValue{&c.MetricsBind},
			Help: "Address of /metrics, /live and /ready: plain HTTP without authentication, so keep it inside."},
		{Key: "tls_cert", Env: "FELIX_CONTROLPLANE_TLS_CERT", value: textValue{&c.TLSCert, "a path, or nothing"},
			Help: "PEM certificate chain of the API, read again when it changes."},
		{Key: "tls_key", Env: "FELIX_CONTROLPLANE_TLS_KEY", value: textValue{&c.TLSKey, "a path, or nothing"},
			Help: "PEM key of tls_cert."},
		{Key: "region_id", Env: "FELIX_REGION_ID", Default: "local", value: textValue{&c.Region, "a name"},
			Help: "Region of this control plane."},
		{Key: "region_bridges", Env: "FELIX_REGION_BRIDGES", value: bridgesValue{&c.Bridges},
			Help: "Bridges between regions that are stored where none is, as source>destination, comma-separated; later ones are made and removed through the API."},
	}
}

func (c *ControlPlane) storage() []Setting {
	p := &c.Postgres
	return []Setting{
		{Key: "storage.backend", Env: "FELIX_CONTROLPLANE_STORAGE_BACKEND", Derived: "postgres with postgres.url, raft with raft.data_dir, else memory",
			value: oneOf[Backend]{&c.Backend, []Backend{BackendMemory, BackendPostgres, BackendRaft}},
			Help:  "Where the metadata is. In memory it is gone when the process ends."},
		{Key: "postgres.url", Env: "FELIX_CONTROLPLANE_POSTGRES_URL", Aliases: []string{"DATABASE_URL"}, Secret: true, value: textValue{&p.URL, "a postgres:// URL, or nothing"},
			Help: "The database. It is migrated at the start. Its TLS is the URL's sslmode."},
		{Key: "postgres.max_connections", Env: "FELIX_CONTROLPLANE_POSTGRES_MAX_CONNECTIONS", Default: "10", value: countValue{&p.MaxConnections, 1, 1000},
			Help: "Connections of one instance."},
		{Key: "postgres.connect_timeout_ms", Env: "FELIX_CONTROLPLANE_POSTGRES_CONNECT_TIMEOUT_MS", Default: "5000", value: durationValue{p: &p.ConnectTimeout, unit: time.Millisecond, min: time.Millisecond, max: maxPeriod},
			Help: "How long connecting may take."},
		{Key: "postgres.acquire_timeout_ms", Env: "FELIX_CONTROLPLANE_POSTGRES_ACQUIRE_TIMEOUT_MS", Default: "5000", value: durationValue{p: &p.AcquireTimeout, unit: time.Millisecond, min: time.Millisecond, max: maxPeriod},
			Help: "How long a request waits for a connection that is free."},
	}
}

func (r *Raft) settings() []Setting {
	return []Setting{
		{Key: "raft.data_dir", Env: "FELIX_RAFT_DATA_DIR", value: textValue{&r.DataDir, "a path, or nothing"},
			Help: "Directory of this member's log and snapshots. Without raft.peers it is a group of one, which needs nothing else."},
		{Key: "raft.node_id", Env: "FELIX_RAFT_NODE_ID", value: textValue{&r.NodeID, "a name of raft.peers, or nothing"},
			Help: "Which of raft.peers this instance is."},
		{Key: "raft.peers", Env: "FELIX_RAFT_PEERS", value: textValue{&r.Peers, "a list like 1=host:port,2=host:port,3=host:port, or nothing"},
			Help: "All members with the addresses of their peer listeners, the same everywhere."},
		{Key: "raft.bind_addr", Env: "FELIX_RAFT_BIND_ADDR", value: optionalAddress{&r.Bind},
			Help: "Address of the peer listener (TCP)."},
		{Key: "raft.cluster_id", Env: "FELIX_RAFT_CLUSTER_ID", value: textValue{&r.ClusterID, "a name, or nothing"},
			Help: "Name of the group. A data directory of another group is refused."},
		{Key: "raft.peer_token", Env: "FELIX_RAFT_PEER_TOKEN", Secret: true, value: textValue{&r.PeerToken, "at least 32 characters, or nothing"},
			Help: "Secret that members show each other."},
		{Key: "raft.initial_cluster_state", Env: "FELIX_RAFT_INITIAL_CLUSTER_STATE", Default: string(RaftExisting), value: oneOf[RaftInitialState]{&r.InitialState, []RaftInitialState{RaftExisting, RaftNew}},
			Help: "new lets members without state form the group, once; existing lets them only join what there is."},
		{Key: "raft.insecure_peers", Env: "FELIX_RAFT_INSECURE_PEERS", Default: "false", value: boolValue{&r.Insecure},
			Help: "Do without raft.peer_token. Whoever reaches the peer listener can then replace all metadata."},
		{Key: "raft.tls_cert", Env: "FELIX_RAFT_TLS_CERT", value: textValue{&r.TLSCert, "a path, or nothing"}, Help: "PEM certificate chain of this member, for its peers."},
		{Key: "raft.tls_key", Env: "FELIX_RAFT_TLS_KEY", value: textValue{&r.TLSKey, "a path, or nothing"}, Help: "PEM key of raft.tls_cert."},
		{Key: "raft.tls_ca", Env: "FELIX_RAFT_TLS_CA", value: textValue{&r.TLSCA, "a path, or nothing"}, Help: "PEM authorities of the members' certificates."},
		{Key: "raft.election_timeout_min_ms", Env: "FELIX_RAFT_ELECTION_TIMEOUT_MIN_MS", Default: "600", value: durationValue{p: &r.Election, unit: time.Millisecond, min: 50 * time.Millisecond, max: time.Minute},
			Help: "Silence of the leader after which a member may stand for election; at the latest it does after twice that. The leader is heard from every tenth of it."},
		{Key: "raft.snapshot_logs_since_last", Env: "FELIX_RAFT_SNAPSHOT_LOGS_SINCE_LAST", Default: "500", value: countValue{&r.SnapshotLogs, 10, 1 << 20},
			Help: "Entries after which a snapshot is taken."},
		{Key: "raft.logs_kept_behind_snapshot", Env: "FELIX_RAFT_LOGS_KEPT_BEHIND_SNAPSHOT", Default: "1000", value: countValue{&r.LogsKept, 10, 1 << 20},
			Help: "Entries kept behind a snapshot, so that a member that was away a while needs none."},
		{Key: "raft.write_timeout_ms", Env: "FELIX_RAFT_WRITE_TIMEOUT_MS", Default: "10000", value: durationValue{p: &r.WriteTimeout, unit: time.Millisecond, min: time.Millisecond, max: maxPeriod},
			Help: "How long a write may look for a leader before it is answered with unavailable."},
	}
}

func (a *ControlPlaneAuth) settings() []Setting {
	return []Setting{
		{Key: "oidc_allowed_algorithms", Env: "FELIX_CONTROLPLANE_OIDC_ALLOWED_ALGORITHMS", Default: "ES256", value: wordsValue{&a.Algorithms, []string{"ES256", "RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}},
			Help: "Signature algorithms accepted of identity providers."},
		{Key: "oidc_allow_insecure_http", Env: "FELIX_CONTROLPLANE_OIDC_ALLOW_INSECURE_HTTP", Default: "false", value: boolValue{&a.AllowInsecureHTTP},
			Help: "Accept providers over plain HTTP on loopback. For development."},
		{Key: "oidc_allow_private_idp", Env: "FELIX_CONTROLPLANE_OIDC_ALLOW_PRIVATE_IDP", Default: "false", value: boolValue{&a.AllowPrivateIDP},
			Help: "Accept providers on private addresses."},
		{Key: "accept_broker_audience", Env: "FELIX_CONTROLPLANE_ACCEPT_BROKER_AUDIENCE", Default: "false", value: boolValue{&a.AcceptBrokerAudience},
			Help: "Accept tokens made for brokers at the API. A broker sees its clients' tokens and could use them here."},
		{Key: "exchange_token_ttl_seconds", Env: "FELIX_EXCHANGE_TOKEN_TTL_SECONDS", Default: "900", value: durationValue{p: &a.TokenTTL, unit: time.Second, min: time.Second, max: maxWait},
			Help: "Life of a Felix token."},
		{Key: "refresh_token_ttl_seconds", Env: "FELIX_REFRESH_TOKEN_TTL_SECONDS", Default: "2592000", value: durationValue{p: &a.RefreshTTL, unit: time.Second, min: time.Second, max: maxAge},
			Help: "Life of a refresh token."},
	}
}

func (b *Bootstrap) settings() []Setting {
	return []Setting{
		{Key: "bootstrap.enabled", Env: "FELIX_BOOTSTRAP_ENABLED", Default: "false", value: boolValue{&b.Enabled},
			Help: "Open the listener that initialises tenants. Switch it on for the first tenant, and off again."},
		{Key: "bootstrap.bind_addr", Env: "FELIX_BOOTSTRAP_BIND_ADDR", Default: "127.0.0.1:9095", value: addressValue{&b.Bind},
			Help: "Its address."},
		{Key: "bootstrap.token", Env: "FELIX_BOOTSTRAP_TOKEN", Secret: true, value: textValue{&b.Token, "a secret, or nothing"},
			Help: "Secret that a caller shows."},
		{Key: "bootstrap.previous_token", Env: "FELIX_BOOTSTRAP_TOKEN_PREVIOUS", Secret: true, value: textValue{&b.PreviousToken, "a secret, or nothing"},
			Help: "Secret that is accepted besides, while callers change to the new one."},
		{Key: "bootstrap.tls_cert", Env: "FELIX_BOOTSTRAP_TLS_CERT", value: textValue{&b.TLSCert, "a path, or nothing"}, Help: "PEM certificate chain of the listener."},
		{Key: "bootstrap.tls_key", Env: "FELIX_BOOTSTRAP_TLS_KEY", value: textValue{&b.TLSKey, "a path, or nothing"}, Help: "PEM key of bootstrap.tls_cert."},
		{Key: "bootstrap.tls_client_ca", Env: "FELIX_BOOTSTRAP_TLS_CLIENT_CA", value: textValue{&b.TLSClientCA, "a path, or nothing"}, Help: "PEM authorities of the callers' certificates."},
		{Key: "bootstrap.dev_tokens", Env: "FELIX_BOOTSTRAP_DEV_TOKENS", Default: "false", value: boolValue{&b.DevTokens},
			Help: "Give out tokens without an identity provider, on a loopback address only. For development."},
	}
}

func (n *Liveness) settings() []Setting {
	ms := func(p *time.Duration, least time.Duration) durationValue {
		return durationValue{p: p, unit: time.Millisecond, min: least, max: maxPeriod}
	}
	return []Setting{
		{Key: "node_liveness.heartbeat_interval_ms", Env: "FELIX_NODE_HEARTBEAT_INTERVAL_MS", Default: "5000", value: ms(&n.Heartbeat, time.Millisecond),
			Help: "Interval of heartbeats, told to brokers when they register."},
		{Key: "node_liveness.expiry_timeout_ms", Env: "FELIX_NODE_EXPIRY_TIMEOUT_MS", Default: "15000", value: ms(&n.Expiry, time.Millisecond),
			Help: "Length of the lease that a heartbeat renews."},
		{Key: "node_liveness.regrant_margin_ms", Env: "FELIX_NODE_REGRANT_MARGIN_MS", Derived: "a quarter of expiry_timeout_ms", value: ms(&n.Margin, 0),
			Help: "Waited beyond the lease before a silent node is taken for down. Never less than a quarter of it."},
		{Key: "node_liveness.sweep_interval_ms", Env: "FELIX_NODE_EXPIRY_SWEEP_INTERVAL_MS", Default: "2000", value: ms(&n.Sweep, time.Millisecond),
			Help: "Time between two looks for silent nodes."},
		{Key: "node_liveness.shard_reconcile_interval_ms", Env: "FELIX_SHARD_RECONCILE_INTERVAL_MS", Default: "5000", value: ms(&n.Reconcile, time.Millisecond),
			Help: "Time between two placement passes that nothing asked for."},
		{Key: "placement_settle_ms", Env: "FELIX_PLACEMENT_SETTLE_MS", Default: "10000", value: durationValue{p: &n.Settle, unit: time.Millisecond, min: time.Millisecond, max: maxPeriod, off: true},
			Help: "How long a new cluster waits for as many brokers as a shard wants copies."},
	}
}

func (m *Moves) settings() []Setting {
	return []Setting{
		{Key: "max_concurrent_shard_moves", Env: "FELIX_SHARD_MOVES_MAX_CONCURRENT", Default: "1", value: countValue{&m.Concurrent, 0, 1 << 16},
			Help: "Shards that may move at once in the cluster; 0 starts no move."},
		{Key: "max_shard_moves_per_node", Env: "FELIX_SHARD_MOVES_MAX_PER_NODE", Default: "0", value: countValue{&m.PerNode, 0, 1 << 16},
			Help: "Moves one node may take part in; 0 is no bound."},
		{Key: "shard_move_fence_max_lag_records", Env: "FELIX_SHARD_MOVE_FENCE_MAX_LAG_RECORDS", Default: "1000", value: countValue{&m.FenceLag, 0, 1 << 40},
			Help: "Records the destination may lack when writes are stopped for the rest."},
		{Key: "shard_move_timeout_ms", Env: "FELIX_SHARD_MOVE_TIMEOUT_MS", Default: "1800000", value: durationValue{p: &m.Timeout, unit: time.Millisecond, min: time.Millisecond, max: maxAge, off: true},
			Help: "A move that has not come so far by then is given up."},
		{Key: "shard_restore_after_ms", Env: "FELIX_SHARD_RESTORE_AFTER_MS", Default: "300000", value: durationValue{p: &m.RestoreAfter, unit: time.Millisecond, min: time.Millisecond, max: maxAge, off: true},
			Help: "How long a follower may be down before its shard gets a copy elsewhere."},
	}
}

func (c *ControlPlane) process() []Setting {
	return []Setting{
		{Key: "readiness_timeout_ms", Env: "FELIX_READINESS_TIMEOUT_MS", Default: "2000", value: durationValue{p: &c.Readiness.Timeout, unit: time.Millisecond, min: time.Millisecond, max: maxPeriod},
			Help: "How long the store may take to answer a readiness probe."},
		{Key: "readiness_cache_ttl_ms", Env: "FELIX_READINESS_CACHE_TTL_MS", Default: "1000", value: durationValue{p: &c.Readiness.CacheTTL, unit: time.Millisecond, min: time.Millisecond, max: maxPeriod, off: true},
			Help: "How long its answer serves further probes."},
		{Key: "shutdown_predrain_ms", Env: "FELIX_SHUTDOWN_PREDRAIN_MS", Default: "5000", value: durationValue{p: &c.Shutdown.PreDrain, unit: time.Millisecond, min: time.Millisecond, max: maxPeriod, off: true},
			Help: "How long it serves on after saying that it is not ready."},
		{Key: "shutdown_drain_timeout_ms", Env: "FELIX_SHUTDOWN_DRAIN_TIMEOUT_MS", Default: "25000", value: durationValue{p: &c.Shutdown.Drain, unit: time.Millisecond, min: time.Millisecond, max: maxPeriod},
			Help: "How long requests in flight may take after that."},
		{Key: "log", Env: "FELIX_LOG", Default: "info", value: textValue{&c.Log, "a level, or a list of module=level"},
			Help: "Level of the log."},
		{Key: "log_format", Env: "FELIX_LOG_FORMAT", Default: string(LogText), value: oneOf[LogFormat]{&c.LogFormat, []LogFormat{LogText, LogJSON}},
			Help: "Form of log lines."},
	}
}

// optionalAddress is host:port, or nothing.
type optionalAddress struct{ p *string }

func (v optionalAddress) set(text string) error {
	if text == "" {
		*v.p = ""
		return nil
	}
	return addressValue(v).set(text)
}

func (v optionalAddress) text() string    { return *v.p }
func (v optionalAddress) allowed() string { return addressValue(v).allowed() + ", or nothing" }

// wordsValue is a list of a few words, at least one.
type wordsValue struct {
	p     *[]string
	words []string
}

func (v wordsValue) set(text string) error {
	var list []string
	for part := range strings.SplitSeq(text, ",") {
		var word string
		if err := (oneOf[string]{&word, v.words}).set(strings.TrimSpace(part)); err != nil {
			return err
		}
		list = append(list, word)
	}
	*v.p = list
	return nil
}

func (v wordsValue) text() string { return strings.Join(*v.p, ",") }
func (v wordsValue) allowed() string {
	return "a comma-separated list of " + strings.Join(v.words, ", ")
}

// bridgesValue is a list of source>destination.
type bridgesValue struct{ p *[]RegionBridge }

func (v bridgesValue) set(text string) error {
	var list []RegionBridge
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		source, destination, found := strings.Cut(part, ">")
		source, destination = strings.TrimSpace(source), strings.TrimSpace(destination)
		if !found || source == "" || destination == "" || source == destination || strings.Contains(destination, ">") {
			return errValue
		}
		list = append(list, RegionBridge{source, destination})
	}
	*v.p = list
	return nil
}

func (v bridgesValue) text() string {
	all := make([]string, len(*v.p))
	for i, b := range *v.p {
		all[i] = fmt.Sprintf("%s>%s", b.Source, b.Destination)
	}
	return strings.Join(all, ",")
}

func (v bridgesValue) allowed() string {
	return "a comma-separated list of source>destination, or nothing"
}
