//go:build unix

package fs

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// lock takes an advisory lock of the open file, so a second attempt fails in
// this process too, and the system drops it when the process dies.
func lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, filePerm)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		err = &LockedError{Path: name, PID: readPID(f)}
	case err != nil:
		err = &os.PathError{Op: "flock", Path: name, Err: err}
	default:
		err = writePID(f)
	}
	if err != nil {
		_ = f.Close() // nothing was written that matters
		return nil, err
	}
	return f, nil
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// readPID reads who holds the lock: 0 if the holder has not written it yet.
func readPID(f *os.File) int {
	var buf [20]byte
	n, _ := f.ReadAt(buf[:], 0) // a short file ends in io.EOF; what is there decides
	pid, err := strconv.Atoi(strings.TrimSpace(string(buf[:n])))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}

func free(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}
