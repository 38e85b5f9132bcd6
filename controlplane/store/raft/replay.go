package raft

import (
	"errors"
	"fmt"

	hraft "github.com/hashicorp/raft"

	"github.com/felixlog/felix/controlplane/store/raft/internal/disk"
)

// replay brings the state to what was known to be committed when the member
// stopped: the newest snapshot that is whole, and the log behind it.
func (m *machine) replay(snapshots hraft.SnapshotStore, d *disk.Store) error {
	m.starting.Store(true)
	index, err := m.restoreNewest(snapshots)
	if err != nil {
		return err
	}
	committed := d.Committed()
	for i := index + 1; i <= committed; i++ {
		var l hraft.Log
		if err := d.GetLog(i, &l); err != nil {
			return err
		}
		if l.Type != hraft.LogCommand {
			continue
		}
		m.apply(&l)
		m.replayed = i
		m.applied.advance(i)
	}
	return nil
}

// restoreNewest answers with the index of the snapshot it took, 0 if there is
// none. Those that the library would pass over are passed over here as well.
func (m *machine) restoreNewest(snapshots hraft.SnapshotStore) (uint64, error) {
	list, err := snapshots.List()
	if err != nil {
		return 0, err
	}
	var failed error
	for _, meta := range list {
		last, err := m.restoreOne(snapshots, meta.ID)
		if err == nil {
			m.restored = last
			m.applied.advance(last)
			return meta.Index, nil
		}
		failed = errors.Join(failed, fmt.Errorf("snapshot %s: %w", meta.ID, err))
	}
	return 0, failed
}

func (m *machine) restoreOne(snapshots hraft.SnapshotStore, id string) (uint64, error) {
	_, r, err := snapshots.Open(id)
	if err != nil {
		return 0, err
	}
	defer func() { _ = r.Close() }()
	last, state, err := readSnapshot(r)
	if err != nil {
		return 0, err
	}
	return last, m.state.Restore(state)
}
