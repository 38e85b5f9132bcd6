package node

import (
	"fmt"

	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/internal/config"
	"github.com/felixlog/felix/internal/telemetry"
	"github.com/felixlog/felix/storage"
	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/shardlog"
)

// openStorage opens the logs' directory, if there is one. It is locked for
// this process from now on; the logs themselves are opened with the streams
// and caches they belong to.
func (n *Node) openStorage(o *Options) error {
	c := &n.cfg.Storage
	if c.Dir == "" {
		return nil
	}
	mode, err := shardlog.ParseFsyncMode(string(c.Fsync))
	if err != nil {
		return err
	}
	files := o.FileSystem
	if files == nil {
		files = fs.OS()
	}
	n.store, err = storage.Open(files, storage.Config{
		Root: c.Dir,
		Log: shardlog.Options{
			SegmentBytes:             int64(c.SegmentBytes),
			IndexSpacing:             c.IndexSpacing,
			Fsync:                    mode,
			FsyncInterval:            c.FsyncInterval,
			MaxReadRecords:           c.MaxRecordsPerRead,
			Preallocate:              c.Preallocate,
			VerifyAll:                c.VerifyAll,
			RepairChecksumTail:       c.RepairChecksumTail,
			RolloverThresholdPercent: c.RolloverThresholdPercent,
			MaxOvershootPercent:      c.MaxOvershootPercent,
		},
		MaxOpenSealed: c.MaxOpenSealed,
		MaxFlushes:    c.MaxFlushes,
		JournalBytes:  journalBytes(c.JournalBytes),
		OpenParallel:  c.OpenParallel,
		SoftFreeBytes: uint64(c.SoftFreeBytes),
	}, storage.Deps{Clock: o.Clock, Logger: telemetry.Module(n.log, "storage")})
	if err != nil {
		return fmt.Errorf("open storage: %w", err)
	}
	n.log.Info("storage open", "dir", c.Dir, "fsync", string(c.Fsync), "segment_bytes", c.SegmentBytes)
	return nil
}

// journalBytes is the size of the journal's files as storage takes it, for
// which 0 is its default.
func journalBytes(size int) int64 {
	if size == 0 {
		return -1
	}
	return int64(size)
}

// streamRetention is what streams keep that have no bound of their own.
func streamRetention(c *config.Storage) stream.Retention {
	return stream.Retention{MaxBytes: int64(c.RetentionBytes), MaxAge: c.RetentionAge, Interval: c.RetentionInterval}
}

// storageSnapshot reads what the logs count; nil without storage.
func (n *Node) storageSnapshot() *telemetry.StorageSnapshot {
	if n.store == nil {
		return nil
	}
	m, st, j := n.store.Metrics(), n.store.Stats(), n.store.JournalStats()
	return &telemetry.StorageSnapshot{
		AppendRecords: m.AppendRecords.Load(), AppendBytes: m.AppendBytes.Load(), AppendBatches: m.AppendBatches.Load(),
		Syncs: m.Syncs.Load(), SyncBatchAppends: m.SyncBatchAppends.Load(), SyncFailures: m.SyncFailures.Load(),
		WriteFailures: m.WriteFailures.Load(), Full: m.Full.Load(),
		JournalRounds: j.Rounds, JournalEntries: j.Entries, JournalBytes: j.Bytes, JournalBusy: j.Busy, JournalFailures: j.Failures,
		IndexWriteFailures: m.IndexWriteFailures.Load(), ReserveFailures: m.ReserveFailures.Load(),
		SegmentRolls: m.SegmentRolls.Load(), SegmentRollsBackground: m.SegmentRollsBackground.Load(),
		SegmentRollsFailed: m.SegmentRollsFailed.Load(), SegmentRollsDiscarded: m.SegmentRollsDiscarded.Load(),
		RetentionSegmentsDeleted: m.RetentionSegmentsDeleted.Load(), RetentionBytesReclaimed: m.RetentionBytesReclaimed.Load(),
		RetentionFailures: m.RetentionFailures.Load(), RetentionBaseOffset: m.RetentionBaseOffset.Load(),
		ReadRecords: m.ReadRecords.Load(), ReadBytes: m.ReadBytes.Load(),
		RecoveryTruncatedBytes: m.RecoveryTruncatedBytes.Load(), IndexRebuilds: m.IndexRebuilds.Load(), ProducerRebuilds: m.ProducerRebuilds.Load(),
		UnsyncedBytes: m.UnsyncedBytes.Load(), Segments: m.Segments.Load(), OpenSealedSegments: m.OpenSealedSegments.Load(), Bytes: m.Bytes.Load(),
		LogsOpen: st.OpenLogs, LogsOpening: st.OpeningLogs, LogsFailed: st.FailedLogs,
		ShardsRefused: n.core.Opening().Refused, LowSpace: st.Full,
		AppendDuration: distribution(&m.AppendDuration), SyncDuration: distribution(&m.SyncDuration),
		ReadDuration: distribution(&m.ReadDuration), RecoveryDuration: distribution(&m.RecoveryDuration),
	}
}

func distribution(h *shardlog.Histogram) telemetry.Distribution {
	s := h.Snapshot()
	d := telemetry.Distribution{Counts: s.Counts[:], Sum: s.Sum}
	for i := range len(s.Counts) - 1 {
		d.Bounds = append(d.Bounds, s.Bound(i))
	}
	return d
}
