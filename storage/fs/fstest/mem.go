package fstest

import (
	"errors"
	"io"
	"math/rand/v2"
	"sync"

	"github.com/felixlog/felix/storage/fs"
)

// ErrDead is returned by a file system, its files and its locks, after its
// process was killed or its machine lost power.
var ErrDead = errors.New("fstest: the process is dead")

// DefaultFree is what Free answers, in bytes, unless SetFree said otherwise.
const DefaultFree = 1 << 40

// Mem is a file system in memory. Relative names and those from the root are
// the same. It is safe for concurrent use.
type Mem struct {
	mu    sync.RWMutex
	rng   *rand.Rand
	root  *dir
	locks map[string]bool
	free  uint64
	dead  bool
}

var _ fs.FS = (*Mem)(nil)

// New makes an empty file system. The seed decides what the system writes back
// on its own before a Sync.
func New(seed uint64) *Mem { return newMem(seed, newDir()) }

func newMem(seed uint64, root *dir) *Mem {
	return &Mem{rng: rand.New(rand.NewPCG(seed, 0)), root: root, locks: map[string]bool{}, free: DefaultFree}
}

// Kill ends the process: the result holds all that was written, and m is dead.
func (m *Mem) Kill() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
	next := newMem(m.rng.Uint64(), m.root)
	next.free = m.free
	return next
}

// Crash cuts the power: the result is one of the disks that may be found, and
// m is dead. For several disks of one moment, crash a Clone for each.
func (m *Mem) Crash(seed uint64) *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dead = true
	rng := rand.New(rand.NewPCG(seed, 1))
	next := newMem(rng.Uint64(), newCrash(rng).disk(m.root))
	next.free = m.free
	return next
}

// Clone copies the file system, with what is and what is not durable in it.
// Open files and locks stay with m.
func (m *Mem) Clone() *Mem {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := newMem(m.rng.Uint64(), newCopier().dir(m.root))
	next.free = m.free
	return next
}

// SetFree sets what Free answers, in bytes.
func (m *Mem) SetFree(bytes uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free = bytes
}

// Free implements fs.FS.
func (m *Mem) Free(name string) (uint64, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if _, err := m.dir("free", name); err != nil {
		return 0, err
	}
	return m.free, nil
}

// Lock implements fs.FS.
func (m *Mem) Lock(name string) (io.Closer, error) {
	f, err := m.Create(name)
	if errors.Is(err, fs.ErrExist) {
		f, err = m.OpenWrite(name)
	}
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	name = clean(name)
	if m.locks[name] {
		return nil, &fs.LockedError{Path: name}
	}
	m.locks[name] = true
	return &memLock{m: m, name: name}, nil
}

type memLock struct {
	m    *Mem
	name string
	once sync.Once
}

func (l *memLock) Close() error {
	l.once.Do(func() {
		l.m.mu.Lock()
		defer l.m.mu.Unlock()
		delete(l.m.locks, l.name)
	})
	return nil
}
