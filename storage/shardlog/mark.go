package shardlog

import (
	"errors"
	"path/filepath"
	"sync"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/segment"
)

// durableMark is the file durable.mark, written in place after each flush
// (storage 5). It lags behind the device and never leads.
type durableMark struct {
	mu      sync.Mutex
	file    fs.File
	current segment.Mark
	scratch [segment.MarkSize]byte
	failing bool
}

func segmentMark(s *seg, bytes int64) segment.Mark {
	return segment.Mark{Segment: s.id, SyncedBytes: uint64(bytes)}
}

// openMark opens the mark, which recovery has written, or makes it durable for
// a log that has none.
func (l *Log) openMark(m segment.Mark) error {
	path := filepath.Join(l.dir, segment.MarkFile)
	file, err := l.fs.OpenWrite(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err = fs.WriteDurable(l.fs, path, m.Append(nil)); err == nil {
			file, err = l.fs.OpenWrite(path)
		}
	}
	if err != nil {
		return err
	}
	l.mark.file, l.mark.current = file, m
	return nil
}

// advance writes the mark if m is ahead of it. That it fails costs precision at
// the next recovery and nothing else.
func (d *durableMark) advance(l *Log, m segment.Mark) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if m.Segment < d.current.Segment || m.Segment == d.current.Segment && m.SyncedBytes <= d.current.SyncedBytes {
		return
	}
	err := d.write(m)
	if err != nil && !d.failing {
		l.opts.Logger.Warn("durable mark not written", "log", l.opts.Name, "error", err)
	}
	d.failing = err != nil
}

// set writes the mark whatever it was, and syncs it: before a cut, and when the
// log is closed.
func (d *durableMark) set(m segment.Mark) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.write(m); err != nil {
		return err
	}
	return d.file.Sync()
}

func (d *durableMark) write(m segment.Mark) error {
	if _, err := d.file.WriteAt(m.Append(d.scratch[:0]), 0); err != nil {
		return err
	}
	d.current = m
	return nil
}
