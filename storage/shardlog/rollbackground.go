package shardlog

import (
	"errors"
	"path/filepath"
	"sync"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/segment"
)

// backgroundRoll prepares the next segment beside the rounds and seals the old
// one after the swap (storage 9.2). The log's mu guards it.
type backgroundRoll struct {
	running bool
	// from is the segment that the running roll is to replace. Until the roll
	// is over its file may lie between that one and the next.
	from   uint64
	failed bool // for good: from then on segments are rolled inline
	done   sync.WaitGroup
}

// ceiling is the size that a segment may reach before a round rolls it inline.
func (l *Log) ceiling() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.roll.running {
		return l.opts.SegmentBytes + l.opts.SegmentBytes*int64(l.opts.MaxOvershootPercent)/100
	}
	return l.opts.SegmentBytes
}

// maintain does what can wait until a round's answers are out. The caller holds
// io.
func (l *Log) maintain() {
	l.extendReservation()
	if l.opts.RolloverThresholdPercent >= 100 {
		return
	}
	if l.active.written <= l.opts.SegmentBytes*int64(l.opts.RolloverThresholdPercent)/100 {
		return
	}
	l.mu.Lock()
	start := !l.roll.running && !l.roll.failed && !l.closed && !l.frozen && l.failure == nil
	if start {
		l.roll.running = true
		l.roll.from = l.active.id
		l.roll.done.Add(1)
	}
	l.mu.Unlock()
	if start {
		go l.rollBeside(l.active, l.takeID())
	}
}

func (l *Log) rollBeside(old *seg, id uint64) {
	err := l.swapBeside(old, id)
	if err != nil {
		l.metrics.SegmentRollsFailed.Add(1)
		l.opts.Logger.Warn("background roll failed", "log", l.opts.Name, "error", err)
	}
	l.mu.Lock()
	l.roll.running = false
	l.roll.failed = l.roll.failed || err != nil
	l.mu.Unlock()
	l.roll.done.Done()
}

// swapBeside creates the file without a header, whose base is not known yet,
// swaps under io, and seals the old segment without it.
func (l *Log) swapBeside(old *seg, id uint64) error {
	path := filepath.Join(l.dir, segment.FileName(id))
	file, err := l.fs.Create(path)
	if err != nil {
		return l.fileError("background roll", err)
	}
	if err := l.fs.SyncDir(l.dir); err != nil {
		return l.fileError("background roll", errors.Join(err, l.discard(path, file)))
	}
	s, err := l.swap(old, id, file)
	if s == nil {
		l.metrics.SegmentRollsDiscarded.Add(1)
		if discarded := l.discard(path, file); discarded != nil {
			err = l.fileError("background roll", errors.Join(err, discarded))
		}
		return err
	}
	if err := l.sealSegment(old, old.held.index()); err != nil {
		return err // retired stays set: nothing after it is ever acknowledged
	}
	l.mu.Lock()
	l.retired = nil
	l.mu.Unlock()
	l.letGo(old)
	l.mark.advance(l, segmentMark(s, s.synced.Load()))
	l.saveProducers(s.base)
	l.metrics.SegmentRollsBackground.Add(1)
	return nil
}

// swap installs the prepared file, unless a round has rolled already.
func (l *Log) swap(old *seg, id uint64, file fs.File) (*seg, error) {
	l.io.Lock()
	defer l.io.Unlock()
	if l.active != old || old.empty() || l.poisoned() != nil {
		return nil, nil
	}
	if _, err := file.WriteAt(l.nextHeader().Append(nil), 0); err != nil {
		return nil, l.fileError("background roll", err)
	}
	s := l.newSeg(id, l.written.offset)
	l.mu.Lock()
	l.retired = old
	l.mu.Unlock()
	l.install(s, l.opts.Descriptors.hold(l, s, file))
	l.metrics.UnsyncedBytes.Add(segment.HeaderSize)
	return s, nil
}

// discard removes a prepared file that is not needed.
func (l *Log) discard(path string, file fs.File) error {
	return errors.Join(file.Close(), l.fs.Remove(path), l.fs.SyncDir(l.dir))
}
