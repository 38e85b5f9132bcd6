package recovery

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/segment"
)

// CreateSegment makes the file of a segment that must not exist yet, and
// makes its name and its header durable before it returns the file, open for
// reading and writing. With reserve > 0 it first sets blocks aside for that
// many bytes; that they cannot be had is no error. Where anything else fails
// the half-made file is removed, so that a full disk leaves none behind.
func CreateSegment(f fs.FS, dir string, id uint64, h segment.Header, reserve int64) (fs.File, error) {
	path := filepath.Join(dir, segment.FileName(id))
	file, err := f.Create(path)
	if err != nil {
		return nil, fmt.Errorf("create segment: %w", err)
	}
	if err := fillSegment(f, dir, file, h, reserve); err != nil {
		return nil, errors.Join(fmt.Errorf("create segment %s: %w", path, err), discard(f, dir, path, file))
	}
	return file, nil
}

// fillSegment makes the new file's name durable before anything is in it: the
// header then says that the name holds.
func fillSegment(f fs.FS, dir string, file fs.File, h segment.Header, reserve int64) error {
	if reserve > 0 {
		_ = file.Reserve(reserve) // an append finds out whether there is room
	}
	if err := f.SyncDir(dir); err != nil {
		return err
	}
	if _, err := file.WriteAt(h.Append(nil), 0); err != nil {
		return err
	}
	return file.Sync()
}

// discard removes a half-made file.
func discard(f fs.FS, dir, path string, file fs.File) error {
	if err := errors.Join(file.Close(), f.Remove(path)); err != nil {
		return err
	}
	return f.SyncDir(dir)
}
