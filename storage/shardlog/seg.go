package shardlog

import (
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/felixlog/felix/storage/recovery"
	"github.com/felixlog/felix/storage/segment"
)

// seg is one segment of an open log: the active one, which has held and
// builder, or a sealed one, whose descriptor and index come and go with
// Descriptors.
type seg struct {
	id, base uint64
	path     string

	// What readers may see. Stored before the log's tail is.
	end      atomic.Uint64 // offset after the last committed record
	readable atomic.Int64  // bytes up to there
	newest   atomic.Uint64 // record time of the last batch, 0 for none
	newestAt atomic.Int64  // when it was appended, as Log.since tells it
	synced   atomic.Int64  // bytes known to be on the device

	// Of the active segment; the io lock guards them, and index the builder.
	written  int64   // good bytes in the file
	reserved int64   // bytes with blocks set aside
	held     *opened // the open file, pinned
	index    sync.RWMutex
	builder  *segment.Builder
	indexed  bool // the index file holds all of builder

	counted bool // in the gauges of the metrics
	dropped bool // left the log; guarded, like open, by the lock of Descriptors
	open    *opened
	// removing: an attempt to remove its file failed.
	removing atomic.Bool
}

func (l *Log) newSeg(id, base uint64) *seg {
	s := &seg{id: id, base: base, path: filepath.Join(l.dir, segment.FileName(id))}
	s.end.Store(base)
	s.readable.Store(segment.HeaderSize)
	return s
}

// recovered is a segment as recovery found it: all of it is on the device.
func (l *Log) recovered(r *recovery.Segment) *seg {
	s := l.newSeg(r.ID, r.Base)
	s.end.Store(r.End)
	s.readable.Store(r.Size)
	s.newest.Store(r.NewestMicros)
	s.newestAt.Store(int64(l.appendedAt(r.NewestMicros)))
	s.synced.Store(r.Size)
	s.written = r.Size
	return s
}

// activate makes s the segment that is appended to, with the index entries of
// what it holds.
func (s *seg) activate(held *opened, spacing int, entries []segment.IndexEntry) {
	b := segment.NewBuilder(spacing)
	for i, e := range entries {
		next := uint64(s.written)
		if i+1 < len(entries) {
			next = entries[i+1].Position
		}
		b.Add(e.Offset, e.Position, int(next-e.Position))
	}
	s.index.Lock()
	defer s.index.Unlock()
	s.held, s.builder, s.indexed = held, b, false
}

func (s *seg) empty() bool { return s.written <= segment.HeaderSize }

// wrote takes note of a batch at the end of the active segment.
func (s *seg) wrote(a *Appended) {
	s.index.Lock()
	s.builder.Add(a.First, uint64(s.written), a.Where.Length)
	s.index.Unlock()
	s.indexed = false
	s.written += int64(a.Where.Length)
}

// markSynced raises what is known to be on the device to bytes and answers how
// many of them were not known before.
func (s *seg) markSynced(bytes int64) int64 {
	for {
		old := s.synced.Load()
		if bytes <= old {
			return 0
		}
		if s.synced.CompareAndSwap(old, bytes) {
			return bytes - old
		}
	}
}

// entries is the index of the active segment; ok is false for a sealed one.
func (s *seg) entries() (entries []segment.IndexEntry, ok bool) {
	s.index.RLock()
	defer s.index.RUnlock()
	if s.builder == nil {
		return nil, false
	}
	return s.builder.Entries(), true
}

// retire takes the index away from a segment that is not active any more.
func (s *seg) retire() []segment.IndexEntry {
	s.index.Lock()
	defer s.index.Unlock()
	entries := s.builder.Entries()
	s.builder = nil
	return entries
}

// cutIndex trims the index of the active segment.
func (s *seg) cutIndex(offset uint64, size int64) {
	s.index.Lock()
	defer s.index.Unlock()
	s.builder.Cut(offset, uint64(size))
	s.indexed = false
}

// SegmentInfo describes one segment.
type SegmentInfo struct {
	ID        uint64
	Base, End uint64 // offsets, the end exclusive
	Bytes     int64
	// NewestMicros is the record time of the last batch, 0 if there is none.
	NewestMicros uint64
	Sealed       bool
}

// Segments describes the segments, oldest first; the last one is active.
func (l *Log) Segments() []SegmentInfo {
	segs := l.segmentList()
	infos := make([]SegmentInfo, len(segs))
	for i, s := range segs {
		infos[i] = SegmentInfo{
			ID: s.id, Base: s.base, End: s.end.Load(), Bytes: s.readable.Load(),
			NewestMicros: s.newest.Load(), Sealed: i+1 < len(segs),
		}
	}
	return infos
}

// Bytes is the size of all segments.
func (l *Log) Bytes() int64 {
	var n int64
	for _, s := range l.segmentList() {
		n += s.readable.Load()
	}
	return n
}

// segmentList is the list as it is now. It is never changed, only replaced.
func (l *Log) segmentList() []*seg {
	l.list.RLock()
	defer l.list.RUnlock()
	return l.segments
}
