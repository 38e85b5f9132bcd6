// Package ownfile keeps small files that are their owner's alone: tokens,
// keys, contexts.
package ownfile

import (
	"os"
	"path/filepath"
)

// Replace puts data in place of the file called name, mode 0600: a reader
// sees the old content or the new, and nobody but the owner sees either.
func Replace(name string, data []byte) error {
	tmp, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if err == nil {
		err = tmp.Sync()
	}
	if closeErr := tmp.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}
