package fstest

import (
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	felixfs "github.com/felixlog/felix/storage/fs"
)

func failed(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

func clean(name string) string { return path.Join("/", filepath.ToSlash(name)) }

// parent finds the directory that holds, or would hold, name. m.mu is held.
func (m *Mem) parent(op, name string) (d *dir, base string, err error) {
	if m.dead {
		return nil, "", failed(op, name, ErrDead)
	}
	cleaned := clean(name)
	if cleaned == "/" {
		return nil, "", failed(op, name, syscall.EBUSY)
	}
	d = m.root
	up, base := path.Split(cleaned)
	for part := range strings.SplitSeq(strings.Trim(up, "/"), "/") {
		if part == "" {
			continue
		}
		switch n := d.names[part].(type) {
		case nil:
			return nil, "", failed(op, name, fs.ErrNotExist)
		case *file:
			return nil, "", failed(op, name, syscall.ENOTDIR)
		case *dir:
			d = n
		}
	}
	return d, base, nil
}

// find finds what is at name. m.mu is held.
func (m *Mem) find(op, name string) (node, error) {
	if clean(name) == "/" && !m.dead {
		return m.root, nil
	}
	d, base, err := m.parent(op, name)
	if err != nil {
		return nil, err
	}
	n, ok := d.names[base]
	if !ok {
		return nil, failed(op, name, fs.ErrNotExist)
	}
	return n, nil
}

func (m *Mem) dir(op, name string) (*dir, error) {
	n, err := m.find(op, name)
	if err != nil {
		return nil, err
	}
	d, ok := n.(*dir)
	if !ok {
		return nil, failed(op, name, syscall.ENOTDIR)
	}
	return d, nil
}

func (m *Mem) file(op, name string) (*file, error) {
	n, err := m.find(op, name)
	if err != nil {
		return nil, err
	}
	f, ok := n.(*file)
	if !ok {
		return nil, failed(op, name, syscall.EISDIR)
	}
	return f, nil
}

// Create implements fs.FS.
func (m *Mem) Create(name string) (felixfs.File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := &file{}
	if err := m.add("create", name, f); err != nil {
		return nil, err
	}
	return &handle{m: m, f: f, name: name, writable: true}, nil
}

// Mkdir implements fs.FS.
func (m *Mem) Mkdir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if clean(name) == "/" && !m.dead {
		return failed("mkdir", name, fs.ErrExist)
	}
	return m.add("mkdir", name, newDir())
}

func (m *Mem) add(op, name string, n node) error {
	d, base, err := m.parent(op, name)
	if err != nil {
		return err
	}
	if d.names[base] != nil {
		return failed(op, name, fs.ErrExist)
	}
	d.apply(change{set: base, node: n})
	return nil
}

// Open implements fs.FS.
func (m *Mem) Open(name string) (felixfs.File, error) { return m.open(name, false) }

// OpenWrite implements fs.FS.
func (m *Mem) OpenWrite(name string) (felixfs.File, error) { return m.open(name, true) }

func (m *Mem) open(name string, writable bool) (felixfs.File, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	f, err := m.file("open", name)
	if err != nil {
		return nil, err
	}
	return &handle{m: m, f: f, name: name, writable: writable}, nil
}

// Remove implements fs.FS.
func (m *Mem) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, base, err := m.parent("remove", name)
	if err != nil {
		return err
	}
	n, ok := d.names[base]
	if !ok {
		return failed("remove", name, fs.ErrNotExist)
	}
	if sub, ok := n.(*dir); ok && len(sub.names) > 0 {
		return failed("remove", name, syscall.ENOTEMPTY)
	}
	d.apply(change{remove: base})
	return nil
}

// Rename implements fs.FS.
func (m *Mem) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	source, old, err := m.parent("rename", from)
	if err != nil {
		return err
	}
	target, base, err := m.parent("rename", to)
	if err != nil {
		return err
	}
	n, ok := source.names[old]
	if !ok {
		return failed("rename", from, fs.ErrNotExist)
	}
	if clean(from) == clean(to) {
		return nil
	}
	if _, isDir := target.names[base].(*dir); isDir {
		return failed("rename", to, fs.ErrExist)
	}
	if source == target {
		source.apply(change{remove: old, set: base, node: n})
		return nil
	}
	target.apply(change{set: base, node: n})
	source.apply(change{remove: old})
	return nil
}

// List implements fs.FS.
func (m *Mem) List(name string) ([]string, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	d, err := m.dir("list", name)
	if err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(d.names)), nil
}

// Stat implements fs.FS.
func (m *Mem) Stat(name string) (felixfs.Info, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	n, err := m.find("stat", name)
	if err != nil {
		return felixfs.Info{}, err
	}
	if f, ok := n.(*file); ok {
		return felixfs.Info{Size: f.size}, nil
	}
	return felixfs.Info{Dir: true}, nil
}

// SyncDir implements fs.FS.
func (m *Mem) SyncDir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	d, err := m.dir("syncdir", name)
	if err != nil {
		return err
	}
	d.sync()
	return nil
}
