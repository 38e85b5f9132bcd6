package controlplane

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/felixlog/felix/controlplane/auth"
	"github.com/felixlog/felix/controlplane/model"
)

// metrics are those of one instance (control plane 22). It is the observer of
// api, auth and planner.
type metrics struct {
	registry *prometheus.Registry

	ready, inflight prometheus.Gauge
	drainDuration   prometheus.Gauge
	drainForced     *prometheus.CounterVec

	nodes              *prometheus.GaugeVec
	streams, caches    prometheus.Gauge
	nodeTransitions    *prometheus.CounterVec
	nodeRegistrations  *prometheus.CounterVec
	nodeExpiry         prometheus.Counter
	nodeExpiryFailures prometheus.Counter
	nodeChanges        *prometheus.CounterVec
	streamChanges      *prometheus.CounterVec
	cacheChanges       *prometheus.CounterVec
	assignmentChanges  *prometheus.CounterVec
	replicaRejected    *prometheus.CounterVec
	placed             prometheus.Counter
	unplaceable        prometheus.Gauge
	movesWaiting       prometheus.Gauge
	underReplicated    prometheus.Gauge
	reconcileFailures  prometheus.Counter
	moveSteps          *prometheus.CounterVec
	movesTimedOut      prometheus.Counter
	writeConflicts     prometheus.Counter
	writesFenced       prometheus.Counter
	leaseHeld          prometheus.Gauge
	leaseTakeovers     prometheus.Counter
	moveDuration       prometheus.Histogram
	moveFence          prometheus.Histogram
	authRejected       *prometheus.CounterVec
	refreshIssued      *prometheus.CounterVec
	refreshReplays     prometheus.Counter
	refreshBadSecret   prometheus.Counter
	refreshRevoked     prometheus.Counter
	delegated          prometheus.Counter
	bootstrap          *prometheus.CounterVec
}

// A registrar makes metrics of a registry.
type registrar struct{ *prometheus.Registry }

func (r registrar) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	r.MustRegister(c)
	return c
}

func (r registrar) counters(name, help string, labels ...string) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	r.MustRegister(c)
	return c
}

func (r registrar) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	r.MustRegister(g)
	return g
}

func (r registrar) seconds(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	r.MustRegister(h)
	return h
}

func newMetrics() *metrics {
	r := registrar{prometheus.NewRegistry()}
	nodes := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "felix_node_count", Help: "Brokers in the catalogue.",
	}, []string{"lifecycle", "region"})
	r.MustRegister(nodes)
	return &metrics{
		registry:      r.Registry,
		ready:         r.gauge("felix_ready_state", "1 while this instance should get requests."),
		inflight:      r.gauge("felix_inflight_requests", "Requests being served, those that wait included."),
		drainDuration: r.gauge("felix_drain_duration_ms", "How long work in flight took to end at the shutdown."),
		drainForced:   r.counters("felix_drain_forced_total", "Parts of the instance that were cut off at the shutdown.", "subsystem"),

		nodes:              nodes,
		streams:            r.gauge("felix_streams_total", "Streams in the catalogue."),
		caches:             r.gauge("felix_caches_total", "Caches in the catalogue."),
		nodeTransitions:    r.counters("felix_node_transitions_total", "Changes of a broker's lifecycle by this instance.", "from", "to"),
		nodeRegistrations:  r.counters("felix_node_registrations_total", "Registrations of brokers.", "outcome"),
		nodeExpiry:         r.counter("felix_node_expiry_total", "Brokers taken for down by this instance."),
		nodeExpiryFailures: r.counter("felix_node_expiry_failures_total", "Sweeps that failed."),
		nodeChanges:        r.counters("felix_node_changes_total", "Changes of the node feed by this instance.", "op"),
		streamChanges:      r.counters("felix_stream_changes_total", "Streams created, updated and deleted by requests of their own.", "op"),
		cacheChanges:       r.counters("felix_cache_changes_total", "Caches created, updated and deleted by requests of their own.", "op"),
		assignmentChanges:  r.counters("felix_shard_assignment_changes_total", "Assignments written by this instance.", "op"),
		replicaRejected:    r.counters("felix_replica_status_rejected_total", "Reports of leaders that were refused.", "reason"),
		placed:             r.counter("felix_shards_placed_total", "Shards given a leader."),
		unplaceable:        r.gauge("felix_shards_unplaceable", "Shards that the last pass could not place."),
		movesWaiting:       r.gauge("felix_shard_moves_waiting", "Moves that the last pass could not start."),
		underReplicated:    r.gauge("felix_shards_under_replicated", "Shards short of copies in the last pass."),
		reconcileFailures:  r.counter("felix_shard_reconcile_failures_total", "Placement passes and writes that failed."),
		moveSteps:          r.counters("felix_shard_move_steps_total", "Steps of moves written by this instance.", "step"),
		movesTimedOut:      r.counter("felix_shard_moves_timed_out_total", "Moves given up because the copy took too long."),
		writeConflicts:     r.counter("felix_shard_assignment_write_conflicts_total", "Assignments that another wrote first."),
		writesFenced:       r.counter("felix_placement_writes_fenced_total", "Passes ended because another instance planned."),
		leaseHeld:          r.gauge("felix_placement_lease_held", "1 while this instance runs the timed passes."),
		leaseTakeovers:     r.counter("felix_placement_lease_takeovers_total", "Times this instance took the timed passes over."),
		moveDuration:       r.seconds("felix_shard_move_duration_seconds", "From the start of a move to its cut-over.", prometheus.ExponentialBuckets(0.5, 2, 13)),
		moveFence:          r.seconds("felix_shard_move_fence_seconds", "From the fence of a move to its cut-over: how long writes wait.", prometheus.ExponentialBuckets(0.01, 2, 13)),
		authRejected:       r.counters("felix_controlplane_auth_rejected_total", "Requests refused for who asked.", "reason"),
		refreshIssued:      r.counters("felix_refresh_tokens_issued_total", "Refresh tokens given out.", "via"),
		refreshReplays:     r.counter("felix_refresh_token_replays_total", "Refresh tokens presented a second time."),
		refreshBadSecret:   r.counter("felix_refresh_token_bad_secret_total", "Refresh tokens presented with a wrong secret."),
		refreshRevoked:     r.counter("felix_refresh_tokens_revoked_total", "Refresh tokens revoked."),
		delegated:          r.counter("felix_delegated_tokens_issued_total", "Tokens given to gateways that act for users."),
		bootstrap:          r.counters("felix_bootstrap_attempts_total", "Attempts to initialise a tenant.", "outcome", "reason"),
	}
}

