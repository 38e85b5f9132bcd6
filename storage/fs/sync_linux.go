package fs

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Sync leaves out what no reader needs, the times of the file, and so saves a
// journal commit where the size did not change.
func (o *osFile) Sync() error {
	return o.control("fdatasync", unix.Fdatasync)
}

// Reserve keeps the size: a file ends where its bytes end.
func (o *osFile) Reserve(size int64) error {
	return o.control("fallocate", func(fd int) error {
		return unix.Fallocate(fd, unix.FALLOC_FL_KEEP_SIZE, 0, size)
	})
}

// control runs call with the file's descriptor, which stays open meanwhile,
// again as long as a signal interrupts it.
func (o *osFile) control(name string, call func(fd int) error) error {
	conn, err := o.f.SyscallConn()
	if err != nil {
		return err
	}
	var result error
	err = conn.Control(func(fd uintptr) {
		for {
			if result = call(int(fd)); !errors.Is(result, unix.EINTR) {
				return
			}
		}
	})
	if err == nil {
		err = result
	}
	if err != nil {
		return &os.PathError{Op: name, Path: o.f.Name(), Err: err}
	}
	return nil
}
