package shardlog

import "errors"

// startCommitter makes sure that what has gathered will be written. The caller
// holds mu.
func (l *Log) startCommitter() {
	if !l.committing {
		l.committing = true
		go l.commitFn()
	}
}

// handOver leaves what gathered during a round written by a caller to the
// committer.
func (l *Log) handOver() {
	l.mu.Lock()
	if l.gather != nil {
		l.startCommitter()
	}
	l.mu.Unlock()
}

// commit is the committer: rounds until nothing has gathered.
func (l *Log) commit() {
	for {
		l.io.Lock()
		l.commitRound()
		l.io.Unlock()
		l.mu.Lock()
		if l.gather == nil {
			l.committing = false
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
	}
}

// commitRound takes what has gathered to its end, in parts where a roll falls
// between. The caller holds io.
func (l *Log) commitRound() {
	l.mu.Lock()
	r := l.gather
	l.gather = nil
	l.mu.Unlock()
	if r == nil {
		return
	}
	items, buf := r.items, r.buf
	for len(items) > 0 {
		n, size, err := l.nextPart(items)
		if err == nil {
			err = l.commitPart(items[:n], buf[:size])
		}
		if err != nil {
			l.failRound(items, n, err)
			break
		}
		items, buf = items[n:], buf[size:]
	}
	l.opts.Descriptors.putRound(r)
	l.maintain()
	if l.opts.AfterRound != nil {
		l.opts.AfterRound()
	}
}

// nextPart counts the items, and their bytes, that go into the active segment
// with one write, and rolls first if that is none.
func (l *Log) nextPart(items []item) (n, size int, err error) {
	if n, size = l.fitting(items); n > 0 {
		return n, size, nil
	}
	if err := l.rollInline(); err != nil {
		return 0, 0, err
	}
	n, size = l.fitting(items)
	return n, size, nil
}

func (l *Log) fitting(items []item) (n, size int) {
	room := l.ceiling() - l.active.written
	for n = range items {
		s := items[n].size
		if s > 0 && int64(size+s) > room && (size > 0 || !l.active.empty()) {
			return n, size
		}
		size += s
	}
	return len(items), size
}

// commitPart writes a part, syncs it in on_commit mode, publishes it and calls
// its completions.
func (l *Log) commitPart(items []item, bytes []byte) error {
	if len(bytes) > 0 {
		if err := l.write(items, bytes); err != nil {
			return err
		}
		if l.opts.Fsync == OnCommit {
			if err := l.syncRound(items, bytes); err != nil {
				return unknown(err)
			}
		}
		if err := l.publish(int64(len(bytes))); err != nil {
			return unknown(err)
		}
	}
	l.complete(items)
	return nil
}

// unknown marks the poisoning of a log as the end of batches that were written.
func unknown(err error) error {
	poisoned, ok := errors.AsType[*SyncFailedError](err)
	if !ok {
		return err
	}
	e := *poisoned
	e.Unknown = true
	return &e
}

// write puts a part at the end of the active segment. A write that fails is
// undone.
func (l *Log) write(items []item, bytes []byte) error {
	if err := l.poisoned(); err != nil {
		return err
	}
	s := l.active
	if _, err := s.held.file.WriteAt(bytes, s.written); err != nil {
		return l.rewind(err)
	}
	for i := range items {
		it := &items[i]
		if it.size == 0 {
			continue
		}
		it.app.Where = Location{Segment: s.id, Position: s.written, Length: it.size}
		s.wrote(&it.app)
		l.written = position{offset: it.app.First + uint64(it.app.Count), crc: it.crc}
		s.newest.Store(it.app.TimestampMicros)
		s.newestAt.Store(int64(it.at))
	}
	l.metrics.UnsyncedBytes.Add(int64(len(bytes)))
	l.metrics.Bytes.Add(int64(len(bytes)))
	return nil
}

// rewind cuts the active segment back to its last good byte. The cut is synced,
// or a batch reported as failed could be there after a power loss. A cut that
// fails leaves the end of the file unknown: the log is poisoned.
func (l *Log) rewind(cause error) error {
	l.metrics.WriteFailures.Add(1)
	s := l.active
	s.reserved = 0
	if err := s.held.file.Truncate(s.written); err != nil {
		return unknown(l.poison("cut of a failed write", errors.Join(cause, err)))
	}
	if err := s.held.file.Sync(); err != nil {
		return unknown(l.fileError("sync after a failed write", errors.Join(cause, err)))
	}
	return l.fileError("append", cause)
}

func (l *Log) poisoned() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure != nil {
		return l.failure
	}
	return nil
}

// publish lets readers see what was written. On a log poisoned meanwhile it
// changes nothing and answers why.
func (l *Log) publish(bytes int64) error {
	end := l.written.offset
	l.mu.Lock()
	if l.failure != nil {
		l.mu.Unlock()
		return l.failure
	}
	l.active.end.Store(end)
	l.active.readable.Store(l.active.written)
	if l.opts.Fsync == OnCommit {
		l.durable.Store(end)
	}
	l.tail.Store(end)
	l.pending -= bytes
	if l.pending < l.opts.MaxPendingBytes {
		l.signalRoom()
	}
	arm := l.opts.Fsync == Periodic && l.flushTimer.claim()
	l.mu.Unlock()
	if arm {
		l.armFlush()
	}
	return nil
}

func (l *Log) complete(items []item) {
	now := l.since(l.opts.Clock.Now())
	var batches, records, bytes uint64
	for i := range items {
		it := &items[i]
		if it.size > 0 {
			batches++
			records += uint64(it.app.Count)
			bytes += uint64(it.size)
			l.metrics.AppendDuration.Observe(now - it.at)
		}
		it.complete(nil)
	}
	l.metrics.AppendBatches.Add(batches)
	l.metrics.AppendRecords.Add(records)
	l.metrics.AppendBytes.Add(bytes)
}

// failRound fails items, the first n of which were being written, and what has
// gathered behind them: their offsets are given out anew.
func (l *Log) failRound(items []item, n int, err error) {
	behind := err
	e, poisoned := errors.AsType[*SyncFailedError](err)
	if poisoned {
		behind = &SyncFailedError{Log: e.Log, Op: e.Op, Err: e.Err}
	}
	l.mu.Lock()
	g := l.gather
	l.gather = nil
	l.claimed, l.claimedCRC = l.written.offset, l.written.crc
	if l.producers != nil {
		l.producers.Rewind(l.claimed)
	}
	l.pending = 0
	l.signalRoom()
	l.mu.Unlock()
	fail(items[:n], err, poisoned)
	fail(items[n:], behind, true)
	if g != nil {
		fail(g.items, behind, true)
		l.opts.Descriptors.putRound(g)
	}
}
