package raft

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	hraft "github.com/hashicorp/raft"

	"github.com/felixlog/felix/controlplane/internal/rounds"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/memory"
	"github.com/felixlog/felix/controlplane/store/raft/internal/disk"
	"github.com/felixlog/felix/controlplane/store/raft/internal/peer"
)

// A Store is one member of a group, and the store of the instance it runs in.
type Store struct {
	*memory.Machine
	opts      Options
	machine   *machine
	disk      *disk.Store
	snapshots *markedSnapshots
	whole     uint64 // the newest snapshot that was there at the start

	mux    *peer.Mux    // nil for one member alone
	caller *http.Client // of the others' routes

	raft       atomic.Pointer[hraft.Raft] // nil until the member takes part
	reign      atomic.Pointer[reign]      // nil while it does not lead
	led        sync.Once
	ledOnce    chan struct{} // closed when it first leads
	withheld   atomic.Bool
	barred     atomic.Pointer[reason] // why the state is not to be shown; nil if it is
	pending    chan struct{}
	maxBetween uint64
	clock      *memory.Clock // gives the times of commands
	counts     counts
	questions  *rounds.Rounds // to the leader, see current

	closing atomic.Bool
	done    chan struct{}
	life    context.Context // ends with done
	die     context.CancelFunc
	joining sync.WaitGroup
	work    sync.WaitGroup
}

var _ store.Store = (*Store)(nil)

// Open starts a member and waits until it has applied what it knew to be
// committed when it stopped; a member alone also leads when Open returns. A
// member without state goes on in the background, see [Store.Health]; until it
// has caught up with its group, reading from it is a [*store.UnavailableError].
// A directory that holds less than it should is a [*DamagedError].
func Open(ctx context.Context, o Options) (*Store, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	o = o.withDefaults()
	s := &Store{
		opts:    o,
		clock:   memory.NewClock(o.Clock),
		ledOnce: make(chan struct{}),
		pending: make(chan struct{}, maxPending),
		done:    make(chan struct{}),

		maxBetween: defaultBetween,
	}
	s.life, s.die = context.WithCancel(context.WithoutCancel(ctx))
	s.questions = rounds.New(currentInterval, o.WriteTimeout, s.question)
	s.barred.Store(&reason{errStarting})
	s.Machine = memory.NewMachine(memory.NewState(o.Limits), s, memory.Hooks{
		Name: "raft", Durable: true, Random: o.Random,
		Now: s.nowMillis, Serve: s.serve, CatchUp: s.current, Health: s.health, MayPlan: s.mayPlan,
		AcquireLease: s.acquireLease, ReleaseLease: s.releaseLease, Close: s.shutdown,
	})
	s.machine = &machine{state: s.Machine, stuck: s.stop, committed: func(index uint64) { s.disk.StageCommitted(index) }}
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	if err := s.openDirectory(); err != nil {
		return err
	}
	if s.opts.alone() {
		return s.openAlone(ctx)
	}
	ln := s.opts.Listener
	if ln == nil {
		var err error
		if ln, err = net.Listen("tcp", s.opts.BindAddr); err != nil {
			return fmt.Errorf("raft: listen for peers: %w", err)
		}
	}
	s.mux = peer.Listen(ln, peer.Config{
		ClusterID: s.opts.ClusterID, NodeID: s.opts.NodeID, Peers: s.opts.Peers,
		Token: s.opts.PeerToken, TLS: s.opts.TLS, Random: s.opts.Random, Logger: s.opts.Logger, Rejected: s.counts.reject,
	})
	s.caller = newCaller(s.mux)
	routes := s.mux.HTTP()
	s.work.Go(func() { s.serveRoutes(routes) })
	if s.withheld.Load() {
		s.joining.Go(func() { s.join(s.life) })
		return nil
	}
	if err := s.start(); err != nil {
		return err
	}
	s.unbar()
	return nil
}

func (s *Store) openAlone(ctx context.Context) error {
	self := hraft.Server{ID: serverID(s.opts.NodeID), Address: serverAddress(s.opts.NodeID), Suffrage: hraft.Voter}
	if err := s.bootstrap([]hraft.Server{self}); err != nil {
		return err
	}
	if err := s.start(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.ReplayTimeout)
	defer cancel()
	select {
	case <-ctx.Done():
		return fmt.Errorf("raft: this member does not come to lead itself: %w", ctx.Err())
	case <-s.ledOnce:
	}
	s.unbar()
	return nil
}

// openDirectory opens what the member keeps, and refuses what is not its own or
// lacks something.
func (s *Store) openDirectory() error {
	dir := s.opts.DataDir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("raft: %w", err)
	}
	var err error
	if s.disk, err = openDisk(dir, disk.Options{NoSync: s.opts.noSync}); err != nil {
		var damaged *disk.DamagedError
		if errors.As(err, &damaged) {
			return &DamagedError{Dir: dir, Err: err, Alone: s.lonely()}
		}
		return fmt.Errorf("raft: open %s: %w", filepath.Join(dir, diskFile), err)
	}
	if err := s.identify(); err != nil {
		return err
	}
	files, err := hraft.NewFileSnapshotStoreWithLogger(dir, snapshotsKept, newLibraryLog(s.opts.Logger))
	if err != nil {
		return fmt.Errorf("raft: %w", err)
	}
	s.snapshots = &markedSnapshots{SnapshotStore: files, disk: s.disk}
	if s.whole, err = inspect(s.disk, files); err != nil {
		return &DamagedError{Dir: dir, Err: err, Alone: s.lonely()}
	}
	return nil
}

// lonely says that no other member has a copy of what this one holds.
func (s *Store) lonely() bool { return len(s.opts.Peers) <= 1 }

// identify compares the directory with the settings; a new one is marked first
// of all, as one whose member must not vote yet.
func (s *Store) identify() error {
	marks, err := s.disk.Marks()
	if err != nil {
		return err
	}
	switch {
	case marks.NodeID == 0:
		marks.Withheld = !s.opts.alone()
		if err := s.disk.Mark(s.opts.ClusterID, s.opts.NodeID, marks.Withheld); err != nil {
			return err
		}
	case marks.ClusterID != s.opts.ClusterID:
		return fmt.Errorf("raft: the data directory %s belongs to cluster %q, and this member to %q", s.opts.DataDir, marks.ClusterID, s.opts.ClusterID)
	case marks.NodeID != s.opts.NodeID:
		return fmt.Errorf("raft: the data directory %s belongs to member %d, and this is member %d", s.opts.DataDir, marks.NodeID, s.opts.NodeID)
	case marks.Withheld && s.opts.alone():
		return fmt.Errorf("raft: the data directory %s belongs to a member of a group: name its peers", s.opts.DataDir)
	}
	s.withheld.Store(marks.Withheld)
	return nil
}

// Addr is where the peer listener is; nil for one member alone.
func (s *Store) Addr() net.Addr {
	if s.mux == nil {
		return nil
	}
	return s.mux.Addr()
}

func (s *Store) closed() bool { return s.closing.Load() }
