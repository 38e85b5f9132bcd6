package shardlog

import (
	"errors"
	"path/filepath"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/segment"
)

// keyIndexFile is the snapshot of a projection over the log (storage 16.5). It
// describes records that a cut replaces, so it goes with the producers' file.
const keyIndexFile = "keys.idx"

// Truncate drops the records at and past offset, which no reader may have been
// promised: *BelowCommitError below the commit offset, *SplitBatchError inside
// a batch. At or past the tail it does nothing. Appends meanwhile are refused
// with ErrBusy. A failure after the first change poisons the log.
func (l *Log) Truncate(offset uint64) error {
	return l.recut(func() error {
		if offset >= l.written.offset {
			return nil
		}
		if commit := min(l.CommitOffset(), l.written.offset); offset < commit {
			return &BelowCommitError{Offset: offset, Commit: commit}
		}
		if base := l.Base(); offset < base {
			return &TrimmedError{Requested: offset, Oldest: base}
		}
		return l.truncate(offset)
	})
}

// recut runs what changes the end of the log, with all that is claimed written
// and nothing else under way.
func (l *Log) recut(cut func() error) error {
	l.admin.Lock()
	defer l.admin.Unlock()
	l.mu.Lock()
	if err := l.refusal(); err != nil {
		l.mu.Unlock()
		return err
	}
	l.frozen = true
	l.mu.Unlock()
	defer l.thaw()

	l.drain()
	l.roll.done.Wait()
	l.flush.Lock()
	defer l.flush.Unlock()
	l.io.Lock()
	defer l.io.Unlock()
	if err := l.poisoned(); err != nil {
		return err
	}
	if err := l.leaveJournal(); err != nil {
		return err
	}
	return cut()
}

// drain writes what has gathered. Nothing new gathers: the log is frozen or
// closed.
func (l *Log) drain() {
	l.io.Lock()
	defer l.io.Unlock()
	for l.hasGathered() {
		l.commitRound()
	}
}

func (l *Log) hasGathered() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gather != nil
}

func (l *Log) thaw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.frozen = false
	l.signalRoom()
}

// cutPoint is where a log is to end.
type cutPoint struct {
	keep     int // segments before the one that is cut
	seg      *seg
	position int64    // byte position of the cut
	end      position // what the log then ends with
	newest   uint64   // record time of the batch before, 0 if seg holds none
}

// truncate cuts at an offset within the log, in the order of storage 13: what
// describes the dropped records goes first, the mark is lowered before a file
// gets shorter, segments go newest first, each durably.
func (l *Log) truncate(offset uint64) error {
	at, err := l.findCut(offset)
	if err != nil {
		return err
	}
	if err := l.syncBelow(at); err != nil {
		return err
	}
	for _, step := range []func() error{
		l.removeDerived,
		func() error { return l.mark.set(segmentMark(at.seg, at.position)) },
		func() error { return l.cutFiles(at) },
		func() error { return l.cutGenerations(offset) },
	} {
		if err := step(); err != nil {
			return l.poison("truncate", err)
		}
	}
	return nil
}

// findCut finds the batch that begins at offset and the one before it.
func (l *Log) findCut(offset uint64) (cutPoint, error) {
	segs := l.segmentList()
	at := cutPoint{keep: len(segs) - 1}
	for at.keep > 0 && segs[at.keep].base >= offset {
		at.keep--
	}
	if segs[at.keep].base > offset {
		at.keep = 0
	}
	at.seg = segs[at.keep]
	d := l.opts.Descriptors
	file, err := d.pin(l, at.seg)
	if err != nil {
		return at, l.fileError("open", err)
	}
	defer d.unpin(file)
	var header [segment.HeaderSize]byte
	if err := readFull(l, at.seg, file, header[:], 0); err != nil {
		return at, err
	}
	h, err := segment.ParseHeader(header[:])
	if err != nil {
		return at, placed(err, at.seg, 0)
	}
	at.position, at.end = segment.HeaderSize, position{offset: h.BaseOffset, crc: h.PrevCRC}
	w := walker{log: l, seg: at.seg, file: file, position: segment.HeaderSize}
	defer w.release()
	for at.end.offset < offset {
		b, _, ok, err := w.next()
		if err != nil {
			return at, err
		}
		if !ok || b.End() > offset {
			return at, &SplitBatchError{Offset: offset, First: b.BaseOffset, End: b.End()}
		}
		at.position, at.end, at.newest = w.position, position{offset: b.End(), crc: b.CRC}, b.TimestampMicros
	}
	return at, nil
}

