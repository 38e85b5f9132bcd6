package fs

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// Compare with errors.Is.
var (
	ErrNotExist    = fs.ErrNotExist
	ErrExist       = fs.ErrExist
	ErrUnsupported = errors.ErrUnsupported
)

// IsFull reports whether err says that the device or the quota has no room.
// Such a write can succeed later.
func IsFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// LockedError says that another holds the lock.
type LockedError struct {
	Path string
	PID  int // the holder's process id, 0 if unknown
}

func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%s is locked by another process", e.Path)
	}
	return fmt.Sprintf("%s is locked by process %d", e.Path, e.PID)
}

// TooLargeError says that a file is larger than its reader allows.
type TooLargeError struct {
	Path        string
	Size, Limit int64 // in bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%s has %d bytes, more than the %d allowed", e.Path, e.Size, e.Limit)
}
