package telemetry

// A coreNumber is one number of a [Snapshot] with its name.
type coreNumber struct {
	name, help string
	read       func(*Snapshot) float64
}

var coreGauges = []coreNumber{
	{"felix_broker_tenants", "Tenants known.", func(s *Snapshot) float64 { return float64(s.Tenants) }},
	{"felix_broker_namespaces", "Namespaces known.", func(s *Snapshot) float64 { return float64(s.Namespaces) }},
	{"felix_broker_streams", "Streams open.", func(s *Snapshot) float64 { return float64(s.Streams) }},
	{"felix_broker_shards", "Shards of these streams.", func(s *Snapshot) float64 { return float64(s.Shards) }},
	{"felix_broker_caches", "Caches open.", func(s *Snapshot) float64 { return float64(s.Caches) }},
	{"felix_inflight_requests", "Requests being served.", func(s *Snapshot) float64 { return float64(s.InflightRequests) }},
	{"felix_broker_publish_inflight_bytes", "Payload bytes taken of the process's publish budget.", func(s *Snapshot) float64 { return float64(s.PublishInflightBytes) }},
	{"felix_broker_ingress_queue_depth", "Publishes in the queue: the first thing to look at.", func(s *Snapshot) float64 { return float64(s.PublishQueued) }},
	{"felix_broker_ingress_queue_capacity", "Publishes the queue holds when full.", func(s *Snapshot) float64 { return float64(s.PublishQueueCapacity) }},
	{"felix_broker_ingress_waiting", "Publishes that wait for a place in the queue.", func(s *Snapshot) float64 { return float64(s.PublishWaiting) }},
	{"felix_sub_connection_subscribers", "Subscriptions open.", func(s *Snapshot) float64 { return float64(s.Subscriptions) }},
	{"felix_sub_queue_len", "Batches in the queues of all subscribers.", func(s *Snapshot) float64 { return float64(s.SubEnqueued - min(s.SubDequeued, s.SubEnqueued)) }},
	{"felix_broker_pooled_bytes", "Bytes idle in buffers kept for reuse.", func(s *Snapshot) float64 { return float64(s.PooledBytes) }},
	{"felix_cache_entries", "Entries in all caches, expired ones not yet removed included.", func(s *Snapshot) float64 { return float64(s.CacheEntries) }},
	{"felix_cache_bytes", "Bytes of these entries.", func(s *Snapshot) float64 { return float64(s.CacheBytes) }},
}

var coreCounters = []coreNumber{
	{"felix_broker_publishes_inline_total", "Publishes that ran at once on the goroutine that read them.", func(s *Snapshot) float64 { return float64(s.PublishInline) }},
	{"felix_broker_publishes_queued_total", "Publishes that ran from the queue on an executor.", func(s *Snapshot) float64 { return float64(s.PublishExecuted) }},
	{"felix_broker_publish_worker_restarts_total", "Panics that an executor survived.", func(s *Snapshot) float64 { return float64(s.ExecutorPanics) }},
	{"felix_sub_queue_enqueued_total", "Batches put into subscriber queues.", func(s *Snapshot) float64 { return float64(s.SubEnqueued) }},
	{"felix_sub_queue_dequeued_total", "Batches taken out of subscriber queues.", func(s *Snapshot) float64 { return float64(s.SubDequeued) }},
	{"felix_sub_shared_batch_handles_total", "Shared batches handed to subscribers, one each.", func(s *Snapshot) float64 { return float64(s.SubEnqueued) }},
	{"felix_sub_queue_dropped_total", "Batches dropped on the way to a subscriber.", func(s *Snapshot) float64 { return float64(s.SubDroppedBatches) }},
	{"felix_subscribe_dropped_total", "Events dropped at a full subscriber queue.", func(s *Snapshot) float64 { return float64(s.SubDroppedRecords) }},
	{"felix_sub_queue_drop_old_emulated_total", "Batches dropped under drop_old, which acts as drop_new.", func(s *Snapshot) float64 { return float64(s.SubDropOldEmulated) }},
	{"felix_sub_queue_blocked_total", "Batches whose publisher waited for room under block.", func(s *Snapshot) float64 { return float64(s.SubBlocked) }},
	{"felix_sub_frames_encoded_total", "Event frames encoded; each serves every subscriber of its shape.", func(s *Snapshot) float64 { return float64(s.SubEncodes) }},
	{"felix_cache_evictions_total", "Live entries removed to make room.", func(s *Snapshot) float64 { return float64(s.CacheEvictions) }},
	{"felix_cache_expired_total", "Entries removed after their deadline.", func(s *Snapshot) float64 { return float64(s.CacheExpired) }},
}
