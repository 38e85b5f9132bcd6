package catalog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"
)

// PollInterval is how often a catalog file is looked at.
const PollInterval = 2 * time.Second

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
	files   []stamp // the catalog and its key files, as last looked at
	judged  digest  // of the files that were last applied or refused
	seen    digest  // of the files at the last poll
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
	steady := found == w.seen
	w.seen = found
	if found == w.judged || !steady {
		return
	}
	looked := w.files
	next, err := w.load()
	w.seen = combine(w.files)
	if altered(looked, w.files) {
		return // written to between the look and the reading: wait for it to settle
	}
	w.judged = w.seen
	w.judge(next, err)
}

// judge applies a new catalog or says why not.
func (w *Watcher) judge(next *Catalog, err error) {
	if err == nil {
		err = w.applied.conflicts(next)
	}
	if err != nil {
		w.o.Logger.Error("catalog refused, the one before stays in force", "file", w.o.File, "error", err)
		return
	}
	c := w.applied.apply(next, w.o.Target)
	for _, fault := range c.faults {
		w.o.Logger.Error("catalog applied in part", "file", w.o.File, "error", fault)
	}
	w.o.Logger.Info("catalog applied", "file", w.o.File, "added", c.added, "removed", c.removed, "failed", len(c.faults))
}

// load reads and parses the catalog and remembers every file it read.
func (w *Watcher) load() (*Catalog, error) {
	w.files = nil
	data, err := w.read(w.o.File)
	if err != nil {
		return nil, err
	}
	return parse(w.o.File, data, w.o.ValidateName, w.read)
}
