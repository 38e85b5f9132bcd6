package config

import "time"

// maxBudget bounds byte budgets.
const maxBudget = 1 << 44

func (p *Publish) settings() []Setting {
	return []Setting{
		{Key: "ack_on_commit", Env: "FELIX_ACK_ON_COMMIT", Default: "false", value: boolValue{&p.AckOnCommit},
			Help: "Acknowledge publishes to in-memory streams once applied instead of once accepted. Durable streams always acknowledge after the commit."},
		{Key: "publish_queue_wait_timeout_ms", Env: "FELIX_PUBLISH_QUEUE_WAIT_MS", Default: "2000", value: durationValue{p: &p.QueueWait, unit: time.Millisecond, min: time.Millisecond, max: maxWait},
			Help: "How long a publish acknowledged on commit waits for room, in bytes and slots together, before it is refused as overloaded."},
		{Key: "ack_wait_timeout_ms", Env: "FELIX_ACK_WAIT_TIMEOUT_MS", Default: "2000", value: durationValue{p: &p.AckWait, unit: time.Millisecond, min: time.Millisecond, max: maxWait},
			Help: "A publish not settled by then is answered with an unknown outcome."},
		{Key: "pub_workers_per_conn", Env: "FELIX_BROKER_PUB_WORKERS_PER_CONN", Default: "4", value: countValue{&p.Workers, 1, 1024},
			Help: "Executors that run queued batches, for the whole process; the name is history."},
		{Key: "pub_queue_depth", Env: "FELIX_BROKER_PUB_QUEUE_DEPTH", Default: "512", value: countValue{&p.QueueDepth, 1, 1 << 20},
			Help: "Queue slots guaranteed to each tenant."},
		{Key: "pub_inflight_bytes", Env: "FELIX_BROKER_PUBLISH_INFLIGHT_BYTES", Default: "67108864", value: sizeValue{&p.InflightBytes, 64 * kib, maxBudget},
			Help: "Payload bytes of publishes in flight in the process."},
		{Key: "pub_conn_inflight_bytes", Env: "FELIX_BROKER_PUBLISH_CONN_INFLIGHT_BYTES", Default: "16777216", value: sizeValue{&p.ConnInflightBytes, 64 * kib, maxBudget},
			Help: "The same for one identity on one connection."},
		{Key: "pub_conn_total_inflight_bytes", Env: "FELIX_BROKER_PUBLISH_CONN_TOTAL_INFLIGHT_BYTES", Derived: "4 times pub_conn_inflight_bytes, but not above pub_inflight_bytes",
			value:  sizeValue{&p.ConnTotalInflightBytes, 64 * kib, maxBudget},
			derive: func(c *Config, _ int) { c.Publish.deriveConnTotal() },
			Help:   "The same for one connection with all its identities."},
		{Key: "publish_window", Env: "FELIX_BROKER_PUBLISH_WINDOW", Default: "256", value: countValue{&p.Window, 0, 65535},
			Help: "Acked publishes outstanding on one stream of a client that pipelines; the stream is not read further while they are. 0 grants no pipeline."},
		{Key: "pub_ingress_wait", Env: "FELIX_PUB_INGRESS_WAIT", Default: "false", value: boolValue{&p.IngressWait},
			Help: "Let unacknowledged publishes wait for room, which slows their publisher, instead of shedding them."},
		{Key: "stream_ring_records", Env: "FELIX_STREAM_RING_RECORDS", Default: "1024", value: countValue{&p.RingRecords, 1, 1 << 24},
			Help: "Newest records of an in-memory shard that a subscriber can still start from."},
		{Key: "stream_ring_bytes", Env: "FELIX_STREAM_RING_BYTES", Default: "67108864", value: sizeValue{&p.RingBytes, 64 * kib, maxBudget},
			Help: "Payload bytes of these records, per shard; whichever bound is reached first counts."},
	}
}

func (p *Publish) deriveConnTotal() {
	p.ConnTotalInflightBytes = min(4*p.ConnInflightBytes, p.InflightBytes)
}

func (t *Tenants) settings() []Setting {
	return []Setting{
		{Key: "tenant_publish_bytes_per_sec", Env: "FELIX_TENANT_PUBLISH_BYTES_PER_SEC", Default: "0", value: rateValue{&t.BytesPerSec},
			Help: "Payload bytes a tenant may publish per second on this broker; 0 is unlimited."},
		{Key: "tenant_publish_msgs_per_sec", Env: "FELIX_TENANT_PUBLISH_MSGS_PER_SEC", Default: "0", value: rateValue{&t.MsgsPerSec},
			Help: "Records a tenant may publish per second on this broker; 0 is unlimited."},
		{Key: "tenant_publish_burst_ms", Env: "FELIX_TENANT_PUBLISH_BURST_MS", Default: "1000", value: durationValue{p: &t.Burst, unit: time.Millisecond, min: time.Millisecond, max: time.Hour},
			Help: "How much of its quota a tenant may save up, as time at the full rate."},
		{Key: "tenant_publish_quotas", Env: "FELIX_TENANT_PUBLISH_QUOTAS", value: quotasValue{&t.Quotas},
			Help: "Quotas of single tenants in place of the two defaults: acme:1048576:1000,free:65536:0."},
		{Key: "tenant_metrics_max", Env: "FELIX_TENANT_METRICS_MAX", Default: "100", value: countValue{&t.MetricsMax, 0, 10000},
			Help: "Tenants with metrics of their own; the others share the tenant _overflow."},
	}
}
