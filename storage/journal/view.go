package journal

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/segment"
)

// A View is a file system as it will be once [Open] has brought what the
// journal holds to where it belongs. Nothing is changed: what is missing is
// held in memory.
type View struct {
	fs.FS
	root    string
	missing map[string][]patch // by path
}

// A patch is bytes that a file lacks.
type patch struct {
	at    int64
	bytes []byte
}

// NewView reads the journal of the store at root, if it has one. Error:
// [*DamagedError].
func NewView(f fs.FS, root string) (*View, error) {
	v := &View{FS: f, root: root, missing: make(map[string][]patch)}
	voided, err := readVoids(f, Dir(root))
	if err != nil {
		return nil, err
	}
	_, _, err = walk(f, root, voided, v.add)
	return v, err
}

// Missing is how many bytes the logs in a directory lack that the journal has.
func (v *View) Missing(dir string) int64 {
	var n int64
	for path, patches := range v.missing {
		if filepath.Dir(path) == filepath.Clean(dir) {
			for _, p := range patches {
				n += int64(len(p.bytes))
			}
		}
	}
	return n
}

func (v *View) add(e entry) error {
	path := filepath.Join(v.root, e.log, segment.FileName(e.segment))
	f, err := v.FS.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // trimmed since
	}
	if err != nil {
		return err
	}
	there := make([]byte, len(e.bytes))
	n, err := f.ReadAt(there, e.position)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if n < len(there) || !bytes.Equal(there, e.bytes) {
		v.missing[path] = append(v.missing[path], patch{e.position, bytes.Clone(e.bytes)})
	}
	return nil
}

// Open opens a file for reading, with what it lacks.
func (v *View) Open(name string) (fs.File, error) {
	f, err := v.FS.Open(name)
	patches := v.missing[filepath.Clean(name)]
	if err != nil || len(patches) == 0 {
		return f, err
	}
	size, err := f.Size()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &patched{File: f, patches: patches, size: grown(size, patches)}, nil
}

// Stat describes a file with what it lacks.
func (v *View) Stat(name string) (fs.Info, error) {
	info, err := v.FS.Stat(name)
	if err == nil && !info.Dir {
		info.Size = grown(info.Size, v.missing[filepath.Clean(name)])
	}
	return info, err
}

func grown(size int64, patches []patch) int64 {
	for _, p := range patches {
		size = max(size, p.at+int64(len(p.bytes)))
	}
	return size
}

// A patched file reads as if its patches were written to it.
type patched struct {
	fs.File
	patches []patch
	size    int64
}

func (f *patched) Size() (int64, error) { return f.size, nil }

func (f *patched) ReadAt(b []byte, at int64) (int, error) {
	n, err := f.File.ReadAt(b, at)
	if err != nil && !errors.Is(err, io.EOF) {
		return n, err
	}
	clear(b[n:])
	for _, p := range f.patches {
		from, to := max(at, p.at), min(at+int64(len(b)), p.at+int64(len(p.bytes)))
		if from < to {
			copy(b[from-at:to-at], p.bytes[from-p.at:])
		}
	}
	if left := f.size - at; int64(len(b)) > left {
		return int(max(left, 0)), io.EOF
	}
	return len(b), nil
}
