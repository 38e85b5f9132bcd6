package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
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
	rounds, err := scanAll(f, dir)
	if err != nil {
		return 0, fmt.Errorf("read commit journal: %w", err)
	}
	for _, number := range voided {
		last = max(last, number)
	}
	r := replay{fs: f, root: root, files: make(map[place]fs.File)}
	defer func() { err = errors.Join(err, r.close()) }()
	for _, round := range rounds {
		last = max(last, round.number)
		if err := r.round(round, voided); err != nil {
			return 0, err
		}
	}
	if err := r.sync(); err != nil {
		return 0, err
	}
	if len(rounds) > 0 {
		logger.Info("commit journal applied", "rounds", len(rounds), "segments", r.segments, "bytes_missing", r.missing)
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

	sources  [2]fs.File
	source   []byte // a round
	scratch  []byte // what is in its place
	segments int
	missing  int64 // bytes that were not in place
}

// round applies the entries of a round that are not void.
func (r *replay) round(round found, voided voids) (err error) {
	f := r.sources[round.file]
	if f == nil {
		if f, err = r.fs.Open(filepath.Join(Dir(r.root), fileName(round.file))); err != nil {
			return err
		}
		r.sources[round.file] = f
	}
	if r.source, err = readRound(f, r.source, round.position, round.roundHeader); err != nil {
		return fmt.Errorf("read commit journal: %w", err)
	}
	_, entries, ok := parseRound(r.source)
	if !ok {
		return fmt.Errorf("read commit journal: %w", io.ErrUnexpectedEOF)
	}
	for _, e := range entries {
		if round.number <= voided[e.log] {
			continue
		}
		if err := r.apply(e); err != nil {
			return fmt.Errorf("bring a journal round to %s: %w", e.log, err)
		}
	}
	return nil
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
		if err := r.closeSegments(); err != nil {
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
	errs := r.closeSegments()
	for _, f := range r.sources {
		if f != nil {
			errs = errors.Join(errs, f.Close())
		}
	}
	return errs
}

func (r *replay) closeSegments() error {
	var errs error
	for p, f := range r.files {
		if f != nil {
			errs = errors.Join(errs, f.Close())
		}
		delete(r.files, p)
	}
	return errs
}
