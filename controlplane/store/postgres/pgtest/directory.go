package pgtest

import (
	"os"
	"path/filepath"
	"syscall"
)

const (
	prefix   = "felix-postgres-"
	lockName = "lock"

	// memoryNeeded is what has to be free in memory for a server to live there.
	memoryNeeded = 1 << 30
)

// A directory holds a server's data. Its lock says that it is in use: a test
// binary that is killed leaves the directory, and the next one removes it.
type directory struct {
	path string
	lock *os.File
}

// makeDirectory makes one, in memory where there is room, because creating
// databases is mostly files; or on disk.
func makeDirectory(disk bool) (*directory, error) {
	in := memoryDirectory()
	if disk {
		in = os.TempDir()
	}
	removeAbandoned(in)
	path, err := os.MkdirTemp(in, prefix)
	if err != nil {
		return nil, err
	}
	d := &directory{path: path}
	if d.lock, err = lockIn(path); err != nil {
		d.remove()
		return nil, err
	}
	return d, nil
}

// lockIn makes the lock file. It has its name only once it is locked.
func lockIn(path string) (*os.File, error) {
	f, err := os.CreateTemp(path, "new-lock-")
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(path, lockName))
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// removeAbandoned removes directories whose lock nobody holds.
func removeAbandoned(in string) {
	found, _ := filepath.Glob(filepath.Join(in, prefix+"*", lockName)) // fails on a bad pattern only
	for _, lock := range found {
		f, err := os.Open(lock)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(filepath.Dir(lock))
		}
		f.Close()
	}
}

// remove deletes the directory; what cannot be deleted is left to the next one.
func (d *directory) remove() {
	_ = os.RemoveAll(d.path)
	if d.lock != nil {
		d.lock.Close()
	}
}
