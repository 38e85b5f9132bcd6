//go:build !unix

package fs

import (
	"errors"
	"io"
	"os"
)

// lock makes a file that must not exist yet. It survives a crash here, so the
// operator has to remove it then.
func lock(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, filePerm)
	if errors.Is(err, ErrExist) {
		return nil, &LockedError{Path: name}
	}
	if err != nil {
		return nil, err
	}
	return &lockFile{f}, nil
}

type lockFile struct{ f *os.File }

func (l *lockFile) Close() error {
	return errors.Join(l.f.Close(), os.Remove(l.f.Name()))
}

func free(string) (uint64, error) { return 0, ErrUnsupported }
