package recovery

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/segment"
)

// Apply executes the steps of a plan in their order, each made durable before
// the next, so that a crash between any two leaves a directory for which
// Inspect plans the rest. It may be called again after a failure. A plan that
// refuses is answered with its Err, and nothing is touched.
//
// Of a plan that is Fresh the first segment is still to be created, with the
// id Plan.NextID.
func Apply(f fs.FS, dir string, p *Plan) error {
	if p.Verdict == Refuse {
		return p.Err
	}
	for _, step := range p.Steps {
		if err := apply(f, dir, step); err != nil {
			return fmt.Errorf("recover %s: %s: %w", dir, step, err)
		}
	}
	return nil
}

func apply(f fs.FS, dir string, s Step) error {
	switch s.Op {
	case RemoveSegment:
		if err := remove(f, dir, segment.FileName(s.Segment)); err != nil {
			return err
		}
		return remove(f, dir, segment.IndexName(s.Segment))
	case RemoveIndex:
		return remove(f, dir, segment.IndexName(s.Segment))
	case Cut:
		return cut(f, dir, s.Segment, s.Size)
	case Flush:
		return onFile(f, filepath.Join(dir, segment.FileName(s.Segment)), fs.File.Sync)
	case WriteIndex:
		return writeIndex(f, filepath.Join(dir, segment.IndexName(s.Segment)), segment.AppendIndex(nil, s.Base, s.Index), s.Repairs)
	case WriteGenerations:
		return fs.WriteDurable(f, filepath.Join(dir, segment.EpochsFile), s.Generations.Append(nil))
	case LowerMark, WriteMark:
		return WriteMarkFile(f, dir, s.Mark)
	}
	return fmt.Errorf("unknown step %d", s.Op)
}

// remove deletes a file, where it is still there, and makes that durable.
func remove(f fs.FS, dir, name string) error {
	if err := f.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return f.SyncDir(dir)
}

// cut shortens a segment. One that is shorter already is not the one that was
// planned for.
func cut(f fs.FS, dir string, id uint64, size int64) error {
	return onFile(f, filepath.Join(dir, segment.FileName(id)), func(file fs.File) error {
		have, err := file.Size()
		switch {
		case err != nil:
			return err
		case have < size:
			return fmt.Errorf("it has %d bytes", have)
		}
		if err := file.Truncate(size); err != nil {
			return err
		}
		return file.Sync()
	})
}

// writeIndex replaces an index. One that is only behind its segment is written
// without waiting for the device: it is synced when the segment is sealed, and
// nothing believes it before that.
func writeIndex(f fs.FS, path string, data []byte, durable bool) error {
	if durable {
		return fs.WriteDurable(f, path, data)
	}
	write := func(file fs.File) error {
		_, err := file.WriteAt(data, 0)
		return err
	}
	err := onFile(f, path, write)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := f.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// WriteMarkFile makes durable.mark say m, and makes that durable, in place: a
// mark is smaller than what a device writes at once.
func WriteMarkFile(f fs.FS, dir string, m segment.Mark) error {
	path := filepath.Join(dir, segment.MarkFile)
	write := func(file fs.File) error {
		if _, err := file.WriteAt(m.Append(nil), 0); err != nil {
			return err
		}
		if err := file.Truncate(segment.MarkSize); err != nil {
			return err
		}
		return file.Sync()
	}
	err := onFile(f, path, write)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := f.Create(path)
	if err != nil {
		return err
	}
	if err := errors.Join(write(file), file.Close()); err != nil {
		return err
	}
	return f.SyncDir(dir)
}

// onFile opens an existing file for writing while use runs.
func onFile(f fs.FS, path string, use func(fs.File) error) error {
	file, err := f.OpenWrite(path)
	if err != nil {
		return err
	}
	return errors.Join(use(file), file.Close())
}
