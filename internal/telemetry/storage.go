package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// A StorageSnapshot is what the logs count, read once a scrape; names and
// meaning are those of storage 23.
type StorageSnapshot struct {
	AppendRecords, AppendBytes, AppendBatches uint64
	Syncs, SyncBatchAppends, SyncFailures     uint64
	WriteFailures, Full                       uint64

	JournalRounds, JournalEntries, JournalBytes, JournalBusy, JournalFailures uint64
	IndexWriteFailures, ReserveFailures                                       uint64

	SegmentRolls, SegmentRollsBackground, SegmentRollsFailed, SegmentRollsDiscarded uint64

	RetentionSegmentsDeleted, RetentionBytesReclaimed, RetentionFailures uint64
	RetentionBaseOffset                                                  uint64

	ReadRecords, ReadBytes uint64

	RecoveryTruncatedBytes, IndexRebuilds, ProducerRebuilds uint64

	UnsyncedBytes, Segments, OpenSealedSegments, Bytes int64

	LogsOpen, LogsOpening, LogsFailed int
	ShardsRefused                     int
	LowSpace                          bool

	AppendDuration, SyncDuration, ReadDuration, RecoveryDuration Distribution
}

// A Distribution is a histogram counted elsewhere: Counts[i] durations shorter
// than Bounds[i], a last one without a bound for the rest.
type Distribution struct {
	Bounds []time.Duration
	Counts []uint64
	Sum    time.Duration
}

func (d *Distribution) metric(desc *prometheus.Desc) prometheus.Metric {
	cumulative := make(map[float64]uint64, len(d.Bounds))
	var count uint64
	for i, n := range d.Counts {
		count += n
		if i < len(d.Bounds) {
			cumulative[d.Bounds[i].Seconds()] = count
		}
	}
	return prometheus.MustNewConstHistogram(desc, count, d.Sum.Seconds(), cumulative)
}

type storageNumber struct {
	name, help string
	read       func(*StorageSnapshot) float64
}

var storageGauges = []storageNumber{
	{"felix_storage_unsynced_bytes", "Bytes written and not yet flushed in their own files. With on_commit they are in the commit journal, or nobody has been told that they are safe; in other modes a power cut may lose them.", func(s *StorageSnapshot) float64 { return float64(s.UnsyncedBytes) }},
	{"felix_storage_segment_count", "Files of all open logs.", func(s *StorageSnapshot) float64 { return float64(s.Segments) }},
	{"felix_storage_open_sealed_segments", "Finished files kept open for readers.", func(s *StorageSnapshot) float64 { return float64(s.OpenSealedSegments) }},
	{"felix_storage_log_bytes", "Bytes of all open logs.", func(s *StorageSnapshot) float64 { return float64(s.Bytes) }},
	{"felix_storage_retention_base_offset", "Oldest offset of the log that retention cut last.", func(s *StorageSnapshot) float64 { return float64(s.RetentionBaseOffset) }},
	{"felix_storage_logs_open", "Logs open.", func(s *StorageSnapshot) float64 { return float64(s.LogsOpen) }},
	{"felix_storage_logs_opening", "Logs being opened.", func(s *StorageSnapshot) float64 { return float64(s.LogsOpening) }},
	{"felix_storage_logs_failed", "Open logs that take no writes any more, because a flush failed. Restart the broker once the disk is well.", func(s *StorageSnapshot) float64 { return float64(s.LogsFailed) }},
	{"felix_storage_shards_refused", "Shards whose log was refused when it was opened; the log of the broker names file and position.", func(s *StorageSnapshot) float64 { return float64(s.ShardsRefused) }},
	{"felix_storage_low_space", "1 while writes are refused because little space is free.", func(s *StorageSnapshot) float64 { return oneIf(s.LowSpace) }},
}

