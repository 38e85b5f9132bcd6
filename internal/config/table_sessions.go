package config

import "time"

func (s *Sessions) settings() []Setting {
	return []Setting{
		{Key: "max_frame_bytes", Env: "FELIX_MAX_FRAME_BYTES", Default: "16777216", value: sizeValue{&s.MaxFrameBytes, 4 * kib, gib},
			Help: "Largest payload of one frame. Memory grows as bytes arrive, never by a header's word."},
		{Key: "preauth_max_frame_bytes", Env: "FELIX_PREAUTH_MAX_FRAME_BYTES", Derived: "65536, but not above max_frame_bytes",
			value:  sizeValue{&s.PreauthMaxFrameBytes, kib, gib},
			derive: func(c *Config, _ int) { c.Sessions.PreauthMaxFrameBytes = min(64*kib, c.Sessions.MaxFrameBytes) },
			Help:   "Largest payload of a frame on a stream that has not authenticated."},
		{Key: "preauth_max_streams_per_conn", Env: "FELIX_PREAUTH_MAX_STREAMS_PER_CONN", Default: "16", value: countValue{&s.PreauthMaxStreamsPerConn, 1, 1024},
			Help: "Streams of one connection that are read before they have authenticated; others wait."},
		{Key: "auth_timeout_ms", Env: "FELIX_AUTH_TIMEOUT_MS", Default: "10000", value: durationValue{p: &s.AuthTimeout, unit: time.Millisecond, min: time.Millisecond, max: maxWait, off: true},
			Help: "A connection on which no stream has authenticated by then is closed."},
		{Key: "auth_enforce_expiry", Env: "FELIX_AUTH_ENFORCE_EXPIRY", Default: "true", value: boolValue{&s.EnforceExpiry},
			Help: "End a stream's rights 60 s after its token expired: requests and subscriptions then fail with unauthenticated. When false a stream keeps the rights it was opened with."},
		{Key: "control_stream_drain_timeout_ms", Env: "FELIX_CONTROL_STREAM_DRAIN_TIMEOUT_MS", Default: "50", value: durationValue{p: &s.ControlStreamDrain, unit: time.Millisecond, min: time.Millisecond, max: maxWait},
			Help: "How long a control stream that ends may still write the answers it owes."},
	}
}

func (c *Catalog) settings() []Setting {
	return []Setting{
		{Key: "catalog", Env: "FELIX_CATALOG", value: textValue{&c.File, "a path, or nothing"},
			Help: "YAML file of tenants with their keys, namespaces, streams and caches; changes are picked up while running."},
		{Key: "auto_create", Env: "FELIX_AUTO_CREATE", Default: "false", value: boolValue{&c.AutoCreate},
			Help: "Create streams and caches of known namespaces on first use: durable ones with durable_storage_dir, else in memory. For development."},
		{Key: "auto_create_limit", Env: "FELIX_AUTO_CREATE_LIMIT", Default: "1024", value: countValue{&c.AutoCreateLimit, 1, 1 << 20},
			Help: "Streams and caches that may be created on first use, all tenants together."},
	}
}

func (c *Cache) settings() []Setting {
	return []Setting{
		{Key: "cache_max_bytes", Env: "FELIX_CACHE_MAX_BYTES", Default: "268435456", value: sizeValue{&c.MaxBytes, 64 * kib, 1 << 44},
			Help: "Bytes of keys and values in all caches without storage. Beyond it expired entries go first, then long unused ones."},
		{Key: "cache_max_entries", Env: "FELIX_CACHE_MAX_ENTRIES", Default: "1048576", value: countValue{&c.MaxEntries, 1, 1 << 40},
			Help: "Entries in all caches without storage, bounded like cache_max_bytes."},
		{Key: "cache_watch_queue_capacity", Env: "FELIX_CACHE_WATCH_QUEUE_CAPACITY", Default: "1024", value: countValue{&c.WatchQueueCapacity, 1, 1 << 20},
			Help: "Changes that may wait for one cache watch. A watch that falls behind further is told where to go on and ended."},
	}
}

func (s *Shutdown) settings() []Setting {
	return []Setting{
		{Key: "shutdown_drain_timeout_ms", Env: "FELIX_SHUTDOWN_DRAIN_TIMEOUT_MS", Default: "25000", value: durationValue{p: &s.Drain, unit: time.Millisecond, min: time.Millisecond, max: maxWait},
			Help: "One deadline for everything that drains at a stop; what is left then is cut off and named. The supervisor's grace period must be longer than this and shutdown_predrain_ms together."},
		{Key: "shutdown_predrain_ms", Env: "FELIX_SHUTDOWN_PREDRAIN_MS", Default: "0", value: durationValue{p: &s.PreDrain, unit: time.Millisecond, min: time.Millisecond, max: maxWait, off: true},
			Help: "How long a stopping broker that already answers /ready with 503 still accepts connections, for balancers to notice."},
		{Key: "shutdown_handoff_timeout_ms", Env: "FELIX_SHUTDOWN_HANDOFF_TIMEOUT_MS", Default: "30000", value: durationValue{p: &s.Handoff, unit: time.Millisecond, min: time.Millisecond, max: maxWait, off: true},
			Help: "How long a stopping member of a cluster waits for its shards to be taken by other brokers, before anything else. The supervisor's grace period must be longer than this and the other two together."},
	}
}

func (p *Process) settings() []Setting {
	return []Setting{
		{Key: "log", Env: "FELIX_LOG", Default: "info", value: textValue{&p.Log, "a level (debug, info, warn, error), or a list as in info,session=debug"},
			Help: "Least level that is logged, for all or per module."},
		{Key: "log_format", Env: "FELIX_LOG_FORMAT", Default: "text", value: oneOf[LogFormat]{&p.LogFormat, []LogFormat{LogText, LogJSON}},
			Help: "Encoding of log lines."},
		{Key: "gogc", Env: "GOGC", Default: "400", value: gcPercentValue{&p.GCPercent},
			Help: "Heap growth between garbage collections, as Go's GOGC. A broker's live heap is small, so the usual 100 collects far too often."},
		{Key: "gomemlimit", Env: "GOMEMLIMIT", Default: "off", value: memoryLimitValue{&p.MemoryLimit},
			Help: "Soft limit of the process's memory, as Go's GOMEMLIMIT. Set it to nine tenths of a container's limit."},
		{Key: "worker_threads", Env: "FELIX_WORKER_THREADS", Default: "0", value: countValue{&p.WorkerThreads, 0, 1024},
			Help: "Threads that run Go code at once (GOMAXPROCS); 0 leaves it to the runtime, which knows the container's CPU quota."},
	}
}
