package raft

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	hraft "github.com/hashicorp/raft"

	"github.com/felixlog/felix/controlplane/store/memory"
)

// A snapshot is the magic, the index of the last command in it (eight bytes,
// big-endian), and the state as package memory encodes it. The library keeps a
// checksum beside it.
const (
	snapshotMagic  = "FLXSNAP1"
	snapshotHeader = len(snapshotMagic) + 8
	maxSnapshot    = 1 << 30 // bytes; what a state may take at the most
)

// A machine applies what the group has agreed on.
//
// At the start it applies by itself what was known to be committed when the
// member stopped: the library would wait for a leader. It leaves those entries
// out when the library comes to them.
type machine struct {
	state     *memory.Machine
	applied   progress           // commands and configurations
	committed func(index uint64) // is told what was applied
	stuck     func(error)

	starting atomic.Bool // the library is about to restore what replay has taken

	// Of the library's goroutine for applying, and before it starts of the one
	// that starts it.
	restored uint64 // the last command of the snapshot that replay took
	replayed uint64 // entries up to here were applied by replay
	heard    uint64 // the last entry from the library
}

// Apply is not called: ApplyBatch is there.
func (m *machine) Apply(l *hraft.Log) any { return m.ApplyBatch([]*hraft.Log{l})[0] }

// ApplyBatch applies entries in order and answers with a memory.Result each.
func (m *machine) ApplyBatch(logs []*hraft.Log) []any {
	results := make([]any, len(logs))
	for i, l := range logs {
		if l.Type == hraft.LogCommand && l.Index > m.replayed {
			results[i] = m.apply(l)
		}
	}
	if err := m.state.Stuck(); err != nil {
		m.stuck(err)
	}
	m.heard = logs[len(logs)-1].Index
	m.committed(m.heard)
	m.applied.advance(m.heard)
	return results
}

func (m *machine) apply(l *hraft.Log) memory.Result {
	var c memory.Command
	data, err := unpack(l.Data, maxImport+packFrom) // what the leader adds is far below packFrom
	if err == nil {
		err = json.Unmarshal(data, &c)
	}
	if err != nil {
		// The same bytes are refused by every member alike.
		return memory.Result{Kind: memory.KindError, Error: &memory.ResultError{
			Kind: memory.ErrorInternal, Detail: fmt.Sprintf("entry %d of the log is no command", l.Index),
		}}
	}
	return m.state.Apply(c)
}

// Snapshot takes a picture; it is encoded by Persist, while the group goes on.
func (m *machine) Snapshot() (hraft.FSMSnapshot, error) {
	if m.heard < m.replayed {
		return nil, fmt.Errorf("the state is at entry %d already, and the library at %d", m.replayed, m.heard)
	}
	image, err := m.state.Image()
	if err != nil {
		return nil, err
	}
	return &picture{index: m.applied.load(), image: image}, nil
}

// Restore replaces the state by that of a snapshot, or leaves it as it is.
func (m *machine) Restore(r io.ReadCloser) error {
	index, state, err := readSnapshot(r)
	if err != nil {
		return err
	}
	if m.starting.Load() { // replay has taken it, and went on from there
		if index != m.restored {
			return fmt.Errorf("the state was taken from another snapshot, up to entry %d", m.restored)
		}
		return nil
	}
	if err := m.state.Restore(state); err != nil {
		return err
	}
	m.replayed = 0
	m.applied.advance(index)
	return nil
}

// readSnapshot answers with the last command in a snapshot, and its state.
func readSnapshot(r io.Reader) (index uint64, state []byte, err error) {
	b, err := io.ReadAll(io.LimitReader(r, maxSnapshot+1))
	if err != nil {
		return 0, nil, err
	}
	if len(b) > maxSnapshot {
		return 0, nil, fmt.Errorf("the snapshot has more than %d bytes", maxSnapshot)
	}
	if len(b) < snapshotHeader || string(b[:len(snapshotMagic)]) != snapshotMagic {
		return 0, nil, errors.New("this is no snapshot of a control plane, or one of a newer version")
	}
	return binary.BigEndian.Uint64(b[len(snapshotMagic):]), b[snapshotHeader:], nil
}

// A picture is a snapshot that is not encoded yet.
type picture struct {
	index uint64
	image *memory.Image
}

// Persist writes the snapshot.
func (p *picture) Persist(sink hraft.SnapshotSink) error {
	b, err := p.image.Encode()
	if err == nil {
		_, err = sink.Write(binary.BigEndian.AppendUint64([]byte(snapshotMagic), p.index))
	}
	if err == nil {
		_, err = sink.Write(b)
	}
	if err != nil {
		return errors.Join(err, sink.Cancel())
	}
	return sink.Close()
}

// Release has nothing to give back.
func (p *picture) Release() {}
