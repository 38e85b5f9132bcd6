package raft

import (
	"fmt"
	"time"

	hraft "github.com/hashicorp/raft"
)

const (
	appendEntries = 256 // in one write and in one message, at the most
	// rpcTimeout of a message between members: an import is one entry.
	rpcTimeout = 10 * time.Second
)

// bootstrap writes the first entry of a new log, the group itself; it does
// nothing where there is a log.
func (s *Store) bootstrap(servers []hraft.Server) error {
	has, err := hraft.HasExistingState(s.disk, s.disk, s.snapshots)
	if err != nil || has {
		return err
	}
	_, trans := hraft.NewInmemTransport(serverAddress(s.opts.NodeID))
	return hraft.BootstrapCluster(s.config(), s.disk, s.disk, s.snapshots, trans, hraft.Configuration{Servers: servers})
}

func (s *Store) config() *hraft.Config {
	c := hraft.DefaultConfig()
	c.LocalID = serverID(s.opts.NodeID)
	c.HeartbeatTimeout = s.opts.ElectionTimeout
	c.ElectionTimeout = s.opts.ElectionTimeout
	c.LeaderLeaseTimeout = s.opts.ElectionTimeout * 4 / 5
	c.CommitTimeout = s.opts.commitTimeout
	c.MaxAppendEntries = appendEntries
	c.TrailingLogs = s.opts.LogsKept
	c.SnapshotInterval = s.opts.SnapshotInterval
	c.SnapshotThreshold = s.opts.SnapshotEntries
	c.ShutdownOnRemove = false
	c.NoLegacyTelemetry = true
	c.Logger = newLibraryLog(s.opts.Logger)
	return c
}

func (s *Store) transport() hraft.Transport {
	if s.opts.alone() {
		_, t := hraft.NewInmemTransport(serverAddress(s.opts.NodeID))
		return t
	}
	inner := hraft.NewNetworkTransportWithConfig(&hraft.NetworkTransportConfig{
		Stream:  &streamLayer{Listener: s.mux.Raft(), mux: s.mux, self: s.opts.NodeID},
		MaxPool: 3,
		// No pipelines: one whose leader steps down while it sends never ends, and
		// Shutdown waits for it. Entries that wait share the next message anyway.
		MaxRPCsInFlight: 1,
		Timeout:         rpcTimeout,
		Logger:          newLibraryLog(s.opts.Logger),
	})
	return newGate(inner, s.withheld.Load, s.done)
}

// start takes part in the group, and returns when everything that was known to
// be committed is applied.
func (s *Store) start() error {
	if err := s.machine.replay(s.snapshots, s.disk); err != nil {
		return &DamagedError{Dir: s.opts.DataDir, Err: err, Alone: s.lonely()}
	}
	if err := s.Stuck(); err != nil {
		return err
	}
	r, err := s.newRaft()
	if err != nil {
		return &DamagedError{Dir: s.opts.DataDir, Err: err, Alone: s.lonely()}
	}
	s.raft.Store(r)
	s.work.Go(func() { s.watchLeadership(r) })
	for _, server := range r.GetConfiguration().Configuration().Servers {
		id := memberID(server.ID)
		if _, ok := s.opts.Peers[id]; !ok && (!s.opts.alone() || id != s.opts.NodeID) {
			return fmt.Errorf("raft: the data directory %s belongs to a group with member %d, which is not among the peers", s.opts.DataDir, id)
		}
	}
	return nil
}

// newRaft starts the library. It panics on a log that it cannot read.
func (s *Store) newRaft() (r *hraft.Raft, err error) {
	trans := s.transport()
	defer func() {
		if p := recover(); p != nil {
			r, err = nil, fmt.Errorf("%v", p)
		}
		if err != nil {
			if c, ok := trans.(hraft.WithClose); ok {
				_ = c.Close()
			}
		}
	}()
	defer s.machine.starting.Store(false)
	return hraft.NewRaft(s.config(), s.machine, s.disk, s.disk, s.snapshots, trans)
}
