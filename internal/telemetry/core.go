package telemetry

import (
	"iter"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// A Snapshot is what the broker core counts by itself, read once a scrape.
type Snapshot struct {
	Tenants, Namespaces, Streams, Shards, Caches int

	InflightRequests int64 // requests being served

	PublishInflightBytes int64 // taken of the process's byte budget
	PublishQueued        int   // publishes in the queue
	PublishQueueCapacity int
	PublishWaiting       int    // publishes that want a place in it
	PublishInline        uint64 // ran on their caller's goroutine
	PublishExecuted      uint64 // ran on an executor
	PublishFailed        uint64 // acknowledged on acceptance, then not written
	ExecutorPanics       uint64

	Subscriptions      int64
	SubEnqueued        uint64 // batches into and out of subscriber queues
	SubDequeued        uint64
	SubDroppedBatches  uint64
	SubDroppedRecords  uint64
	SubDropOldEmulated uint64
	SubBlocked         uint64 // batches that waited for room
	SubEncodes         uint64 // frames encoded
	PooledBytes        int64

	CacheEntries, CacheBytes     int64
	CacheHits, CacheMisses       uint64
	CachePuts, CacheDeletes      uint64
	CacheEvictions, CacheExpired uint64
	TenantAccounts               iter.Seq2[string, TenantAccount] // nil for none

	Groups GroupSnapshot

	Cluster ClusterSnapshot

	Storage *StorageSnapshot // nil without storage
}

// A TenantAccount is what the core counts for one tenant.
type TenantAccount struct {
	Messages, Bytes                    uint64 // admitted
	QueueFullRefused, QueueFullDropped uint64
	ThrottledRefused, ThrottledDropped uint64
	ThrottledDelayed                   uint64
}

func (a *TenantAccount) add(other TenantAccount) {
	a.Messages += other.Messages
	a.Bytes += other.Bytes
	a.QueueFullRefused += other.QueueFullRefused
	a.QueueFullDropped += other.QueueFullDropped
	a.ThrottledRefused += other.ThrottledRefused
	a.ThrottledDropped += other.ThrottledDropped
	a.ThrottledDelayed += other.ThrottledDelayed
}

// ReadFrom sets the function that a scrape calls for the core's numbers. It
// may be called from several goroutines. Until it is set they are all 0.
func (m *Metrics) ReadFrom(snapshot func() Snapshot) { m.core.source.Store(&snapshot) }

// coreCollector turns a [Snapshot] into metrics.
type coreCollector struct {
	source  atomic.Pointer[func() Snapshot]
	tenants *Tenants
	series  []coreSeries
	storage *storageCollector

	messages, bytes, queueFull, throttled *prometheus.Desc
}

// A coreSeries is one number of a snapshot.
type coreSeries struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	labels []string
	read   func(*Snapshot) float64
}

func newCoreCollector(b *builder, tenants *Tenants) *coreCollector {
	c := &coreCollector{
		tenants:   tenants,
		messages:  b.desc("felix_tenant_published_messages_total", "counter", "Records admitted for publishing.", "tenant"),
		bytes:     b.desc("felix_tenant_published_bytes_total", "counter", "Payload bytes of these records.", "tenant"),
		queueFull: b.desc("felix_tenant_publish_queue_full_total", "counter", "Publishes without room in the queue or the byte budgets: refused or dropped.", "tenant", "action"),
		throttled: b.desc("felix_tenant_publish_throttled_total", "counter", "Publishes over the tenant's quota: refused, dropped or delayed.", "tenant", "action"),
	}
	for _, gauge := range slices.Concat(coreGauges, groupGauges, clusterGauges) {
		c.series = append(c.series, coreSeries{b.desc(gauge.name, "gauge", gauge.help), prometheus.GaugeValue, nil, gauge.read})
	}
	for _, counter := range slices.Concat(coreCounters, groupCounters, clusterCounters) {
		desc := b.desc(counter.name, "counter", counter.help)
		c.series = append(c.series, coreSeries{desc, prometheus.CounterValue, nil, counter.read})
	}
	dropped := b.desc("felix_broker_acked_publishes_dropped_total", "counter", "Publishes acknowledged on acceptance and then not written.", "reason")
	c.series = append(c.series, coreSeries{dropped, prometheus.CounterValue, []string{"failed"}, func(s *Snapshot) float64 { return float64(s.PublishFailed) }})
	requests := b.desc("felix_cache_requests_total", "counter", "Cache requests served: get with hit or miss, put and delete with ok.", "op", "result")
	for _, r := range []struct {
		op, result string
		read       func(*Snapshot) float64
	}{
		{"get", "hit", func(s *Snapshot) float64 { return float64(s.CacheHits) }},
		{"get", "miss", func(s *Snapshot) float64 { return float64(s.CacheMisses) }},
		{"put", "ok", func(s *Snapshot) float64 { return float64(s.CachePuts) }},
		{"delete", "ok", func(s *Snapshot) float64 { return float64(s.CacheDeletes) }},
	} {
		c.series = append(c.series, coreSeries{requests, prometheus.CounterValue, []string{r.op, r.result}, r.read})
	}
	c.storage = newStorageCollector(b)
	b.registry.MustRegister(c)
	return c
}

// Describe implements [prometheus.Collector].
func (c *coreCollector) Describe(out chan<- *prometheus.Desc) {
	for _, s := range c.series {
		out <- s.desc
	}
	for _, desc := range []*prometheus.Desc{c.messages, c.bytes, c.queueFull, c.throttled} {
		out <- desc
	}
	c.storage.describe(out)
}

// Collect implements [prometheus.Collector].
func (c *coreCollector) Collect(out chan<- prometheus.Metric) {
	var snapshot Snapshot
	if source := c.source.Load(); source != nil {
		snapshot = (*source)()
	}
	for _, s := range c.series {
		out <- prometheus.MustNewConstMetric(s.desc, s.kind, s.read(&snapshot), s.labels...)
	}
	if snapshot.TenantAccounts != nil {
		c.collectTenants(out, snapshot.TenantAccounts)
	}
	if snapshot.Storage != nil {
		c.storage.collect(out, snapshot.Storage)
	}
}

func (c *coreCollector) collectTenants(out chan<- prometheus.Metric, accounts iter.Seq2[string, TenantAccount]) {
	var overflow TenantAccount
	overflown := 0
	for tenant, account := range accounts {
		m := c.tenants.For(tenant)
		if m == c.tenants.overflow {
			overflow.add(account)
			overflown++
			continue
		}
		c.sendTenant(out, m.label, account)
	}
	if overflown > 0 {
		c.tenants.overflows.Add(float64(overflown))
		c.sendTenant(out, overflowTenant, overflow)
	}
}

func (c *coreCollector) sendTenant(out chan<- prometheus.Metric, tenant string, a TenantAccount) {
	send := func(desc *prometheus.Desc, value uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(value), labels...)
	}
	send(c.messages, a.Messages, tenant)
	send(c.bytes, a.Bytes, tenant)
	send(c.queueFull, a.QueueFullRefused, tenant, "refused")
	send(c.queueFull, a.QueueFullDropped, tenant, "dropped")
	send(c.throttled, a.ThrottledRefused, tenant, "refused")
	send(c.throttled, a.ThrottledDropped, tenant, "dropped")
	send(c.throttled, a.ThrottledDelayed, tenant, "delayed")
}
