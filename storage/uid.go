package storage

import (
	"errors"
	"fmt"
	"path/filepath"
	"unicode/utf8"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/segment"
)

// IdentityError refuses a log that belongs to another creation of its stream or
// cache: the name was deleted and created again, and the data of the earlier
// one is still there. It is neither served nor removed.
type IdentityError struct {
	// Path is the log's directory.
	Path string
	// Have is the uid on disk, Want that of the stream or cache asked for.
	Have, Want string
}

func (e *IdentityError) Error() string {
	return fmt.Sprintf("%s holds data of uid %s, and the stream or cache of this name now has uid %s: "+
		"move the directory away to begin anew, or restore the record of uid %s to serve what it holds", e.Path, e.Have, e.Want, e.Have)
}

// CheckUID refuses a uid that cannot be written down: at most 255 bytes of UTF-8.
func CheckUID(uid string) error {
	if !utf8.ValidString(uid) {
		return errors.New("storage: a uid is UTF-8")
	}
	if len(uid) > segment.MaxUID {
		return fmt.Errorf("storage: a uid of %d bytes: at most %d", len(uid), segment.MaxUID)
	}
	return nil
}

// claimUID checks that the log in dir belongs to a creation of its name, or
// marks it so where nothing says to which it belongs.
func claimUID(f fs.FS, dir string, key Key, uid string) error {
	if uid == "" {
		return nil
	}
	have, marked, err := readUID(f, dir)
	switch {
	case err != nil:
		return fmt.Errorf("open log %s: %w", key, err)
	case !marked:
		if err := fs.WriteDurable(f, filepath.Join(dir, segment.UIDFile), segment.UID(uid).Append(nil)); err != nil {
			return fmt.Errorf("open log %s: %w", key, err)
		}
		return nil
	case have != uid:
		return &IdentityError{Path: dir, Have: have, Want: uid}
	}
	return nil
}

// readUID reads to which creation of its name the log in dir belongs; marked is
// false where nothing says. A mark that does not verify is a
// *segment.CorruptionError: whose data it is must not be guessed.
func readUID(f fs.FS, dir string) (uid string, marked bool, err error) {
	path := filepath.Join(dir, segment.UIDFile)
	data, err := fs.ReadFile(f, path, segment.MaxSideFile)
	tooLarge, isTooLarge := errors.AsType[*fs.TooLargeError](err)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", false, nil
	case isTooLarge:
		return "", false, &segment.CorruptionError{Kind: segment.SideFileLength, Path: path, Err: tooLarge}
	case err != nil:
		return "", false, fmt.Errorf("read uid: %w", err)
	}
	found, err := segment.ParseUID(data)
	if damage, ok := errors.AsType[*segment.CorruptionError](err); ok {
		return "", false, damage.At(path, 0, 0)
	}
	return string(found), err == nil, err
}
