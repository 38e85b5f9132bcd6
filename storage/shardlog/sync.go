package shardlog

import (
	"github.com/felixlog/felix/storage/fs"
)

// Flush makes everything claimed so far durable, whatever the mode. What was
// claimed and fails to be written is reported to its own completion.
func (l *Log) Flush() error {
	if err := l.settle(); err != nil {
		return err
	}
	return l.syncNow()
}

// settle waits until all that is claimed is committed or has failed. The error
// is why the log takes nothing more.
func (l *Log) settle() error {
	w := l.waiter()
	defer l.waiters.Put(w)
	l.Barrier(w)
	<-w.woken
	if w.err != nil {
		return l.Err()
	}
	return nil
}

// syncNow makes durable what the files hold. The device flush itself runs
// beside the rounds; only what it covers is taken between two of them. A log
// with nothing to sync costs nothing.
func (l *Log) syncNow() error {
	l.flush.Lock()
	defer l.flush.Unlock()
	return l.syncWritten()
}

// syncWritten is syncNow for a caller that holds flush.
func (l *Log) syncWritten() error {
	if err := l.poisoned(); err != nil {
		return err
	}
	l.io.Lock()
	s, bytes, end := l.active, l.active.written, l.written.offset
	file, err := l.opts.Descriptors.pin(l, s) // open already: it is active
	l.io.Unlock()
	if err != nil {
		return l.fileError("open", err)
	}
	defer l.opts.Descriptors.unpin(file)
	if err := l.syncRetired(); err != nil {
		return err
	}
	if s.synced.Load() < bytes {
		if err := l.syncSegment(s, file.file, bytes); err != nil {
			return err
		}
	}
	if err := l.raiseDurable(end); err != nil {
		return err
	}
	l.mark.advance(l, segmentMark(s, bytes))
	return nil
}

// armFlush starts the timer of periodic mode, which runs only while something
// is not synced.
func (l *Log) armFlush() {
	l.arm(&l.flushTimer, l.opts.FsyncInterval, func() {
		_ = l.syncNow() // a failure has poisoned the log, which tells all
	})
}

// syncRound makes the round that was just written durable, by the journal or by
// a sync of its own. A segment retired in the background goes first: nothing in
// the new one may be acknowledged before the old one is on the device (storage
// 8.1).
func (l *Log) syncRound(items []item, bytes []byte) error {
	if err := l.syncRetired(); err != nil {
		return err
	}
	s := l.active
	n := uint64(0)
	for i := range items {
		if items[i].size > 0 {
			n++
		}
	}
	l.metrics.SyncBatchAppends.Add(n)
	if l.commitJournal(s, bytes) {
		// The mark is about the log's own files. What the journal has it
		// brings there itself.
		return nil
	}
	if err := l.syncSegment(s, s.held.file, s.written); err != nil {
		return err
	}
	l.mark.advance(l, segmentMark(s, s.written))
	return nil
}

// syncRetired makes the segment durable that a background roll retired and has
// not sealed yet.
func (l *Log) syncRetired() error {
	l.mu.Lock()
	s := l.retired
	l.mu.Unlock()
	if s == nil || s.synced.Load() >= s.written {
		return nil
	}
	file, err := l.opts.Descriptors.pin(l, s)
	if err != nil {
		return l.fileError("open", err)
	}
	defer l.opts.Descriptors.unpin(file)
	return l.syncSegment(s, file.file, s.written)
}

// syncSegment brings the first bytes of a segment to the device. A failure
// poisons the log.
func (l *Log) syncSegment(s *seg, file fs.File, bytes int64) error {
	l.opts.Gate.enter()
	start := l.opts.Clock.Now()
	err := file.Sync()
	took := l.opts.Clock.Now().Sub(start)
	l.opts.Gate.leave()
	l.metrics.Syncs.Add(1)
	l.metrics.SyncDuration.Observe(took)
	if err != nil {
		return l.fileError("sync", err)
	}
	l.metrics.UnsyncedBytes.Add(-s.markSynced(bytes))
	return nil
}

// raiseDurable publishes that the records below end are on the device. The
// bound of a poisoned log never moves.
func (l *Log) raiseDurable(end uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure != nil {
		return l.failure
	}
	l.durable.Store(max(l.durable.Load(), end))
	return nil
}
