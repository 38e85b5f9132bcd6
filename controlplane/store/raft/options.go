package raft

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/raft/internal/peer"
)

// InitialState says whether an empty member may found a group (control plane
// 12.5).
type InitialState string

// The initial states.
const (
	// Existing members without state copy it from the group; the zero value means
	// the same.
	Existing InitialState = "existing"
	// New members form a group if a majority of its members has no state. Set it
	// for the first start only.
	New InitialState = "new"
)

// TLSFiles are the PEM files of mutual TLS between members: all three or none.
// They are read for each connection, so that they can be replaced.
type TLSFiles = peer.TLSFiles

// Options of a member. Zero durations and counts mean the defaults named.
type Options struct {
	// NodeID of this member, not 0. One member alone may leave it out.
	NodeID uint64
	// DataDir belongs to this member alone; it is made if it is not there.
	DataDir string
	// Peers are all members of the group, this one included: id to host:port of
	// the peer listener. They are the same on every member. Without peers and
	// address the member is a group of its own, forms it at its first start, and
	// listens nowhere.
	Peers map[uint64]string
	// BindAddr is where the peer listener is, host:port. Listener, if it is set,
	// takes its place and is closed by the store.
	BindAddr string
	Listener net.Listener
	// ClusterID names the group. Members of another one are refused, and so is a
	// data directory.
	ClusterID string
	// PeerToken is the secret of the group, at least 32 characters. Without TLS it
	// proves who connects and never travels, but what is said afterwards can be
	// read and changed on the way: use TLS outside a private network.
	PeerToken string
	TLS       TLSFiles
	// Insecure lets peers in without a token and without TLS.
	Insecure     bool
	InitialState InitialState

	// ElectionTimeout is the least time without a leader before a member stands;
	// the most is twice that. The leader is heard from every tenth of it, and
	// gives up when it has not heard from a majority for four fifths of it.
	// 0 means 600 ms, and 20 ms for one member alone.
	ElectionTimeout time.Duration
	WriteTimeout    time.Duration // of a write with all its attempts, and of catching up: 10 s
	AttemptTimeout  time.Duration // of one attempt: 2 s
	RetryInterval   time.Duration // between attempts: 250 ms
	ReplayTimeout   time.Duration // of applying, at the start, what was committed before: 30 s

	SnapshotEntries  uint64        // entries behind the last snapshot that make a new one due: 500
	SnapshotInterval time.Duration // how often that is looked at, at least half as often: 1 s
	LogsKept         uint64        // entries kept behind a snapshot: 1,000

	Limits store.Limits
	Logger *slog.Logger     // nil: none
	Clock  func() time.Time // nil: time.Now
	Random io.Reader        // nil: crypto/rand

	// Followers learn what is committed after commitTimeout, at most twice that.
	// Members ask each other every askInterval while one joins.
	commitTimeout, askInterval time.Duration
	// noSync leaves the operating system to write: for tests of what does not
	// hang on the disk.
	noSync bool
}

// MinPeerToken is the least length of a peer token, in bytes.
const MinPeerToken = 32

// alone says that the member is a group of its own without a listener.
func (o *Options) alone() bool { return len(o.Peers) == 0 }

// founder says whether this is the member that forms the group: the one with
// the lowest id, so that no two do.
func (o *Options) founder() bool { return slices.Min(slices.Collect(maps.Keys(o.Peers))) == o.NodeID }

// validate checks the settings together.
func (o *Options) validate() error {
	if o.DataDir == "" {
		return errors.New("raft: a data directory is required")
	}
	if o.alone() {
		if o.BindAddr != "" || o.Listener != nil {
			return errors.New("raft: a peer address without peers: name the members, or leave the address out")
		}
		return nil
	}
	switch {
	case o.NodeID == 0:
		return errors.New("raft: a node id is required with peers, 1 or higher")
	case o.BindAddr == "" && o.Listener == nil:
		return errors.New("raft: an address to bind is required with peers")
	case o.ClusterID == "":
		return errors.New("raft: a cluster id is required with peers")
	case len(o.ClusterID) > peer.MaxClusterID:
		return fmt.Errorf("raft: the cluster id has %d bytes, at most %d are allowed", len(o.ClusterID), peer.MaxClusterID)
	case o.InitialState != "" && o.InitialState != Existing && o.InitialState != New:
		return fmt.Errorf("raft: initial state %q is neither %q nor %q", o.InitialState, New, Existing)
	case o.PeerToken != "" && len(o.PeerToken) < MinPeerToken:
		return fmt.Errorf("raft: the peer token has %d characters, at least %d are required", len(o.PeerToken), MinPeerToken)
	}
	if err := o.TLS.Validate(); err != nil {
		return fmt.Errorf("raft: %w", err)
	}
	if o.PeerToken == "" && !o.TLS.Set() && !o.Insecure {
		return errors.New("raft: peers must be authenticated: set a peer token, or TLS files, or allow insecure peers")
	}
	return o.validatePeers()
}

func (o *Options) validatePeers() error {
	if _, ok := o.Peers[o.NodeID]; !ok {
		return fmt.Errorf("raft: node id %d is not among the peers", o.NodeID)
	}
	seen := make(map[string]uint64)
	for _, id := range slices.Sorted(maps.Keys(o.Peers)) {
		addr := o.Peers[id]
		if id == 0 {
			return errors.New("raft: a peer has the id 0, ids begin at 1")
		}
		if _, _, err := net.SplitHostPort(addr); err != nil {
			return fmt.Errorf("raft: address %q of peer %d is not host:port", addr, id)
		}
		if other, ok := seen[addr]; ok {
			return fmt.Errorf("raft: peers %d and %d have the same address %s", other, id, addr)
		}
		seen[addr] = id
	}
	return nil
}

// withDefaults fills in what is zero.
func (o Options) withDefaults() Options {
	if o.NodeID == 0 {
		o.NodeID = 1
	}
	if o.InitialState == "" {
		o.InitialState = Existing
	}
	if o.ElectionTimeout <= 0 {
		o.ElectionTimeout = 600 * time.Millisecond
		if o.alone() {
			o.ElectionTimeout = 20 * time.Millisecond
		}
	}
	setDefault(&o.WriteTimeout, 10*time.Second)
	setDefault(&o.AttemptTimeout, 2*time.Second)
	setDefault(&o.RetryInterval, 250*time.Millisecond)
	setDefault(&o.ReplayTimeout, 30*time.Second)
	setDefault(&o.SnapshotInterval, time.Second)
	setDefault(&o.commitTimeout, 10*time.Millisecond)
	setDefault(&o.askInterval, 200*time.Millisecond)
	setDefault(&o.SnapshotEntries, 500)
	setDefault(&o.LogsKept, 1000)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	return o
}

func setDefault[T time.Duration | uint64](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}
