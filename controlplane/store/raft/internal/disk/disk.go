// Package disk keeps the log, the ballot and the marks of one Raft member in
// one bbolt file.
//
// Three buckets. "log" maps an index, eight bytes big-endian, to an entry as
// entry.go has it. "ballot" holds what the library keeps of terms and votes;
// numbers are eight bytes big-endian. "marks" holds what this package keeps
// about the member. Every commit is on the disk before the call returns.
package disk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

var (
	logBucket    = []byte("log")
	ballotBucket = []byte("ballot")
	marksBucket  = []byte("marks")
)

// A Store is the file of one member. It is safe for concurrent use.
type Store struct {
	db           *bolt.DB
	beforeCommit func(step string)

	// writing is held over each write and what is remembered of it: the library
	// cuts the log while it appends to it.
	writing sync.Mutex

	mu          sync.Mutex
	first, last uint64 // of the log; both 0 when it is empty
	commit      uint64 // staged, or as it was on the disk
	voteTerm    *uint64
}

// Options of a store.
type Options struct {
	// NoSync leaves the operating system to write; for tests that end no machine.
	NoSync bool
	// BeforeCommit, if it is set, is called before each durable write with its
	// name. A test ends the goroutine there as a crash would.
	BeforeCommit func(step string)
}

// A DamagedError says that the file or an entry cannot be trusted.
type DamagedError struct {
	Path string
	What string
}

func (e *DamagedError) Error() string { return fmt.Sprintf("%s is damaged: %s", e.Path, e.What) }

// ErrInUse says that another process has the file open.
var ErrInUse = errors.New("the data directory is in use by another process")

// Open opens the file or makes it, and reads the whole log once to check it.
func Open(path string, o Options) (*Store, error) {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if err := create(path); err != nil {
			return nil, fmt.Errorf("create %s: %w", path, err)
		}
	}
	s := &Store{beforeCommit: o.BeforeCommit}
	err := guard(path, func() (err error) {
		s.db, err = open(path, o)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := guard(path, func() error { return s.check(path) }); err != nil {
		_ = s.db.Close()
		return nil, err
	}
	return s, nil
}

func open(path string, o Options) (*bolt.DB, error) {
	if info, err := os.Stat(path); err == nil && info.Size() == 0 {
		return nil, &DamagedError{Path: path, What: "it is empty"}
	}
	// The list of free pages is kept in the file: finding them anew would read
	// every page in a goroutine of bbolt's, where guard does not reach.
	db, err := bolt.Open(path, 0o600, &bolt.Options{
		Timeout:         time.Second,
		FreelistType:    bolt.FreelistMapType,
		InitialMmapSize: 16 << 20,
		NoSync:          o.NoSync,
	})
	if err == nil {
		return db, nil
	}
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, ErrInUse
	}
	var failed *fs.PathError
	var refused syscall.Errno
	if errors.As(err, &failed) || errors.As(err, &refused) { // the system's, not the file's
		return nil, err
	}
	return nil, &DamagedError{Path: path, What: err.Error()}
}

// create makes a file that is there whole or not at all, so that a file that
// lacks something is a damaged one.
func create(path string) error {
	unfinished := path + ".new"
	if err := os.Remove(unfinished); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	db, err := bolt.Open(unfinished, 0o600, nil)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{logBucket, ballotBucket, marksBucket} {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	if err := os.Rename(unfinished, path); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// guard turns what bbolt does on a damaged file, which is to panic or to read
// beyond its end, into an error.
func guard(path string, f func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = &DamagedError{Path: path, What: fmt.Sprint(p)}
		}
	}()
	return f()
}

// check reads everything once: each entry must be whole and follow the one
// before.
func (s *Store) check(path string) error {
	return s.db.View(func(tx *bolt.Tx) error {
		for _, name := range [][]byte{logBucket, ballotBucket, marksBucket} {
			if tx.Bucket(name) == nil {
				return &DamagedError{Path: path, What: fmt.Sprintf("the bucket %q is missing", name)}
			}
		}
		s.commit = number(tx.Bucket(marksBucket).Get(commitKey))
		c := tx.Bucket(logBucket).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			index := number(k)
			if s.first == 0 {
				s.first = index
			} else if index != s.last+1 {
				return &DamagedError{Path: path, What: fmt.Sprintf("entry %d is followed by entry %d", s.last, index)}
			}
			s.last = index
			if err := checkEntry(v); err != nil {
				return &DamagedError{Path: path, What: fmt.Sprintf("entry %d: %v", index, err)}
			}
		}
		return nil
	})
}

// update is one durable write. The caller holds writing where it remembers
// something of it.
func (s *Store) update(step string, f func(tx *bolt.Tx) error) error {
	if s.beforeCommit != nil {
		s.beforeCommit(step)
	}
	return s.db.Update(f)
}

// Close closes the file. What the log knows to be committed is written first.
func (s *Store) Close() error {
	s.mu.Lock()
	commit := s.commit
	s.mu.Unlock()
	err := s.update("commit index", func(tx *bolt.Tx) error {
		return tx.Bucket(marksBucket).Put(commitKey, bytesOf(commit))
	})
	return errors.Join(err, s.db.Close())
}

func bytesOf(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// number reads what bytesOf wrote; 0 for none.
func number(b []byte) uint64 {
	if len(b) != 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}
