// Package telemetry is what a process tells its operators: logs and metrics.
package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics holds every metric of a broker, one struct per room, with the
// children of labelled series resolved in advance: recording is an atomic add.
type Metrics struct {
	Connections *ConnectionMetrics
	Publish     *PublishMetrics
	Subscribe   *SubscribeMetrics
	Cache       *CacheMetrics
	Tenants     *Tenants
	Process     *ProcessMetrics
	QUIC        *QUICStats
	Core        *CoreStats

	registry *prometheus.Registry
}

// Options are the parameters of [New].
type Options struct {
	// TenantMax bounds the tenants with series of their own.
	TenantMax int
	// Version is the value of felix_build_info.
	Version string
}

// ConnectionMetrics counts connections and sessions.
type ConnectionMetrics struct {
	Accepted          prometheus.Counter
	Open              prometheus.Gauge
	RefusedLimit      prometheus.Counter
	RefusedPerIP      prometheus.Counter
	HandshakeFailures prometheus.Counter
	AuthTimeouts      prometheus.Counter
}

// PublishMetrics counts publishes.
type PublishMetrics struct {
	Accepted, OK, Dropped, Error prometheus.Counter
	Bytes                        prometheus.Counter
	Latency                      *Latency
}

// SubscribeMetrics counts subscriptions.
type SubscribeMetrics struct{}

// CacheMetrics counts cache requests.
type CacheMetrics struct{}

// Tenants hands out tenant-labelled metrics.
type Tenants struct{}

// ProcessMetrics tells readiness and drain.
type ProcessMetrics struct{ Ready prometheus.Gauge }

// QUICStats aggregates open connections.
type QUICStats struct{}

// CoreStats reads the broker core at a scrape.
type CoreStats struct{}

// Latency is a lock-free histogram.
type Latency struct{}

// Observe records d.
func (l *Latency) Observe(d time.Duration) {}

// New builds all metrics on a registry of their own.
func New(o Options) *Metrics { return &Metrics{registry: prometheus.NewRegistry()} }

// Registry is where the metrics are gathered from.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }
