package fstest

import (
	"fmt"
	"io"
	"sync"

	"github.com/felixlog/felix/storage/fs"
)

// Faults wraps a file system: operations that meet a [Rule] fail or wait, all
// are counted, and growth can be bounded. It is safe for concurrent use.
type Faults struct {
	inner fs.FS

	mu      sync.Mutex
	rules   []*Injected
	counts  [ops]int
	written int64
	limited bool
	left    int64 // bytes files may still grow, if limited
}

var _ fs.FS = (*Faults)(nil)

// NewFaults wraps a file system. Without rules it changes nothing.
func NewFaults(inner fs.FS) *Faults { return &Faults{inner: inner} }

// Inject adds a rule. The first that meets an operation decides.
func (f *Faults) Inject(r Rule) *Injected {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := &Injected{f: f, rule: r}
	f.rules = append(f.rules, i)
	return i
}

// FailSync fails syncs of files whose name contains path: times of them, or
// all if times is 0. The bytes stay unsynced.
func (f *Faults) FailSync(path string, times int) *Injected {
	return f.Inject(Rule{Ops: []Op{OpSync}, Path: path, Times: times})
}

// FailWrite fails writes to files whose name contains path, half written.
func (f *Faults) FailWrite(path string, times int, err error) *Injected {
	return f.Inject(Rule{Ops: []Op{OpWrite}, Path: path, Times: times, Err: err, Half: true})
}

// FailNth fails the n-th of all operations from now on, n from 1, and the
// later ones if all is set.
func (f *Faults) FailNth(n int, all bool, err error) *Injected {
	times := 1
	if all {
		times = 0
	}
	return f.Inject(Rule{Skip: n - 1, Times: times, Err: err})
}

// Block makes one kind of operation wait.
func (f *Faults) Block(op Op, path string) *Gate {
	g := NewGate()
	f.Inject(Rule{Ops: []Op{op}, Path: path, Gate: g})
	return g
}

// Clear ends all rules.
func (f *Faults) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

// Count is how many operations of a kind were begun, failed ones included.
func (f *Faults) Count(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[op]
}

// Syncs counts syncs of files; Writes and Reads likewise.
func (f *Faults) Syncs() int  { return f.Count(OpSync) }
func (f *Faults) Writes() int { return f.Count(OpWrite) }
func (f *Faults) Reads() int  { return f.Count(OpRead) }

// Written is how many bytes were written to files.
func (f *Faults) Written() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.written
}

// meet counts an operation and finds its rule.
func (f *Faults) meet(op Op, names ...string) (Rule, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[op]++
	for _, i := range f.rules {
		if i.meets(op, names) {
			return i.rule, true
		}
	}
	return Rule{}, false
}

// run does an operation as its rule wants it.
func (f *Faults) run(op Op, do func() error, names ...string) error {
	r, ok := f.meet(op, names...)
	if !ok {
		return do()
	}
	if r.Gate != nil {
		r.Gate.wait()
	}
	err := r.err()
	if err == nil {
		return do()
	}
	if r.After {
		if err := do(); err != nil {
			return err
		}
	}
	return injected(op, names[0], err)
}

func injected(op Op, name string, err error) error {
	return failed(op.String(), name, fmt.Errorf("%w (%w)", err, ErrInjected))
}

// Create implements fs.FS.
func (f *Faults) Create(name string) (fs.File, error) { return f.file(OpCreate, name, f.inner.Create) }

// Open implements fs.FS.
func (f *Faults) Open(name string) (fs.File, error) { return f.file(OpOpen, name, f.inner.Open) }

// OpenWrite implements fs.FS.
func (f *Faults) OpenWrite(name string) (fs.File, error) {
	return f.file(OpOpenWrite, name, f.inner.OpenWrite)
}

func (f *Faults) file(op Op, name string, open func(string) (fs.File, error)) (fs.File, error) {
	var file fs.File
	err := f.run(op, func() (err error) {
		file, err = open(name)
		return err
	}, name)
	if err != nil {
		if file != nil {
			_ = file.Close() // the caller is told that there is none
		}
		return nil, err
	}
	return &faultyFile{File: file, f: f, name: name}, nil
}

// Remove implements fs.FS.
func (f *Faults) Remove(name string) error {
	return f.run(OpRemove, func() error { return f.freeing(name, func() error { return f.inner.Remove(name) }) }, name)
}

// Rename implements fs.FS.
func (f *Faults) Rename(from, to string) error {
	return f.run(OpRename, func() error { return f.freeing(to, func() error { return f.inner.Rename(from, to) }) }, from, to)
}

// Mkdir implements fs.FS.
func (f *Faults) Mkdir(name string) error {
	return f.run(OpMkdir, func() error { return f.inner.Mkdir(name) }, name)
}

// List implements fs.FS.
func (f *Faults) List(name string) (names []string, err error) {
	err = f.run(OpList, func() (err error) {
		names, err = f.inner.List(name)
		return err
	}, name)
	return names, err
}

// Stat implements fs.FS.
func (f *Faults) Stat(name string) (info fs.Info, err error) {
	err = f.run(OpStat, func() (err error) {
		info, err = f.inner.Stat(name)
		return err
	}, name)
	return info, err
}

// SyncDir implements fs.FS.
func (f *Faults) SyncDir(name string) error {
	return f.run(OpSyncDir, func() error { return f.inner.SyncDir(name) }, name)
}

// Lock implements fs.FS.
func (f *Faults) Lock(name string) (lock io.Closer, err error) {
	err = f.run(OpLock, func() (err error) {
		lock, err = f.inner.Lock(name)
		return err
	}, name)
	return lock, err
}

// Free implements fs.FS: what the quota leaves, if there is one.
func (f *Faults) Free(name string) (bytes uint64, err error) {
	err = f.run(OpFree, func() (err error) {
		bytes, err = f.inner.Free(name)
		return err
	}, name)
	if left, limited := f.Quota(); limited && err == nil {
		bytes = min(bytes, uint64(left))
	}
	return bytes, err
}
