package shardlog

import "github.com/felixlog/felix/storage/fs"

// A failed sync poisons the log and every other failure does not, so the two
// must be told apart wherever they come up, also through helpers of other
// packages. markedFS marks the error of each sync as a *syncError.
type markedFS struct{ fs.FS }

// syncError is the failure of a Sync or SyncDir.
type syncError struct{ err error }

func (e *syncError) Error() string { return "sync: " + e.err.Error() }
func (e *syncError) Unwrap() error { return e.err }

func markSync(err error) error {
	if err == nil {
		return nil
	}
	return &syncError{err}
}

func (m markedFS) SyncDir(dir string) error { return markSync(m.FS.SyncDir(dir)) }

func (m markedFS) Create(name string) (fs.File, error)    { return markFile(m.FS.Create(name)) }
func (m markedFS) Open(name string) (fs.File, error)      { return markFile(m.FS.Open(name)) }
func (m markedFS) OpenWrite(name string) (fs.File, error) { return markFile(m.FS.OpenWrite(name)) }

func markFile(f fs.File, err error) (fs.File, error) {
	if err != nil {
		return nil, err
	}
	return markedFile{f}, nil
}

type markedFile struct{ fs.File }

func (f markedFile) Sync() error { return markSync(f.File.Sync()) }
