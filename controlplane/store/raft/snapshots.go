package raft

import (
	hraft "github.com/hashicorp/raft"

	"github.com/felixlog/felix/controlplane/store/raft/internal/disk"
)

// snapshotsKept is how many are kept: the newest may turn out to be damaged.
const snapshotsKept = 2

// A markedSnapshots is a snapshot store that leaves a mark, in another file, of
// what it holds, so that a snapshot that is gone is missed.
type markedSnapshots struct {
	hraft.SnapshotStore
	disk *disk.Store
}

// Create begins a snapshot.
func (m *markedSnapshots) Create(version hraft.SnapshotVersion, index, term uint64, configuration hraft.Configuration,
	configurationIndex uint64, trans hraft.Transport,
) (hraft.SnapshotSink, error) {
	sink, err := m.SnapshotStore.Create(version, index, term, configuration, configurationIndex, trans)
	if err != nil {
		return nil, err
	}
	return &markedSink{SnapshotSink: sink, disk: m.disk, index: index}, nil
}

type markedSink struct {
	hraft.SnapshotSink
	disk  *disk.Store
	index uint64
}

// Close completes the snapshot. The log behind it is cut only after this.
func (s *markedSink) Close() error {
	if err := s.SnapshotSink.Close(); err != nil {
		return err
	}
	return s.disk.MarkSnapshot(s.index)
}
