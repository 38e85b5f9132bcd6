package shardlog

import (
	"errors"
	"path/filepath"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/recovery"
	"github.com/felixlog/felix/storage/segment"
)

// RollNow seals the active segment and starts another. One without records is
// left as it is.
func (l *Log) RollNow() error {
	if err := l.settle(); err != nil {
		return err
	}
	l.admin.Lock()
	defer l.admin.Unlock()
	l.io.Lock()
	defer l.io.Unlock()
	if err := l.refused(); err != nil {
		return err
	}
	if l.active.empty() {
		return nil
	}
	return l.rollInline()
}

// rollInline replaces the active segment, in the order of storage 9.1: what a
// background roll retired, then the active segment, then the new one's name and
// header are on the device before anything is written to it. The caller holds
// io.
func (l *Log) rollInline() error {
	if err := l.poisoned(); err != nil {
		return err
	}
	old := l.active
	if err := l.syncRetired(); err != nil {
		return err
	}
	entries, _ := old.entries()
	if err := l.sealSegment(old, entries); err != nil {
		return err
	}
	if err := l.raiseDurable(l.written.offset); err != nil {
		return err
	}
	s, held, err := l.createNext()
	if err != nil {
		l.metrics.SegmentRollsFailed.Add(1)
		return l.fileError("roll", err)
	}
	l.install(s, held)
	l.metrics.SegmentRolls.Add(1)
	l.letGo(old)
	l.mark.advance(l, segmentMark(s, segment.HeaderSize))
	l.saveProducers(s.base)
	return nil
}

// sealSegment brings the data of a segment that gets no more of it to the
// device, gives back the blocks it does not use, and writes its index.
func (l *Log) sealSegment(s *seg, entries []segment.IndexEntry) error {
	file := s.held.file
	if s.synced.Load() < s.written {
		if err := l.syncSegment(s, file, s.written); err != nil {
			return err
		}
	}
	if s.reserved > s.written {
		if err := file.Truncate(s.written); err != nil {
			return l.fileError("seal", err)
		}
		if err := l.syncSegment(s, file, s.written); err != nil {
			return err
		}
		s.reserved = 0
	}
	if !s.indexed {
		l.writeIndex(s, entries)
		s.indexed = true
	}
	return nil
}

// writeIndex writes the index file of a segment. It can be rebuilt, so a
// failure is only counted.
func (l *Log) writeIndex(s *seg, entries []segment.IndexEntry) {
	path := filepath.Join(l.dir, segment.IndexName(s.id))
	if err := overwrite(l.fs, path, segment.AppendIndex(nil, s.base, entries)); err != nil {
		l.metrics.IndexWriteFailures.Add(1)
		l.opts.Logger.Warn("index not written", "log", l.opts.Name, "segment", s.id, "error", err)
	}
}

// overwrite makes name hold data and syncs it. Unlike fs.WriteDurable it may
// leave half of it behind, which a reader of an index can tell.
func overwrite(f fs.FS, name string, data []byte) (err error) {
	file, err := f.Create(name)
	if errors.Is(err, fs.ErrExist) {
		if file, err = f.OpenWrite(name); err == nil {
			err = file.Truncate(0)
		}
	}
	if file != nil {
		defer func() { err = errors.Join(err, file.Close()) }()
	}
	if err != nil {
		return err
	}
	if _, err = file.WriteAt(data, 0); err != nil {
		return err
	}
	return file.Sync()
}

// createNext makes the segment that follows what is written. An id whose file
// could not be removed after an earlier failure is passed over.
func (l *Log) createNext() (*seg, *opened, error) {
	for range maxSkippedIDs {
		s := l.newSeg(l.takeID(), l.written.offset)
		file, err := recovery.CreateSegment(l.fs, l.dir, s.id, l.nextHeader(), l.firstReserve())
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			l.nextID-- // the file is gone again
			return nil, nil, err
		}
		s.synced.Store(segment.HeaderSize)
		s.reserved = l.firstReserve()
		return s, l.opts.Descriptors.hold(l, s, file), nil
	}
	return nil, nil, fs.ErrExist
}

// maxSkippedIDs bounds the leftovers that one roll passes over.
const maxSkippedIDs = 64

func (l *Log) takeID() uint64 {
	id := l.nextID
	l.nextID++
	return id
}

// nextHeader is that of the next segment, which is not made before the newest
// record, as record times tell. The caller holds io.
func (l *Log) nextHeader() segment.Header {
	l.mu.Lock()
	newest := l.claimedMicros
	l.mu.Unlock()
	return segment.Header{
		BaseOffset:    l.written.offset,
		CreatedMicros: max(uint64(max(l.opts.Clock.Now().UnixMicro(), 0)), newest),
		PrevCRC:       l.written.crc,
	}
}

// install makes s the active segment and the one before it, if any, a sealed
// one. The caller holds io.
func (l *Log) install(s *seg, held *opened) {
	s.written = segment.HeaderSize
	s.activate(held, l.opts.IndexSpacing, nil)
	if old := l.active; old != nil {
		l.opts.Descriptors.seal(old)
	}
	l.active = s
	l.list.Lock()
	l.segments = append(l.segments[:len(l.segments):len(l.segments)], s)
	l.list.Unlock()
	l.count(s)
}

// letGo leaves the file of a segment that is sealed to Descriptors.
func (l *Log) letGo(s *seg) {
	l.opts.Descriptors.unpin(s.held)
	s.held = nil
}
