package shardlog

import (
	"errors"
	"path/filepath"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/segment"
)

// TrimBefore removes the sealed segments that hold nothing at or past offset,
// oldest first. It never removes the active one, nor what a hold at the commit
// offset keeps.
func (l *Log) TrimBefore(offset uint64) error {
	l.admin.Lock()
	defer l.admin.Unlock()
	if err := l.refused(); err != nil {
		return err
	}
	return l.trimOldest(func(s *seg) bool { return s.end.Load() <= offset })
}

// trimOldest removes segments from the oldest on while they may go. The caller
// holds admin.
func (l *Log) trimOldest(may func(*seg) bool) error {
	for {
		s := l.trimCandidate()
		if s == nil || !may(s) {
			return nil
		}
		err := l.anchorBase()
		if err == nil {
			err = l.removeStrays(s)
		}
		if err == nil {
			err = l.removeOldest(s)
		}
		if err != nil {
			l.metrics.RetentionFailures.Add(1)
			return err
		}
	}
}

// anchorBase makes the header of the second oldest segment durable: once the
// oldest is gone nothing else says where the log begins. A segment that was
// begun in the background may not have been synced yet.
func (l *Log) anchorBase() error {
	if l.segmentList()[1].synced.Load() >= segment.HeaderSize {
		return nil
	}
	return l.syncNow()
}

// trimCandidate is the oldest segment, or nil if it has to stay.
func (l *Log) trimCandidate() *seg {
	segs := l.segmentList()
	if len(segs) < 2 {
		return nil
	}
	s := segs[0]
	l.mu.Lock()
	defer l.mu.Unlock()
	held := l.replication.replica.HoldRetention && s.end.Load() > l.replication.replica.CommitOffset
	if held || s == l.retired || l.roll.running && s.id >= l.roll.from {
		return nil
	}
	return s
}

// removeStrays deletes what failed or discarded rolls may have left between the
// oldest segment and the next. Between two segments that meet, a file without a
// header means nothing; before the oldest it would be one that was lost.
func (l *Log) removeStrays(s *seg) error {
	next := l.segmentList()[1].id
	removed := false
	for id := s.id + 1; id < next && id-s.id <= maxSkippedIDs; id++ {
		err := l.fs.Remove(filepath.Join(l.dir, segment.FileName(id)))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return l.fileError("trim", err)
		}
		removed = removed || err == nil
	}
	if !removed {
		return nil
	}
	if err := l.fs.SyncDir(l.dir); err != nil {
		return l.fileError("directory sync", err)
	}
	return nil
}

// removeOldest takes a segment from the readers and then from the directory,
// which is synced before the next one goes, so that a crash leaves a longer log
// and never a gap (storage 14).
func (l *Log) removeOldest(s *seg) error {
	l.list.Lock()
	l.segments = l.segments[1:]
	base := l.segments[0].base
	l.base.Store(base)
	l.list.Unlock()
	if l.producers != nil {
		l.mu.Lock()
		l.producers.Trim(base)
		l.mu.Unlock()
	}
	if err := l.removeFile(s.path); err != nil {
		s.removing.Store(true)
		l.list.Lock()
		l.segments = append([]*seg{s}, l.segments...)
		l.base.Store(s.base)
		l.list.Unlock()
		return l.fileError("trim", err)
	}
	l.forget(s)
	l.metrics.RetentionSegmentsDeleted.Add(1)
	l.metrics.RetentionBytesReclaimed.Add(uint64(s.readable.Load()))
	l.metrics.RetentionBaseOffset.Store(base)
	return l.syncRemoval(s)
}

// dropRemoved takes the oldest segment from the readers if an attempt to remove
// its file failed, had done it nevertheless, and could not find out. It reports
// whether it did.
func (l *Log) dropRemoved() bool {
	l.list.Lock()
	defer l.list.Unlock()
	s := l.segments[0]
	if len(l.segments) < 2 || !s.removing.Load() {
		return false
	}
	if _, err := l.fs.Stat(s.path); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	l.segments = l.segments[1:]
	l.base.Store(l.segments[0].base)
	return true
}

// removeFile removes a file that may be gone already: an earlier attempt can have
// done it and failed all the same.
func (l *Log) removeFile(path string) error {
	err := l.fs.Remove(path)
	if err == nil {
		return nil
	}
	if _, gone := l.fs.Stat(path); errors.Is(gone, fs.ErrNotExist) {
		return nil
	}
	return err
}

// syncRemoval removes the index of a removed segment and syncs the directory.
func (l *Log) syncRemoval(s *seg) error {
	err := l.fs.Remove(filepath.Join(l.dir, segment.IndexName(s.id)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		// An index without its segment means nothing; recovery removes it.
		l.opts.Logger.Warn("index not removed", "log", l.opts.Name, "segment", s.id, "error", err)
	}
	if err := l.fs.SyncDir(l.dir); err != nil {
		return l.fileError("directory sync", err)
	}
	return nil
}

// count takes a segment into the gauges.
func (l *Log) count(s *seg) {
	s.counted = true
	l.metrics.Segments.Add(1)
	l.metrics.Bytes.Add(s.written)
}

// forget closes a segment that left the log and takes it out of the gauges.
func (l *Log) forget(s *seg) {
	l.opts.Descriptors.drop(s)
	if !s.counted {
		return
	}
	s.counted = false
	l.metrics.Segments.Add(-1)
	l.metrics.Bytes.Add(-s.written)
	l.metrics.UnsyncedBytes.Add(-max(s.written-s.synced.Load(), 0))
}
