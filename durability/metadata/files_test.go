package metadata

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A file is what one was at a moment.
type file struct {
	size int64
	sum  [sha256.Size]byte
}

// files are those of all logs that a broker has on disk: everything but what it
// knows of the cluster and the journal, which is of all shards and begins anew.
func (b *brokerProcess) files(t testing.TB) map[string]file {
	t.Helper()
	all := make(map[string]file)
	must(t, filepath.WalkDir(b.dir, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // removed meanwhile
		}
		if err != nil || d.IsDir() || strings.Contains(d.Name(), "catalog.json") || d.Name() == "LOCK" || filepath.Ext(path) == ".journal" {
			return err
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(b.dir, path)
		all[name] = file{int64(len(data)), sha256.Sum256(data)}
		return err
	}))
	return all
}

// filesOf are those of the shards of one stream or cache.
func (b *brokerProcess) filesOf(t testing.TB, name string) map[string]file {
	t.Helper()
	all := b.files(t)
	for path := range all {
		if !strings.Contains(path, "_"+name+"_") {
			delete(all, path)
		}
	}
	return all
}

// appended says whether a file is only ever written at its end, or once.
func appended(name string) bool {
	return filepath.Ext(name) == ".log" || filepath.Base(name) == "identity" || filepath.Base(name) == "uid"
}

// keeps says that every file is still there, and that logs begin with the bytes
// they had.
func (b *brokerProcess) keeps(before map[string]file) error {
	var all []error
	for name, was := range before {
		data, err := os.ReadFile(filepath.Join(b.dir, name))
		switch {
		case err != nil:
			all = append(all, err)
		case !appended(name):
		case int64(len(data)) < was.size:
			all = append(all, fmt.Errorf("%s had %d bytes and has %d", name, was.size, len(data)))
		case sha256.Sum256(data[:was.size]) != was.sum:
			all = append(all, fmt.Errorf("%s has other bytes", name))
		}
	}
	return errors.Join(all...)
}
