package controlplane

import (
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/model"
)

// Settings that do not fit fail the start, by their names.
func TestOptionsAreChecked(t *testing.T) {
	st := memoryStore(t)
	for name, change := range map[string]func(*Options){
		"store":           func(o *Options) { o.Store = nil },
		"check of names":  func(o *Options) { o.ValidateName = nil },
		"FELIX_REGION_ID": func(o *Options) { o.RegionID = " " },
		"FELIX_CONTROLPLANE_OIDC_ALLOWED_ALGORITHMS": func(o *Options) { o.OIDCAllowedAlgorithms = nil },
		"FELIX_CONTROLPLANE_TLS_KEY":                 func(o *Options) { o.TLSCert = "x" },
		"FELIX_NODE_EXPIRY_TIMEOUT_MS":               func(o *Options) { o.NodeExpiryTimeout = o.NodeHeartbeatInterval },
		"FELIX_NODE_REGRANT_MARGIN_MS":               func(o *Options) { o.NodeRegrantMargin = time.Second },
		"FELIX_SHARD_RECONCILE_INTERVAL_MS":          func(o *Options) { o.ShardReconcileInterval = 0 },
		"FELIX_SHUTDOWN_PREDRAIN_MS":                 func(o *Options) { o.ShutdownPredrain = -1 },
		"FELIX_REGION_BRIDGES":                       func(o *Options) { o.RegionBridges = []model.Bridge{{Source: "a", Destination: "a"}} },
		"FELIX_BOOTSTRAP_TOKEN:":                     func(o *Options) { o.Bootstrap.Enabled = true },
		"FELIX_BOOTSTRAP_TOKEN_PREVIOUS":             func(o *Options) { o.Bootstrap.TokenPrevious = "x" },
		"FELIX_BOOTSTRAP_TLS_CLIENT_CA": func(o *Options) {
			o.Bootstrap.Enabled, o.Bootstrap.Token, o.Bootstrap.TLSCert = true, "x", "y"
		},
		"loopback": func(o *Options) {
			o.Bootstrap.Enabled, o.Bootstrap.Token, o.Bootstrap.DevTokens, o.Bootstrap.BindAddr = true, "x", true, "0.0.0.0:0"
		},
		"FELIX_BOOTSTRAP_ENABLED":      func(o *Options) { o.Bootstrap.DevTokens = true },
		"listen for the API":           func(o *Options) { o.BindAddr = "127.0.0.1:99999" },
		"nowhere.pem does not exist":   func(o *Options) { o.TLSCert, o.TLSKey = "nowhere.pem", "nowhere.pem" },
		"limit of shard moves":         func(o *Options) { o.ShardMovesMaxConcurrent = -1 },
		"rate of token requests":       func(o *Options) { o.TokenBurst = 0 },
		"FELIX_EXCHANGE_TOKEN_TTL":     func(o *Options) { o.ExchangeTokenTTL = 0 },
		"FELIX_READINESS_TIMEOUT_MS":   func(o *Options) { o.ReadinessTimeout = 0 },
		"FELIX_NODE_HEARTBEAT_INTERVA": func(o *Options) { o.NodeHeartbeatInterval = 0 },
	} {
		o := quick(st)
		change(&o)
		s, err := Start(t.Context(), o)
		if err == nil {
			t.Errorf("%s: started", name)
			_ = s.Shutdown(t.Context())
		} else if !strings.Contains(err.Error(), name) {
			t.Errorf("%s: the error does not name it: %v", name, err)
		}
	}
}

// A start that fails leaves no address bound.
func TestFailedStartFreesAddresses(t *testing.T) {
	st := memoryStore(t)
	first := start(t, quick(st))
	o := quick(st)
	o.BindAddr = first.Addr() // taken
	if _, err := Start(t.Context(), o); err == nil || !strings.Contains(err.Error(), first.Addr()) {
		t.Fatalf("%v", err)
	}
}

// One function makes every metric of control plane 22, with these labels.
func TestMetricNames(t *testing.T) {
	m := newMetrics()
	ch := make(chan string, 1000)
	for _, name := range strings.Fields(`felix_node_count felix_node_transitions_total felix_node_registrations_total felix_node_expiry_total
		felix_node_expiry_failures_total felix_node_changes_total felix_streams_total felix_caches_total felix_stream_changes_total
		felix_cache_changes_total felix_shard_assignment_changes_total felix_shards_placed_total felix_shards_unplaceable
		felix_shard_moves_waiting felix_shard_reconcile_failures_total felix_shard_move_steps_total felix_shard_moves_timed_out_total
		felix_shard_assignment_write_conflicts_total felix_placement_writes_fenced_total felix_placement_lease_held
		felix_placement_lease_takeovers_total felix_shard_move_duration_seconds felix_shard_move_fence_seconds
		felix_replica_status_rejected_total felix_controlplane_auth_rejected_total felix_refresh_tokens_issued_total
		felix_refresh_token_replays_total felix_refresh_token_bad_secret_total felix_refresh_tokens_revoked_total
		felix_delegated_tokens_issued_total felix_bootstrap_attempts_total felix_ready_state felix_inflight_requests
		felix_drain_duration_ms felix_drain_forced_total`) {
		ch <- name
	}
	close(ch)
	// A vector without children shows nothing, so each is given one.
	m.NodeTransition("a", "b")
	m.NodeRegistered("new")
	m.NodeChanged(model.Created)
	m.StreamChanged(model.Created)
	m.CacheChanged(model.Created)
	m.ShardAssignmentChange(model.Assigned)
	m.ShardMoveStep("stage")
	m.ReportRejected(model.ReportStale)
	m.Forbidden()
	o := m.auth()
	o.RefreshIssued("exchange")
	o.Bootstrap("initialized", "ok")
	m.drainForced.WithLabelValues("api").Inc()
	m.nodes.WithLabelValues("live", "eu").Set(1)
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, f := range families {
		there[f.GetName()] = true
		if f.GetHelp() == "" {
			t.Errorf("%s has no help", f.GetName())
		}
	}
	for name := range ch {
		if !there[name] {
			t.Errorf("there is no %s", name)
		}
	}
}
