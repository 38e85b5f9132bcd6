package journal

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/segment"
)

// recoverAll brings what the journal holds to where it belongs and empties it.
// It answers the highest number a round may have had.
func recoverAll(f fs.FS, root string, logger *slog.Logger) (last uint64, err error) {
	dir := Dir(root)
	voided, err := readVoids(f, dir)
	if err != nil {
		return 0, fmt.Errorf("read list of voids: %w", err)
	}
	for _, number := range voided {
		last = max(last, number)
	}
	r := replay{fs: f, root: root, files: make(map[place]fs.File)}
	defer func() { err = errors.Join(err, r.close()) }()
	rounds, newest, err := walk(f, root, voided, r.apply)
	if err != nil {
		return 0, err
	}
	last = max(last, newest)
	if err := r.sync(); err != nil {
		return 0, err
	}
	if rounds > 0 {
		logger.Info("commit journal applied", "rounds", rounds, "segments", r.segments, "bytes_missing", r.missing)
	}
	for n := range 2 {
		if err := emptyNamed(f, filepath.Join(dir, fileName(n))); err != nil {
			return 0, fmt.Errorf("empty commit journal: %w", err)
		}
	}
	return last, removeVoids(f, dir)
}

func emptyNamed(f fs.FS, path string) error {
	file, err := f.OpenWrite(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(emptyFile(file), file.Close())
}

// place is a segment of a log.
type place struct {
	log     string
	segment uint64
}

// maxReplayFiles bounds the segments open at once during a replay.
const maxReplayFiles = 256

// A replay writes entries to where they belong.
type replay struct {
	fs    fs.FS
	root  string
	files map[place]fs.File // nil for a segment that is gone

	scratch  []byte // what is in a place already
	segments int
	missing  int64 // bytes that were not in place
}

func (r *replay) apply(e entry) error {
	if !filepath.IsLocal(e.log) {
		return fmt.Errorf("%q is no directory of the store", e.log)
	}
	f, err := r.open(place{e.log, e.segment})
	if f == nil || err != nil {
		return err
	}
	if cap(r.scratch) < len(e.bytes) {
		r.scratch = make([]byte, len(e.bytes))
	}
	there := r.scratch[:len(e.bytes)]
	n, _ := f.ReadAt(there, e.position) // what cannot be read is written
	if n == len(there) && bytes.Equal(there, e.bytes) {
		return nil
	}
	r.missing += int64(len(e.bytes))
	_, err = f.WriteAt(e.bytes, e.position)
	return err
}

func (r *replay) open(p place) (fs.File, error) {
	if f, ok := r.files[p]; ok {
		return f, nil
	}
	if len(r.files) >= maxReplayFiles {
		if err := r.sync(); err != nil {
			return nil, err
		}
		if err := r.close(); err != nil {
			return nil, err
		}
	}
	f, err := r.fs.OpenWrite(filepath.Join(r.root, p.log, segment.FileName(p.segment)))
	if errors.Is(err, fs.ErrNotExist) {
		f, err = nil, nil // trimmed since
	}
	if err != nil {
		return nil, err
	}
	r.files[p] = f
	if f != nil {
		r.segments++
	}
	return f, nil
}

// sync makes durable what was written, and what was there already: it may have
// been in the page cache alone.
func (r *replay) sync() error {
	for p, f := range r.files {
		if f == nil {
			continue
		}
		if err := f.Sync(); err != nil {
			return fmt.Errorf("sync segment %d of %s: %w", p.segment, p.log, err)
		}
	}
	return nil
}

func (r *replay) close() error {
	var errs error
	for p, f := range r.files {
		if f != nil {
			errs = errors.Join(errs, f.Close())
		}
		delete(r.files, p)
	}
	return errs
}
