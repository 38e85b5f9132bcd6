package telemetry

import (
	"sync"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"
)

// overflowTenant is the label of all tenants beyond the bound.
const overflowTenant = "_overflow"

// Tenants hands out the tenant-labelled metrics. The first tenants up to the
// bound have series of their own, for as long as they are not forgotten; the
// others share the tenant _overflow, so that the number of series stays fixed
// whatever the number of tenants.
type Tenants struct {
	max       int
	messages  *prometheus.CounterVec
	bytes     *prometheus.CounterVec
	overflows prometheus.Counter

	mu       sync.RWMutex
	own      map[string]*TenantMetrics
	overflow *TenantMetrics
}

// TenantMetrics records for one tenant. Keep the pointer: recording through it
// is an atomic addition per counter.
type TenantMetrics struct {
	label    string
	messages prometheus.Counter
	bytes    prometheus.Counter
	overflow prometheus.Counter // nil for a tenant with series of its own
}

func newTenants(b *builder, most int) *Tenants {
	t := &Tenants{
		max:       most,
		messages:  b.counters("felix_tenant_delivered_messages_total", "Events handed to subscribers' streams, replay included.", "tenant"),
		bytes:     b.counters("felix_tenant_delivered_bytes_total", "Payload bytes of these events.", "tenant"),
		overflows: b.counter("felix_tenant_metrics_overflow_total", "Recordings, and readings at a scrape, that went to the tenant _overflow."),
		own:       make(map[string]*TenantMetrics),
	}
	t.overflow = t.build(overflowTenant)
	t.overflow.overflow = t.overflows
	return t
}

func (t *Tenants) build(label string) *TenantMetrics {
	return &TenantMetrics{label: label, messages: t.messages.WithLabelValues(label), bytes: t.bytes.WithLabelValues(label)}
}

// For returns the metrics of tenant: its own, or those of all tenants beyond
// the bound.
func (t *Tenants) For(tenant string) *TenantMetrics {
	t.mu.RLock()
	m := t.own[tenant]
	full := len(t.own) >= t.max
	t.mu.RUnlock()
	if m != nil {
		return m
	}
	if full || tenant == overflowTenant || !utf8.ValidString(tenant) {
		return t.overflow
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.own[tenant]; m != nil {
		return m
	}
	if len(t.own) >= t.max {
		return t.overflow
	}
	m = t.build(tenant)
	t.own[tenant] = m
	return m
}

// Forget drops the series of a tenant that is gone and makes room for another.
// Its [TenantMetrics] may still be recorded to; nobody sees it.
func (t *Tenants) Forget(tenant string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if m := t.own[tenant]; m != nil {
		delete(t.own, tenant)
		t.messages.DeleteLabelValues(m.label)
		t.bytes.DeleteLabelValues(m.label)
	}
}

// Delivered records events handed to a subscriber's stream and their payload
// bytes.
func (m *TenantMetrics) Delivered(messages, bytes int) {
	m.messages.Add(float64(messages))
	m.bytes.Add(float64(bytes))
	if m.overflow != nil {
		m.overflow.Inc()
	}
}
