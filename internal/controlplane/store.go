package controlplane

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"

	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/memory"
	"github.com/felixlog/felix/controlplane/store/postgres"
	"github.com/felixlog/felix/controlplane/store/raft"
	"github.com/felixlog/felix/internal/config"
)

// OpenStore opens the store that the settings name. Opening Postgres migrates
// it.
func OpenStore(ctx context.Context, cfg *config.ControlPlane, logger *slog.Logger) (store.Store, error) {
	limits := store.Limits{ChangesPage: cfg.ChangesPage, ChangesKept: cfg.ChangesKept}
	switch cfg.Backend {
	case config.BackendPostgres:
		return postgres.Open(ctx, postgres.Options{
			URL: cfg.Postgres.URL, MaxConns: cfg.Postgres.MaxConnections,
			ConnectTimeout: cfg.Postgres.ConnectTimeout, AcquireTimeout: cfg.Postgres.AcquireTimeout,
			Limits: limits, Logger: logger,
		})
	case config.BackendRaft:
		options, err := raftOptions(&cfg.Raft)
		if err != nil {
			return nil, err
		}
		options.Limits, options.Logger = limits, logger
		return raft.Open(ctx, options)
	default:
		return memory.Open(memory.Options{Limits: limits}), nil
	}
}

// A SettingsError says which setting of the store cannot be.
type SettingsError struct {
	Key string // of the setting, as in raft.peers
	Why string
}

func (e *SettingsError) Error() string { return fmt.Sprintf("settings: %s: %s", e.Key, e.Why) }

func refused(key, format string, args ...any) error {
	return &SettingsError{Key: key, Why: fmt.Sprintf(format, args...)}
}

func raftOptions(r *config.Raft) (raft.Options, error) {
	o := raft.Options{
		DataDir: r.DataDir, BindAddr: r.Bind, ClusterID: r.ClusterID, PeerToken: r.PeerToken, Insecure: r.Insecure,
		TLS:          raft.TLSFiles{Cert: r.TLSCert, Key: r.TLSKey, CA: r.TLSCA},
		InitialState: raft.InitialState(r.InitialState), ElectionTimeout: r.Election,
		SnapshotEntries: uint64(r.SnapshotLogs), LogsKept: uint64(r.LogsKept), WriteTimeout: r.WriteTimeout,
	}
	if r.Peers == "" {
		o.ElectionTimeout = 0 // alone it has nobody to wait for
		return o, nil
	}
	peers, err := parsePeers(r.Peers)
	if err != nil {
		return o, err
	}
	o.Peers = peers
	if o.NodeID, err = strconv.ParseUint(r.NodeID, 10, 64); err != nil {
		return o, refused("raft.node_id", "%q is none of the numbers in raft.peers", r.NodeID)
	}
	if _, member := peers[o.NodeID]; !member {
		return o, refused("raft.node_id", "%d is not in raft.peers", o.NodeID)
	}
	return o, nil
}

// parsePeers reads 1=host:port,2=host:port (control plane 12.5).
func parsePeers(text string) (map[uint64]string, error) {
	const key = "raft.peers"
	peers, owners := make(map[uint64]string), make(map[string]uint64)
	for part := range strings.SplitSeq(text, ",") {
		name, addr, found := strings.Cut(strings.TrimSpace(part), "=")
		id, err := strconv.ParseUint(name, 10, 64)
		if !found || err != nil || id == 0 {
			return nil, refused(key, "%q: want NUMBER=HOST:PORT, numbers from 1 on", part)
		}
		if host, port, err := net.SplitHostPort(addr); err != nil || host == "" || port == "" {
			return nil, refused(key, "%q is not HOST:PORT", addr)
		}
		if _, twice := peers[id]; twice {
			return nil, refused(key, "%d is there twice", id)
		}
		if other, twice := owners[addr]; twice {
			return nil, refused(key, "%d and %d have the same address, %s", other, id, addr)
		}
		peers[id], owners[addr] = addr, id
	}
	return peers, nil
}
