package raft

import (
	"maps"
	"sync"
	"sync/atomic"

	hraft "github.com/hashicorp/raft"

	"github.com/felixlog/felix/controlplane/store/raft/internal/peer"
)

// Stats are the gauges and counters of a member (control plane 22).
type Stats struct {
	Term             uint64
	LeaderKnown      bool
	IsLeader         bool
	LastLogIndex     uint64
	LastAppliedIndex uint64
	SnapshotIndex    uint64

	ForwardedProposals    uint64 // attempts sent to a leader
	WriteTimeouts         uint64 // writes that ended without an answer
	DeduplicatedProposals uint64 // repeats that were answered with the first result
	UnsupportedCommands   uint64 // 1 when the member stopped at a command it does not know
	// PeersRejected counts connections by why they were refused.
	PeersRejected map[string]uint64
}

type counts struct {
	forwarded, writeTimeouts, unsupported, questions atomic.Uint64

	mu       sync.Mutex
	rejected map[string]uint64
}

func (c *counts) reject(why peer.Refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rejected == nil {
		c.rejected = make(map[string]uint64)
	}
	c.rejected[string(why)]++
}

// Stats reads them.
func (s *Store) Stats() Stats {
	st := Stats{
		ForwardedProposals:    s.counts.forwarded.Load(),
		WriteTimeouts:         s.counts.writeTimeouts.Load(),
		DeduplicatedProposals: s.Repeats(),
		UnsupportedCommands:   s.counts.unsupported.Load(),
	}
	s.counts.mu.Lock()
	st.PeersRejected = maps.Clone(s.counts.rejected)
	s.counts.mu.Unlock()
	st.LastLogIndex, _ = s.lastIndex()
	st.SnapshotIndex, _ = s.snapshotIndex()
	if r := s.raft.Load(); r != nil {
		_, leader := r.LeaderWithID()
		st.Term = r.CurrentTerm()
		st.LeaderKnown = leader != ""
		st.IsLeader = r.State() == hraft.Leader
		st.LastAppliedIndex = r.AppliedIndex()
	}
	return st
}

// lastIndex is the end of the log, snapshots included.
func (s *Store) lastIndex() (uint64, error) {
	if r := s.raft.Load(); r != nil {
		return r.LastIndex(), nil
	}
	last, err := s.disk.LastIndex()
	return max(last, s.whole), err
}

// snapshotIndex is the newest entry that a snapshot of this member holds.
func (s *Store) snapshotIndex() (uint64, error) {
	marks, err := s.disk.Marks()
	return marks.Snapshot, err
}
