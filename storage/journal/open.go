package journal

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/felixlog/felix/storage/fs"
)

// A DamagedError says that the journal changed after it was written: something
// acknowledged may be missing from the logs. Nothing was changed.
type DamagedError struct {
	Path     string
	Position int64
	Err      error // nil where a round is missing
}

func (e *DamagedError) Error() string {
	what := "a round was damaged after it was written"
	if e.Err != nil {
		what = e.Err.Error()
	}
	return fmt.Sprintf("commit journal %s, position %d: %s; if the machine has not lost power or crashed since, the logs hold everything themselves: move the directory %s away and start again",
		e.Path, e.Position, what, filepath.Dir(e.Path))
}

func (e *DamagedError) Unwrap() error { return e.Err }

// fileName is the name of the n-th file.
func fileName(n int) string { return fmt.Sprintf("%d.journal", n) }

// Open opens the journal of the store at root, after it has brought what a
// crash left in it to where it belongs. No log of the store may be open.
func Open(f fs.FS, root string, o Options) (*Journal, error) {
	if o.FileBytes == 0 {
		o.FileBytes = DefaultFileBytes
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.Sync == nil {
		o.Sync = fs.File.Sync
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.FileBytes < alignment || o.MaxBytes < 0 {
		return nil, fmt.Errorf("commit journal: files of %d bytes and rounds of %d", o.FileBytes, o.MaxBytes)
	}
	dir := Dir(root)
	if err := fs.MkdirDurable(f, dir); err != nil {
		return nil, fmt.Errorf("make directory of the commit journal: %w", err)
	}
	last, err := recoverAll(f, root, o.Logger)
	if err != nil {
		return nil, err
	}
	j := &Journal{fs: f, root: root, opts: o, gather: &round{}, spare: &round{}, epoch: 1, voids: make(voids)}
	j.gather.reset()
	j.spare.reset()
	j.written.Store(last)
	for i := range j.files {
		if j.files[i], err = openFile(f, filepath.Join(dir, fileName(i))); err != nil {
			return nil, errors.Join(fmt.Errorf("open commit journal: %w", err), j.closeFiles())
		}
	}
	return j, nil
}

func openFile(f fs.FS, path string) (*file, error) {
	opened, err := f.OpenWrite(path)
	if errors.Is(err, fs.ErrNotExist) {
		if opened, err = f.Create(path); err == nil {
			err = f.SyncDir(filepath.Dir(path))
		}
	}
	if err != nil {
		if opened != nil {
			err = errors.Join(err, opened.Close())
		}
		return nil, err
	}
	return &file{File: opened, path: path, logs: make(map[*Member]struct{})}, nil
}

// Close empties the journal, once all logs that use it are closed. If one of
// them could not sync its files, as it has told then, the journal keeps what it
// holds.
func (j *Journal) Close() error {
	j.mu.Lock()
	closed := j.closed
	j.closed = true
	j.mu.Unlock()
	if closed {
		return nil
	}
	j.checkpoints.Wait()
	synced := true
	for _, f := range j.files {
		for _, m := range f.members() {
			if err := m.log.SyncFiles(); err != nil {
				synced = false
				j.opts.Logger.Warn("commit journal is kept for recovery", "log", m.name, "error", err)
			}
		}
	}
	if !synced {
		return j.closeFiles()
	}
	return errors.Join(j.empty(), j.closeFiles())
}

func (j *Journal) empty() error {
	for _, f := range j.files {
		if err := emptyFile(f.File); err != nil {
			return fmt.Errorf("empty %s: %w", f.path, err)
		}
	}
	return removeVoids(j.fs, Dir(j.root))
}

func emptyFile(f fs.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	return f.Sync()
}

// removeVoids removes the list of voids, after the rounds it speaks of.
func removeVoids(f fs.FS, dir string) error {
	err := f.Remove(filepath.Join(dir, voidsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove list of voids: %w", err)
	}
	return f.SyncDir(dir)
}

func (j *Journal) closeFiles() error {
	var errs error
	for _, f := range j.files {
		if f != nil {
			errs = errors.Join(errs, f.Close())
		}
	}
	return errs
}
