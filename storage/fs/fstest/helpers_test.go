package fstest

import (
	"errors"
	"io"
	"testing"

	"github.com/felixlog/felix/storage/fs"
)

// failer is a test, of testing or of rapid.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

func check(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v", err)
	}
}

func create(t failer, f fs.FS, name string) fs.File {
	t.Helper()
	file, err := f.Create(name)
	check(t, err)
	return file
}

func write(t failer, file fs.File, at int64, b []byte) {
	t.Helper()
	_, err := file.WriteAt(b, at)
	check(t, err)
}

// content reads a file; ok is false if there is none.
func content(t failer, f fs.FS, name string) (b []byte, ok bool) {
	t.Helper()
	b, err := fs.ReadFile(f, name, 1<<30)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	check(t, err)
	return b, true
}

func closed(t *testing.T, c io.Closer) {
	t.Cleanup(func() { _ = c.Close() })
}