var storageCounters = []storageNumber{
	{"felix_storage_append_records_total", "Records committed.", func(s *StorageSnapshot) float64 { return float64(s.AppendRecords) }},
	{"felix_storage_append_bytes_total", "Bytes of committed batches, their headers included.", func(s *StorageSnapshot) float64 { return float64(s.AppendBytes) }},
	{"felix_storage_sync_total", "Flushes to the device.", func(s *StorageSnapshot) float64 { return float64(s.Syncs) }},
	{"felix_storage_sync_failures_total", "Flushes that failed; each ends the writes of a log.", func(s *StorageSnapshot) float64 { return float64(s.SyncFailures) }},
	{"felix_storage_journal_rounds_total", "Flushes of the commit journal; among those of sync_total.", func(s *StorageSnapshot) float64 { return float64(s.JournalRounds) }},
	{"felix_storage_journal_entries_total", "Rounds of logs that these made durable.", func(s *StorageSnapshot) float64 { return float64(s.JournalEntries) }},
	{"felix_storage_journal_bytes_total", "Bytes written to the commit journal.", func(s *StorageSnapshot) float64 { return float64(s.JournalBytes) }},
	{"felix_storage_journal_busy_total", "Flushes for which the commit journal had no room, because logs still had to flush their own files; they flushed those instead.", func(s *StorageSnapshot) float64 { return float64(s.JournalBusy) }},
	{"felix_storage_journal_failures_total", "Failures of the commit journal. Nothing is lost by them; logs flush their own files from then on.", func(s *StorageSnapshot) float64 { return float64(s.JournalFailures) }},
	{"felix_storage_write_failures_total", "Writes that failed; nothing of them was kept.", func(s *StorageSnapshot) float64 { return float64(s.WriteFailures) }},
	{"felix_storage_full_total", "Writes refused for want of space.", func(s *StorageSnapshot) float64 { return float64(s.Full) }},
	{"felix_storage_index_write_failures_total", "Index entries that could not be written; they are made again when the log is opened.", func(s *StorageSnapshot) float64 { return float64(s.IndexWriteFailures) }},
	{"felix_storage_segment_reserve_failed_total", "Blocks that could not be reserved ahead.", func(s *StorageSnapshot) float64 { return float64(s.ReserveFailures) }},
	{"felix_storage_segment_roll_total", "New files begun.", func(s *StorageSnapshot) float64 { return float64(s.SegmentRolls) }},
	{"felix_storage_segment_roll_background_total", "New files that were prepared in the background.", func(s *StorageSnapshot) float64 { return float64(s.SegmentRollsBackground) }},
	{"felix_storage_segment_roll_failed_total", "New files that could not be begun.", func(s *StorageSnapshot) float64 { return float64(s.SegmentRollsFailed) }},
	{"felix_storage_segment_roll_discarded_total", "Prepared files that were not needed.", func(s *StorageSnapshot) float64 { return float64(s.SegmentRollsDiscarded) }},
	{"felix_storage_retention_segments_deleted_total", "Files deleted by retention.", func(s *StorageSnapshot) float64 { return float64(s.RetentionSegmentsDeleted) }},
	{"felix_storage_retention_bytes_reclaimed_total", "Bytes of these files.", func(s *StorageSnapshot) float64 { return float64(s.RetentionBytesReclaimed) }},
	{"felix_storage_retention_failures_total", "Looks of retention that failed.", func(s *StorageSnapshot) float64 { return float64(s.RetentionFailures) }},
	{"felix_storage_read_records_total", "Records read from logs.", func(s *StorageSnapshot) float64 { return float64(s.ReadRecords) }},
	{"felix_storage_read_bytes_total", "Bytes of these reads.", func(s *StorageSnapshot) float64 { return float64(s.ReadBytes) }},
	{"felix_storage_recovery_truncated_bytes", "Bytes of torn ends cut when logs were opened.", func(s *StorageSnapshot) float64 { return float64(s.RecoveryTruncatedBytes) }},
	{"felix_storage_recovery_index_rebuilds_total", "Indexes made again when logs were opened.", func(s *StorageSnapshot) float64 { return float64(s.IndexRebuilds) }},
	{"felix_storage_producer_state_rebuilt_total", "Finished files read to know idempotent producers again.", func(s *StorageSnapshot) float64 { return float64(s.ProducerRebuilds) }},
}

// A storageCollector turns a [StorageSnapshot] into metrics; without storage
// there are none.
type storageCollector struct {
	gauges, counters []*prometheus.Desc

	batchRecords, syncBatch           *prometheus.Desc
	appends, syncs, reads, recoveries *prometheus.Desc
}

func newStorageCollector(b *builder) *storageCollector {
	c := &storageCollector{
		batchRecords: b.desc("felix_storage_append_batch_records", "summary", "Records of a committed batch: their sum and the count of batches."),
		syncBatch:    b.desc("felix_storage_sync_batch_appends", "summary", "Batches made durable by one flush: their sum and the count of flushes. About 1 under load means that nothing is gathered."),
		appends:      b.desc("felix_storage_append_duration_seconds", "histogram", "From a batch given to its log to its commit."),
		syncs:        b.desc("felix_storage_sync_duration_seconds", "histogram", "Flushes to the device."),
		reads:        b.desc("felix_storage_read_duration_seconds", "histogram", "Reads of logs."),
		recoveries:   b.desc("felix_storage_recovery_duration_seconds", "histogram", "Openings of logs."),
	}
	for _, g := range storageGauges {
		c.gauges = append(c.gauges, b.desc(g.name, "gauge", g.help))
	}
	for _, n := range storageCounters {
		c.counters = append(c.counters, b.desc(n.name, "counter", n.help))
	}
	return c
}

func (c *storageCollector) describe(out chan<- *prometheus.Desc) {
	for _, list := range [][]*prometheus.Desc{c.gauges, c.counters, {c.batchRecords, c.syncBatch, c.appends, c.syncs, c.reads, c.recoveries}} {
		for _, desc := range list {
			out <- desc
		}
	}
}

func (c *storageCollector) collect(out chan<- prometheus.Metric, s *StorageSnapshot) {
	for i, g := range storageGauges {
		out <- prometheus.MustNewConstMetric(c.gauges[i], prometheus.GaugeValue, g.read(s))
	}
	for i, n := range storageCounters {
		out <- prometheus.MustNewConstMetric(c.counters[i], prometheus.CounterValue, n.read(s))
	}
	out <- prometheus.MustNewConstSummary(c.batchRecords, s.AppendBatches, float64(s.AppendRecords), nil)
	out <- prometheus.MustNewConstSummary(c.syncBatch, s.Syncs, float64(s.SyncBatchAppends), nil)
	out <- s.AppendDuration.metric(c.appends)
	out <- s.SyncDuration.metric(c.syncs)
	out <- s.ReadDuration.metric(c.reads)
	out <- s.RecoveryDuration.metric(c.recoveries)
}

func oneIf(is bool) float64 {
	if is {
		return 1
	}
	return 0
}
