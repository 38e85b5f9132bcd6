package raft

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	hraft "github.com/hashicorp/raft"

	"github.com/felixlog/felix/controlplane/store/raft/internal/disk"
)

const (
	diskFile     = "raft.db"
	snapshotsDir = "snapshots" // the library's name for it
)

// A DamagedError says that the data directory holds less than the member had
// acknowledged. Nothing was changed in it.
type DamagedError struct {
	Dir   string
	Err   error
	Alone bool // no other member holds a copy
}

func (e *DamagedError) Error() string {
	remedy := "move the directory away and start this member again with the initial state \"existing\": it copies everything from the other members and votes again when it has caught up"
	if e.Alone {
		remedy = "restore the directory from a backup; this is the only member, and an empty one would serve an empty cluster"
	}
	return fmt.Sprintf("the data directory %s cannot be trusted: %v. To go on, %s", e.Dir, e.Err, remedy)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// openDisk opens the file of the member. A directory with snapshots and
// without the file has lost it.
func openDisk(dir string, o disk.Options) (*disk.Store, error) {
	path := filepath.Join(dir, diskFile)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		left, err := os.ReadDir(filepath.Join(dir, snapshotsDir))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		if len(left) > 0 {
			return nil, &disk.DamagedError{Path: path, What: "it is missing, and there are snapshots"}
		}
	}
	return disk.Open(path, o)
}

// inspect checks that snapshots and log together hold everything from the
// beginning, and answers with the index of the newest snapshot that is whole.
func inspect(d *disk.Store, snapshots hraft.SnapshotStore) (uint64, error) {
	marks, err := d.Marks()
	if err != nil {
		return 0, err
	}
	first, _ := d.FirstIndex()
	last, _ := d.LastIndex()
	list, err := snapshots.List()
	if err != nil {
		return 0, err
	}
	var whole uint64
	for _, meta := range list {
		_, r, err := snapshots.Open(meta.ID) // reads all of it, for its checksum
		if err == nil {
			_ = r.Close()
			whole = max(whole, meta.Index)
		}
	}
	switch {
	case last > 0 && first > whole+1:
		return 0, fmt.Errorf("the log begins at entry %d and no snapshot holds what was before", first)
	case whole < marks.Snapshot && last < marks.Snapshot:
		return 0, fmt.Errorf("the snapshot up to entry %d is missing or damaged", marks.Snapshot)
	case last > 0 && last < whole:
		// A snapshot from another member came in, and the end before the log behind
		// it was emptied. New entries will not follow on this one.
		return whole, d.DeleteRange(first, last)
	}
	return whole, nil
}

// lastApplicable is the newest entry up to index that the machine hears of; 0
// if it is in the snapshot.
func lastApplicable(d *disk.Store, snapshot, index uint64) (uint64, error) {
	for ; index > snapshot; index-- {
		var l hraft.Log
		if err := d.GetLog(index, &l); err != nil {
			return 0, err
		}
		if l.Type == hraft.LogCommand || l.Type == hraft.LogConfiguration {
			return index, nil
		}
	}
	return 0, nil
}
