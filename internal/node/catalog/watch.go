package catalog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"
)

// PollInterval is how often a catalog file is looked at.
const PollInterval = 2 * time.Second

// settled is how old a file's modification must be before an equal size and
// time is believed to mean equal content: a file system's clock may be coarse,
// and two writes can fall on one tick of it.
const settled = 10 * time.Second

// FileSystem is where a catalog and its key files are read.
type FileSystem interface {
	ReadFile(name string) ([]byte, error)
	Stat(name string) (fs.FileInfo, error)
}

// OSFiles is the operating system's file system.
type OSFiles struct{}

// ReadFile implements [FileSystem].
func (OSFiles) ReadFile(name string) ([]byte, error) { return os.ReadFile(name) }

// Stat implements [FileSystem].
func (OSFiles) Stat(name string) (fs.FileInfo, error) { return os.Stat(name) }

// Options are the parameters of [Open].
type Options struct {
	File         string
	Files        FileSystem
	ValidateName ValidateName
	Target       Target
	Logger       *slog.Logger
	Now          func() time.Time
}

// A Watcher keeps a target as the catalog file says. Its methods are for one
// goroutine.
type Watcher struct {
	o       Options
	applied applied

	files  []stamp // the catalog and its key files, as last looked at
	judged digest  // what was last applied or refused
	seen   digest  // what the last poll found
}

type digest [sha256.Size]byte

// A stamp is what is known of one file.
type stamp struct {
	path    string
	modTime time.Time
	size    int64
	content digest // of the bytes, or of the error that reading them gave
}

// Open reads the catalog and applies it. Any error, in the file or from the
// target, is returned: a node does not start with half a catalog.
func Open(o Options) (*Watcher, error) {
	w := &Watcher{o: o, applied: make(applied)}
	next, err := w.load()
	if err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	w.judged = combine(w.files)
	w.seen = w.judged
	if c := w.applied.apply(next, o.Target); len(c.faults) > 0 {
		return nil, fmt.Errorf("catalog %s: %w", o.File, errors.Join(c.faults...))
	}
	return w, nil
}

// Run polls at every tick until ctx ends.
func (w *Watcher) Run(ctx context.Context, ticks <-chan time.Time) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticks:
			w.Poll()
		}
	}
}

// Poll looks at the files once. A change is applied when a second poll finds
// it unaltered: a file that is just being written could read well and lack
// half its streams. A file that cannot be applied changes nothing and is
// logged once; what was applied before goes on being served.
func (w *Watcher) Poll() {
	w.look()
	found := combine(w.files)
	before := w.seen
	w.seen = found
	if found == w.judged || found != before {
		return
	}
	next, err := w.load()
	now := combine(w.files)
	if now != found && len(w.files) > 0 && w.files[0].content != before0(before, found, w.files[0].content) {
		w.seen = now
		return
	}
	w.judged, w.seen = now, now
	w.judge(next, err)
}
