package fs

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
)

// TempSuffix ends the name of the file [WriteDurable] writes before it takes
// the place of the real one. A leftover of a crash means nothing.
const TempSuffix = ".tmp"

// MkdirDurable makes path and every missing directory above it, and syncs the
// parent of each one it makes. The parent of path is synced even if path was
// there: an earlier process may have died between making it and syncing
// (storage 2.3).
func MkdirDurable(f FS, path string) error {
	path = filepath.Clean(path)
	parent := filepath.Dir(path)
	err := f.Mkdir(path)
	if errors.Is(err, ErrNotExist) && parent != path {
		if err := MkdirDurable(f, parent); err != nil {
			return err
		}
		err = f.Mkdir(path)
	}
	if errors.Is(err, ErrExist) {
		err = wantDir(f, path)
	}
	if err != nil {
		return err
	}
	return f.SyncDir(parent)
}

// SyncParents syncs every directory above path: an earlier process may have died
// after it made one of them and before it synced the one above. Those this
// process may not open were there before it.
func SyncParents(f FS, path string) error {
	path = filepath.Clean(path)
	for parent := filepath.Dir(path); parent != path; path, parent = parent, filepath.Dir(parent) {
		if err := f.SyncDir(parent); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

func wantDir(f FS, path string) error {
	info, err := f.Stat(path)
	if err == nil && !info.Dir {
		err = fmt.Errorf("%s: a file is in the place of a directory: %w", path, ErrExist)
	}
	return err
}

// WriteDurable replaces the file at path by one holding data: after a crash at
// any moment the name holds the old content or the new one, whole. Two calls
// for one path must not run at once. After an error either content may be
// there.
func WriteDurable(f FS, path string, data []byte) error {
	temp := path + TempSuffix
	if err := writeSynced(f, temp, data); err != nil {
		_ = f.Remove(temp) // best effort: it means nothing, and the first error counts
		return err
	}
	if err := f.Rename(temp, path); err != nil {
		_ = f.Remove(temp)
		return err
	}
	return f.SyncDir(filepath.Dir(path))
}

// writeSynced makes name hold exactly data, whatever it held before.
func writeSynced(f FS, name string, data []byte) (err error) {
	file, err := f.Create(name)
	if errors.Is(err, ErrExist) {
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

// ReadFile reads a whole file of at most limit bytes; *[TooLargeError] if it
// is larger.
func ReadFile(f FS, path string, limit int64) (data []byte, err error) {
	file, err := f.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	size, err := file.Size()
	if err != nil {
		return nil, err
	}
	if size > limit {
		return nil, &TooLargeError{Path: path, Size: size, Limit: limit}
	}
	data = make([]byte, size)
	n, err := file.ReadAt(data, 0)
	if errors.Is(err, io.EOF) {
		err = nil // shorter than a moment ago, or exactly at its end
	}
	return data[:n], err
}
