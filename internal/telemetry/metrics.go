package telemetry

import (
	"runtime"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// Metrics holds every metric of a broker, one struct per room.
type Metrics struct {
	Connections *ConnectionMetrics
	Publish     *PublishMetrics
	Subscribe   *SubscribeMetrics
	Cache       *CacheMetrics
	Groups      *GroupMetrics
	Tenants     *Tenants
	Process     *ProcessMetrics
	QUIC        *QUIC

	core     *coreCollector
	registry *prometheus.Registry
	defs     []Definition
}

// Options are the parameters of [New].
type Options struct {
	// TenantMax bounds the tenants with series of their own; 0 gives none.
	TenantMax int
	// Version is a label of felix_build_info.
	Version string
}

// New builds all metrics on a registry of their own, beside those of the Go
// runtime and the process.
func New(o Options) *Metrics {
	b := &builder{registry: prometheus.NewRegistry()}
	b.registry.MustRegister(
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	m := &Metrics{
		Connections: newConnectionMetrics(b),
		Publish:     newPublishMetrics(b),
		Subscribe:   newSubscribeMetrics(b),
		Cache:       newCacheMetrics(b),
		Groups:      newGroupMetrics(b),
		Tenants:     newTenants(b, o.TenantMax),
		Process:     newProcessMetrics(b, o.Version),
		QUIC:        newQUIC(b),
		registry:    b.registry,
	}
	m.core = newCoreCollector(b, m.Tenants)
	m.defs = b.defs
	slices.SortFunc(m.defs, func(a, b Definition) int { return strings.Compare(a.Name, b.Name) })
	return m
}

// Registry is where the metrics are gathered from.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Definitions lists the metrics of this package by name.
func (m *Metrics) Definitions() []Definition { return slices.Clone(m.defs) }

// ConnectionMetrics counts client connections and how they authenticate.
type ConnectionMetrics struct {
	Accepted          prometheus.Counter
	Open              prometheus.Gauge
	RefusedLimit      prometheus.Counter // at the cap of all connections
	RefusedPerIP      prometheus.Counter // at the cap of one address
	HandshakeFailures prometheus.Counter
	AuthTimeouts      prometheus.Counter // nothing authenticated in time
	Authenticated     prometheus.Counter // streams

	authRefused *prometheus.CounterVec
}

func newConnectionMetrics(b *builder) *ConnectionMetrics {
	refused := b.counters("felix_quic_connections_refused_total", "Connections refused before their handshake: limit (all connections) or per_ip_limit.", "reason")
	return &ConnectionMetrics{
		Accepted:          b.counter("felix_quic_connections_accepted_total", "Client connections accepted."),
		Open:              b.gauge("felix_quic_connections_open", "Client connections open now."),
		RefusedLimit:      refused.WithLabelValues("limit"),
		RefusedPerIP:      refused.WithLabelValues("per_ip_limit"),
		HandshakeFailures: b.counter("felix_quic_handshake_failures_total", "Handshakes that failed."),
		AuthTimeouts:      b.counter("felix_quic_auth_timeout_total", "Connections closed because no stream authenticated in time."),
		Authenticated:     b.counter("felix_auth_accepted_total", "Streams that authenticated."),
		authRefused:       b.counters("felix_auth_refused_total", "Streams whose token was refused, by reason.", "reason"),
	}
}

// AuthRefused counts a refused token. The reason is one of a fixed few, never
// text from a peer.
func (c *ConnectionMetrics) AuthRefused(reason string) { c.authRefused.WithLabelValues(reason).Inc() }

// PublishMetrics counts publish requests; a batch is one request.
type PublishMetrics struct {
	Accepted  prometheus.Counter // acknowledged or taken on acceptance
	OK        prometheus.Counter // acknowledged after the commit
	Dropped   prometheus.Counter // unacknowledged, shed
	Error     prometheus.Counter // refused or failed
	Bytes     prometheus.Counter // payload bytes of Accepted and OK
	JSON      prometheus.Counter // publishes in the JSON encoding
	JSONBatch prometheus.Counter // batches in the JSON encoding
	Latency   *Latency           // acked publishes: from the whole frame read to the answer ready
}

func newPublishMetrics(b *builder) *PublishMetrics {
	requests := b.counters("felix_publish_requests_total", "Publish requests, a batch counting one: accepted (on acceptance), ok (after the commit), dropped (unacknowledged, shed), error (refused or failed).", "result")
	frames := b.counters("felix_broker_json_publishes_total", "Publishes still in the JSON encoding: publish or publish_batch.", "frame")
	return &PublishMetrics{
		Accepted:  requests.WithLabelValues("accepted"),
		OK:        requests.WithLabelValues("ok"),
		Dropped:   requests.WithLabelValues("dropped"),
		Error:     requests.WithLabelValues("error"),
		Bytes:     b.counter("felix_publish_bytes_total", "Payload bytes of accepted and ok publishes."),
		JSON:      frames.WithLabelValues("publish"),
		JSONBatch: frames.WithLabelValues("publish_batch"),
		Latency:   b.latency("felix_publish_latency_seconds", "Acknowledged publishes: from the whole frame read to the answer ready to write."),
	}
}

// SubscribeMetrics counts what happens between a subscriber's queue and its
// stream.
type SubscribeMetrics struct {
	ActiveConnections prometheus.Gauge   // connections with a subscription
	Disconnects       prometheus.Counter // event streams whose write failed
	Latency           *Latency           // from a batch appended to its frame written
}

func newSubscribeMetrics(b *builder) *SubscribeMetrics {
	return &SubscribeMetrics{
		ActiveConnections: b.gauge("felix_sub_active_connections", "Connections with at least one subscription."),
		Disconnects:       b.counter("felix_subscriber_disconnect_total", "Event streams that ended because a write failed."),
		Latency:           b.latency("felix_delivery_latency_seconds", "Live events: from the batch appended to its frame written to the subscriber's stream."),
	}
}

// CacheMetrics counts what the cache itself does not know.
type CacheMetrics struct {
	Errors  prometheus.Counter // requests refused or failed
	Latency *Latency           // from the whole frame read to the answer ready
}

func newCacheMetrics(b *builder) *CacheMetrics {
	return &CacheMetrics{
		Errors:  b.counter("felix_cache_errors_total", "Cache requests refused or failed."),
		Latency: b.latency("felix_cache_latency_seconds", "Cache requests: from the whole frame read to the answer ready to write."),
	}
}

// ProcessMetrics tell whether the broker serves and how it stopped.
type ProcessMetrics struct {
	Ready         prometheus.Gauge // 1 serving, 0 starting or draining
	DrainDuration prometheus.Gauge // milliseconds of the last drain

	drainForced *prometheus.CounterVec
}

func newProcessMetrics(b *builder, version string) *ProcessMetrics {
	const info = "felix_build_info"
	help := "Always 1; the labels say what is running."
	b.define(info, "gauge", help, []string{"version", "goversion"})
	b.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: info, Help: help, ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	}, func() float64 { return 1 }))
	return &ProcessMetrics{
		Ready:         b.gauge("felix_ready_state", "1 while /ready answers 200, 0 while starting or draining."),
		DrainDuration: b.gauge("felix_drain_duration_ms", "Milliseconds that the last drain took."),
		drainForced:   b.counters("felix_drain_forced_total", "Subsystems cut off by the drain deadline.", "subsystem"),
	}
}

// DrainForced counts a subsystem that the drain deadline cut off.
func (p *ProcessMetrics) DrainForced(subsystem string) {
	p.drainForced.WithLabelValues(subsystem).Inc()
}