// What the API tells.

func (m *metrics) RequestBegan()             { m.inflight.Inc() }
func (m *metrics) RequestEnded()             { m.inflight.Dec() }
func (m *metrics) Forbidden()                { m.authRejected.WithLabelValues(string(auth.ReasonForbidden)).Inc() }
func (m *metrics) StreamChanged(op model.Op) { m.streamChanges.WithLabelValues(string(op)).Inc() }
func (m *metrics) CacheChanged(op model.Op)  { m.cacheChanges.WithLabelValues(string(op)).Inc() }
func (m *metrics) NodeChanged(op model.Op)   { m.nodeChanges.WithLabelValues(string(op)).Inc() }
func (m *metrics) NodeRegistered(outcome string) {
	m.nodeRegistrations.WithLabelValues(outcome).Inc()
}
func (m *metrics) NodeTransitioned(from, to model.Lifecycle) { m.NodeTransition(from, to) }
func (m *metrics) ReportRejected(outcome model.ReportOutcome) {
	m.replicaRejected.WithLabelValues(string(outcome)).Inc()
}

// What the planner tells.

func (m *metrics) ShardsPlaced(n int)            { m.placed.Add(float64(n)) }
func (m *metrics) ShardsUnplaceable(n int)       { m.unplaceable.Set(float64(n)) }
func (m *metrics) ShardMovesWaiting(n int)       { m.movesWaiting.Set(float64(n)) }
func (m *metrics) ShardsUnderReplicated(n int)   { m.underReplicated.Set(float64(n)) }
func (m *metrics) ShardReconcileFailure()        { m.reconcileFailures.Inc() }
func (m *metrics) ShardMoveStep(step string)     { m.moveSteps.WithLabelValues(step).Inc() }
func (m *metrics) ShardMoveTimedOut()            { m.movesTimedOut.Inc() }
func (m *metrics) ShardAssignmentWriteConflict() { m.writeConflicts.Inc() }
func (m *metrics) PlacementWriteFenced()         { m.writesFenced.Inc() }
func (m *metrics) PlacementLeaseTakeover()       { m.leaseTakeovers.Inc() }
func (m *metrics) NodeExpiry(n int)              { m.nodeExpiry.Add(float64(n)) }
func (m *metrics) NodeExpiryFailure()            { m.nodeExpiryFailures.Inc() }
func (m *metrics) ShardMoveDuration(d time.Duration) {
	m.moveDuration.Observe(d.Seconds())
}
func (m *metrics) ShardMoveFence(d time.Duration) { m.moveFence.Observe(d.Seconds()) }
func (m *metrics) ShardAssignmentChange(op model.Op) {
	m.assignmentChanges.WithLabelValues(string(op)).Inc()
}
func (m *metrics) PlacementLeaseHeld(held bool) { m.leaseHeld.Set(asNumber(held)) }
func (m *metrics) NodeTransition(from, to model.Lifecycle) {
	m.nodeTransitions.WithLabelValues(string(from), string(to)).Inc()
}

// auth is what auth tells.
func (m *metrics) auth() auth.Observer {
	return auth.Observer{
		AuthRejected:     func(r auth.Reason) { m.authRejected.WithLabelValues(string(r)).Inc() },
		RefreshIssued:    func(via string) { m.refreshIssued.WithLabelValues(via).Inc() },
		RefreshReplayed:  m.refreshReplays.Inc,
		RefreshBadSecret: m.refreshBadSecret.Inc,
		RefreshRevoked:   func(n int) { m.refreshRevoked.Add(float64(n)) },
		Delegated:        m.delegated.Inc,
		Bootstrap:        func(outcome, reason string) { m.bootstrap.WithLabelValues(outcome, reason).Inc() },
	}
}

func asNumber(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
