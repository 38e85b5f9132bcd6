package credential

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// maxFile bounds a token file in bytes.
const maxFile = 64 << 10

// A file is a token in a file, read again when the file changes.
type file struct {
	path string
	seen stamp
	text string
}

// A stamp tells one content of a file from another.
type stamp struct {
	size    int64
	changed int64 // in nanoseconds
}

// read answers the file's content, trimmed, and whether it is another than at
// the last time. An empty file is an error.
func (f *file) read() (text string, changed bool, err error) {
	info, err := os.Stat(f.path)
	if err != nil {
		return "", false, unreadable(f.path, err)
	}
	now := stamp{info.Size(), info.ModTime().UnixNano()}
	if now == f.seen && f.text != "" {
		return f.text, false, nil
	}
	text, err = readToken(f.path)
	if err != nil {
		return "", false, err
	}
	changed = text != f.text
	f.seen, f.text = now, text
	return text, changed, nil
}

// wrote notes what the file holds now. The next reading would not always tell:
// two writes may bear one time.
func (f *file) wrote(text string) {
	f.text = text
	if info, err := os.Stat(f.path); err == nil {
		f.seen = stamp{info.Size(), info.ModTime().UnixNano()}
	}
}

func readToken(path string) (string, error) {
	in, err := os.Open(path)
	if err != nil {
		return "", unreadable(path, err)
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxFile+1))
	switch text := strings.TrimSpace(string(data)); {
	case err != nil:
		return "", unreadable(path, err)
	case len(data) > maxFile:
		return "", fmt.Errorf("token file %s is longer than %d bytes", path, maxFile)
	case text == "":
		return "", fmt.Errorf("token file %s is empty", path)
	case strings.ContainsAny(text, " \t\r\n"):
		return "", fmt.Errorf("token file %s holds more than one token", path)
	default:
		return text, nil
	}
}

// unreadable drops the path that the cause repeats.
func unreadable(path string, err error) error {
	var cause *fs.PathError
	if errors.As(err, &cause) {
		err = cause.Err
	}
	return fmt.Errorf("token file %s: %w", path, err)
}

// replace writes text into the file at once: after a crash it holds the old
// text or the new. Only the owner may read it.
func replace(path, text string) error {
	dir := filepath.Dir(path)
	out, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return unreadable(path, err)
	}
	defer os.Remove(out.Name()) // nothing is there once it is renamed
	_, err = out.WriteString(text + "\n")
	if err == nil {
		err = out.Sync()
	}
	if closed := out.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(out.Name(), path)
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return unreadable(path, err)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
