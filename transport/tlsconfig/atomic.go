package tlsconfig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// writeAtomic puts text in place of a file in one step: a reader sees the old
// one or the new one.
func writeAtomic(file string, text []byte, mode fs.FileMode) error {
	return throughTemp(file, text, mode, os.Rename)
}

// createAtomic is writeAtomic for a file that must not exist: it fails with
// fs.ErrExist if it does.
func createAtomic(file string, text []byte, mode fs.FileMode) error {
	return throughTemp(file, text, mode, os.Link)
}

func throughTemp(file string, text []byte, mode fs.FileMode, place func(from, to string) error) (err error) {
	dir := filepath.Dir(file)
	// CreateTemp makes it readable by its owner only.
	f, err := os.CreateTemp(dir, filepath.Base(file)+".*.tmp")
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	defer os.Remove(f.Name()) // gone already after a rename
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = place(f.Name(), file)
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", file, err)
	}
	return nil
}

// syncDir makes a rename last. Where directories cannot be synced there is
// nothing more to do.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return nil
}