// syncBelow makes what stays durable: the mark is about to vouch for it.
func (l *Log) syncBelow(at cutPoint) error {
	if at.seg.synced.Load() >= at.position {
		return nil
	}
	file, err := l.opts.Descriptors.pin(l, at.seg)
	if err != nil {
		return l.fileError("open", err)
	}
	defer l.opts.Descriptors.unpin(file)
	return l.syncSegment(at.seg, file.file, at.seg.written)
}

// removeDerived removes the files that describe records which a cut drops,
// durably, before other records can take their offsets.
func (l *Log) removeDerived() error {
	for _, name := range []string{segment.ProducersFile, keyIndexFile} {
		if err := l.fs.Remove(filepath.Join(l.dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return l.fs.SyncDir(l.dir)
}

// cutFiles shortens the log to at, memory first: readers that start from here on
// stay below the cut, and those that started before read again.
func (l *Log) cutFiles(at cutPoint) error {
	segs := l.segmentList()
	dropped := segs[at.keep+1:]
	l.lower(at, segs[:at.keep+1:at.keep+1])

	for i := len(dropped) - 1; i >= 0; i-- {
		if err := l.removeSegment(dropped[i]); err != nil {
			return err
		}
	}
	if err := l.reopen(at); err != nil {
		return err
	}
	if err := at.seg.held.file.Truncate(at.position); err != nil {
		return err
	}
	return at.seg.held.file.Sync()
}

// lower makes at the end of the log for everyone in memory.
func (l *Log) lower(at cutPoint, keep []*seg) {
	s, end := at.seg, at.end
	l.cuts.Add(1)
	l.mu.Lock()
	l.claimed, l.claimedCRC = end.offset, end.crc
	l.durable.Store(min(l.durable.Load(), end.offset))
	l.tail.Store(end.offset)
	if l.producers != nil {
		l.producers.Rewind(end.offset)
	}
	l.mu.Unlock()
	l.metrics.Bytes.Add(at.position - s.written)
	s.end.Store(end.offset)
	s.readable.Store(at.position)
	s.newest.Store(at.newest)
	s.synced.Store(at.position)
	s.written, s.reserved = at.position, 0
	l.written = end
	l.list.Lock()
	l.segments = keep
	l.list.Unlock()
	l.cuts.Add(1)
}

// removeSegment removes a segment that is not in the list any more, durably.
func (l *Log) removeSegment(s *seg) error {
	l.forget(s)
	if s.held != nil {
		l.opts.Descriptors.unpin(s.held)
		s.held = nil
	}
	if err := l.fs.Remove(s.path); err != nil {
		return err
	}
	return l.syncRemoval(s)
}

// reopen makes the segment that is cut the active one, if it was a sealed one,
// and trims its index.
func (l *Log) reopen(at cutPoint) error {
	s := at.seg
	if s == l.active {
		s.cutIndex(at.end.offset, at.position)
		return nil
	}
	d := l.opts.Descriptors
	file, err := d.pin(l, s)
	if err != nil {
		return err
	}
	entries, err := l.scanIndex(s, file)
	d.unpin(file)
	if err != nil {
		return err
	}
	writable, err := l.fs.OpenWrite(s.path)
	if err != nil {
		return err
	}
	s.activate(d.hold(l, s, writable), l.opts.IndexSpacing, entries)
	l.active = s
	return nil
}
