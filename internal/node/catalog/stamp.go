package catalog

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"time"
)

// A digest stands for the content of files.
type digest [sha256.Size]byte

// A stamp is what is known of one file.
type stamp struct {
	path    string
	modTime time.Time // before the content was read
	size    int64
	readAt  time.Time
	content digest // of the bytes, or of the error that reading them gave
}

// settledAfter is how old a file must have been when it was read for an equal
// size and time to mean equal content later: a file system's clock may be
// coarse, and two writes can fall on one tick of it.
const settledAfter = 10 * time.Second

// read returns a file's bytes and remembers its stamp.
func (w *Watcher) read(path string) ([]byte, error) {
	s, data, err := w.stamp(path)
	if !slices.ContainsFunc(w.files, func(known stamp) bool { return known.path == path }) {
		w.files = append(w.files, s)
	}
	return data, err
}

func (w *Watcher) stamp(path string) (stamp, []byte, error) {
	s := stamp{path: path, readAt: w.o.Now()}
	data, err := w.content(&s)
	if err != nil {
		s.content = sha256.Sum256([]byte("error: " + err.Error()))
		return s, nil, err
	}
	s.content = sha256.Sum256(data)
	return s, data, nil
}

func (w *Watcher) content(s *stamp) ([]byte, error) {
	info, err := w.o.Files.Stat(s.path)
	if err != nil {
		return nil, err
	}
	s.modTime, s.size = info.ModTime(), info.Size()
	if s.size > maxFile {
		return nil, fmt.Errorf("%s is %d bytes long, at most %d are allowed", s.path, s.size, maxFile)
	}
	return w.o.Files.ReadFile(s.path)
}

// look brings the stamps up to date, reading only files that may have changed.
func (w *Watcher) look() {
	for i, s := range w.files {
		info, err := w.o.Files.Stat(s.path)
		if err == nil && info.ModTime().Equal(s.modTime) && info.Size() == s.size && s.readAt.Sub(s.modTime) >= settledAfter {
			continue
		}
		w.files[i], _, _ = w.stamp(s.path) // an error is content too
	}
}

// combine is one digest for all files.
func combine(files []stamp) digest {
	h := sha256.New()
	for _, s := range files {
		fmt.Fprintf(h, "%d:%s", len(s.path), s.path)
		h.Write(s.content[:])
	}
	return digest(h.Sum(nil))
}

// altered says whether a file of both lists has another content in the second.
func altered(before, after []stamp) bool {
	for _, b := range before {
		for _, a := range after {
			if a.path == b.path && a.content != b.content {
				return true
			}
		}
	}
	return false
}
