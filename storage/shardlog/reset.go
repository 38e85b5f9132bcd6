package shardlog

import (
	"errors"
	"path/filepath"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/segment"
)

// ResetTo empties the log and places it at base: a copy that went another way,
// or fell hopelessly behind, begins anew there. It is refused with
// *BelowCommitError if it would drop a committed record at or past base.
func (l *Log) ResetTo(base uint64) error {
	return l.recut(func() error {
		commit := min(l.CommitOffset(), l.written.offset)
		if max(base, l.Base()) < commit {
			return &BelowCommitError{Offset: base, Commit: commit}
		}
		if s := l.active; s.synced.Load() < s.written {
			if err := l.syncSegment(s, s.held.file, s.written); err != nil {
				return err
			}
		}
		if err := l.reset(base); err != nil {
			return l.poison("reset", err)
		}
		return nil
	})
}

// reset deletes every segment, newest first, and then creates the new one. A
// crash leaves a prefix of the old log, or none, or the new one. The mark goes
// before the last segment does, which it would miss.
func (l *Log) reset(base uint64) error {
	if err := l.removeDerived(); err != nil {
		return err
	}
	if err := l.cutGenerations(0); err != nil {
		return err
	}
	old := l.segmentList()
	if err := l.mark.set(segmentMark(old[0], segment.HeaderSize)); err != nil {
		return err
	}
	s := l.newSeg(0, base)
	l.replaceAll(s)
	for i := len(old) - 1; i >= 0; i-- {
		if i == 0 {
			if err := l.removeMark(); err != nil {
				return err
			}
		}
		if err := l.removeSegment(old[i]); err != nil {
			return err
		}
	}
	return l.begin(s)
}

// replaceAll makes s, which is empty and has no file yet, all of the log for
// everyone in memory.
func (l *Log) replaceAll(s *seg) {
	l.cuts.Add(1)
	l.mu.Lock()
	l.claimed, l.claimedCRC = s.base, 0
	if l.producers != nil {
		l.producers.Rewind(0)
	}
	l.durable.Store(s.base)
	l.tail.Store(s.base)
	l.base.Store(s.base)
	l.mu.Unlock()
	l.written = position{offset: s.base}
	l.list.Lock()
	l.segments = []*seg{s}
	l.list.Unlock()
	l.cuts.Add(1)
}

func (l *Log) removeMark() error {
	l.mark.mu.Lock()
	defer l.mark.mu.Unlock()
	err := l.mark.file.Close()
	l.mark.file = nil
	if removed := l.fs.Remove(filepath.Join(l.dir, segment.MarkFile)); !errors.Is(removed, fs.ErrNotExist) {
		err = errors.Join(err, removed)
	}
	return errors.Join(err, l.fs.SyncDir(l.dir))
}
