package config

import "time"

// maxSegment bounds one file of a log.
const maxSegment = 16 * gib

func (s *Storage) settings() []Setting {
	return []Setting{
		{Key: "durable_storage_dir", Env: "FELIX_DURABLE_STORAGE_DIR", value: textValue{&s.Dir, "a path, or nothing"},
			Help: "Directory of the logs: with it there are durable streams, caches on the log, counters and cache watches. Without it everything is in memory. One broker at a time may have it open."},
		{Key: "durable_fsync_mode", Env: "FELIX_DURABLE_FSYNC_MODE", Default: string(FsyncOnCommit), value: oneOf[FsyncMode]{&s.Fsync, []FsyncMode{FsyncOnCommit, FsyncPeriodic, FsyncNone}},
			Help: "When a write reaches the disk. on_commit acknowledges after it has: a crash or a power cut loses nothing that was acknowledged. periodic acknowledges before and flushes every durable_fsync_interval_ms: a power cut loses up to that much, a crash of the broker alone nothing. none leaves it to the operating system."},
		{Key: "durable_fsync_interval_ms", Env: "FELIX_DURABLE_FSYNC_INTERVAL_MS", Default: "250", value: durationValue{p: &s.FsyncInterval, unit: time.Millisecond, min: time.Millisecond, max: time.Hour},
			Help: "Time between the flushes of a log with durable_fsync_mode periodic; in other modes it does nothing, and alone it does not choose the mode."},
		{Key: "durable_segment_bytes", Env: "FELIX_DURABLE_SEGMENT_BYTES", Default: "268435456", value: sizeValue{&s.SegmentBytes, 4 * kib, maxSegment},
			Help: "Size at which a log goes on in a new file. Retention and compaction free whole files."},
		{Key: "durable_retention_bytes", Env: "FELIX_DURABLE_RETENTION_BYTES", value: optionalSize{&s.RetentionBytes, 1, maxBudget},
			Help: "Bytes a stream's shard may keep; beyond them the oldest files go. A stream may have a bound of its own. Unset keeps all. Caches and counters compact instead and are never cut."},
		{Key: "durable_retention_seconds", Env: "FELIX_DURABLE_RETENTION_SECONDS", value: optionalSeconds{&s.RetentionAge},
			Help: "Age up to which a stream's records are kept, like durable_retention_bytes."},
		{Key: "durable_retention_interval_seconds", Env: "FELIX_DURABLE_RETENTION_INTERVAL_SECONDS", Default: "60", value: durationValue{p: &s.RetentionInterval, unit: time.Second, min: time.Second, max: maxWait},
			Help: "Time between two looks for files past their retention."},
		{Key: "durable_index_spacing_bytes", Env: "FELIX_DURABLE_INDEX_SPACING_BYTES", Default: "4096", value: sizeValue{&s.IndexSpacing, 1, gib},
			Help: "Bytes of log between two index entries: fewer make look-ups read less, and the index larger."},
		{Key: "durable_max_records_per_read", Env: "FELIX_DURABLE_MAX_RECORDS_PER_READ", Default: "10000", value: countValue{&s.MaxRecordsPerRead, 1, 1 << 20},
			Help: "Records that one read of a stream by offset returns at most."},
		{Key: "durable_preallocate", Env: "FELIX_DURABLE_PREALLOCATE", Default: "false", value: boolValue{&s.Preallocate},
			Help: "Reserve blocks ahead of the writes. Off by default, because flushes into reserved blocks are slower on usual file systems."},
		{Key: "durable_verify_all_on_open", Env: "FELIX_DURABLE_VERIFY_ALL_ON_OPEN", Default: "false", value: boolValue{&s.VerifyAll},
			Help: "Check every byte of a log when it is opened, not only its newest file."},
		{Key: "durable_repair_checksum_tail", Env: "FELIX_DURABLE_REPAIR_CHECKSUM_TAIL", Default: "false", value: boolValue{&s.RepairChecksumTail},
			Help: "Also cut a last batch that is complete but damaged, where nothing proves that it was acknowledged."},
		{Key: "durable_rollover_threshold_percent", Env: "FELIX_DURABLE_ROLLOVER_THRESHOLD_PERCENT", Default: "100", value: countValue{&s.RolloverThresholdPercent, 1, 100},
			Help: "Fill of a file, in percent, at which the next one is prepared in the background; 100 makes it when it is needed."},
		{Key: "durable_max_overshoot_percent", Env: "FELIX_DURABLE_MAX_OVERSHOOT_PERCENT", Default: "100", value: countValue{&s.MaxOvershootPercent, 0, 1000},
			Help: "How far a file may grow past its size, in percent of it, while the next one is prepared."},
		{Key: "storage_compaction_bytes_per_sec", Env: "FELIX_STORAGE_COMPACTION_BYTES_PER_SEC", Default: "67108864", value: rateValue{&s.CompactionBytesPerSec},
			Help: "Pace at which compaction of caches and counters copies, all of them together; 0 is unlimited."},
		{Key: "storage_soft_free_bytes", Env: "FELIX_STORAGE_SOFT_FREE_BYTES", Default: "67108864", value: sizeValue{&s.SoftFreeBytes, 0, maxBudget},
			Help: "Free space below which writes are refused as overloaded and /ready says so, while reads, cuts and compaction go on. 0 writes until the disk is full."},
		{Key: "storage_max_open_sealed_segments", Env: "FELIX_STORAGE_MAX_OPEN_SEALED_SEGMENTS", Default: "256", value: countValue{&s.MaxOpenSealed, 1, 1 << 20},
			Help: "Finished log files kept open for readers, all logs together."},
		{Key: "storage_max_flushes", Env: "FELIX_STORAGE_MAX_FLUSHES", Default: "16", value: countValue{&s.MaxFlushes, 1, 1024},
			Help: "Flushes that may be under way at once, all logs together."},
		{Key: "storage_journal_bytes", Env: "FELIX_STORAGE_JOURNAL_BYTES", Default: "67108864", value: sizeValue{&s.JournalBytes, 0, 16 * gib},
			Help: "Size of each of the two files of the commit journal, in which logs with durable_fsync_mode on_commit share flushes; a 32nd of the free space where that is less. 0 has every log flush its own files."},
		{Key: "storage_open_parallel", Env: "FELIX_STORAGE_OPEN_PARALLEL", Derived: "twice the CPUs, 4 to 32",
			value: countValue{&s.OpenParallel, 1, 256}, derive: func(c *Config, cpus int) { c.Storage.OpenParallel = max(4, min(2*cpus, 32)) },
			Help: "Logs that are opened and recovered at once at the start."},
		{Key: "record_publishers", Env: "FELIX_RECORD_PUBLISHERS", Default: "false", value: boolValue{&s.RecordPublishers},
			Help: "Keep with every batch of a durable stream whose token published it (its sub), and tell subscribers that ask. Off by default: it is personal data, for ever in the log."},
	}
}
