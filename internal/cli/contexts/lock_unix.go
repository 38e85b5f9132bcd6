//go:build unix

package contexts

import (
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// Lock takes an exclusive lock on the file called name, waiting for another
// process to let go of it. The lock ends with the process at the latest.
func Lock(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		f.Close()
		return nil, &fs.PathError{Op: "lock", Path: name, Err: err}
	}
	return func() { f.Close() }, nil
}

// exposed says whether a file of this mode can be read by others.
func exposed(mode fs.FileMode) bool { return mode.Perm()&0o077 != 0 }
