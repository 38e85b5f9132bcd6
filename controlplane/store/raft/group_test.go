package raft

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/store"
)

const testToken = "a token of a group, long enough for it"

// patience is how long a test waits for what must come.
const patience = 60 * time.Second

func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// A group is some members in this process, with a link for each ordered pair.
type group struct {
	t       testing.TB
	dir     string
	base    Options
	members map[uint64]*Store
	addrs   map[uint64]*slot
	links   map[[2]uint64]*link
}

// newGroup starts n members and waits until all are healthy.
func newGroup(t testing.TB, n uint64, base Options) *group {
	t.Helper()
	g := coldGroup(t, n, base)
	for id := range g.addrs {
		g.start(id)
	}
	g.settle()
	return g
}

func coldGroup(t testing.TB, n uint64, base Options) *group {
	t.Helper()
	if base.ElectionTimeout == 0 {
		base.ElectionTimeout = 250 * time.Millisecond
	}
	if base.commitTimeout == 0 {
		base.commitTimeout = 5 * time.Millisecond
	}
	base.askInterval = 20 * time.Millisecond
	base.ClusterID = "test"
	base.PeerToken = testToken
	base.InitialState = New
	g := &group{t: t, dir: t.TempDir(), base: base, members: make(map[uint64]*Store)}
	g.addrs, g.links = newLinks(t, n)
	t.Cleanup(func() {
		// Nobody is left to hand leadership to: the ways between them go first.
		var closing sync.WaitGroup
		for _, s := range g.members {
			_ = s.mux.Close()
		}
		for _, s := range g.members {
			closing.Go(func() { _ = s.Close() })
		}
		closing.Wait()
	})
	return g
}

func (g *group) dataDir(id uint64) string { return filepath.Join(g.dir, fmt.Sprint(id)) }

func (g *group) options(id uint64) Options {
	o := g.base
	o.NodeID = id
	o.DataDir = g.dataDir(id)
	o.Peers = make(map[uint64]string)
	for to := range g.addrs {
		o.Peers[to] = g.links[[2]uint64{id, to}].addr()
	}
	if testing.Verbose() && o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(g.t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo})).With("member", id)
	}
	return o
}

func (g *group) start(id uint64) *Store {
	g.t.Helper()
	s, err := g.open(id, g.options(id))
	if err != nil {
		g.t.Fatalf("member %d: %v", id, err)
	}
	return s
}

func (g *group) open(id uint64, o Options) (*Store, error) {
	s, err := g.listenAndOpen(id, o)
	if err == nil {
		g.members[id] = s
	}
	return s, err
}

// reopen starts a member again, and leaves it to the caller to enter it.
func (g *group) reopen(id uint64) (*Store, error) { return g.listenAndOpen(id, g.options(id)) }

func (g *group) listenAndOpen(id uint64, o Options) (*Store, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	g.addrs[id].set(ln.Addr().String())
	o.Listener = ln
	return Open(context.Background(), o)
}

func (g *group) stop(id uint64) {
	g.t.Helper()
	s := g.members[id]
	delete(g.members, id)
	closeStore(g.t, s)
}

// settle waits until all running members are healthy and all members vote.
func (g *group) settle() {
	g.t.Helper()
	for id, s := range g.members {
		eventually(g.t, fmt.Sprintf("member %d is healthy: %v", id, s.Health(g.t.Context())), func() bool {
			return s.Health(g.t.Context()) == nil && len(s.unseated(s.raft.Load())) == 0
		})
	}
}

// leader waits for a member that says of itself, and proves, that it leads.
func (g *group) leader() (id uint64) {
	g.t.Helper()
	eventually(g.t, "a leader", func() bool {
		for i, s := range g.members {
			if ok, err := s.MayPlan(g.t.Context()); err == nil && ok {
				id = i
				return true
			}
		}
		return false
	})
	return id
}

func (g *group) follower() uint64 {
	leader := g.leader()
	for id := range g.members {
		if id != leader {
			return id
		}
	}
	g.t.Fatal("no follower")
	return 0
}

// level waits until all members have applied the same, and checks that their
// states are the same bytes.
func (g *group) level() {
	g.t.Helper()
	eventually(g.t, "all members have applied the same", func() bool {
		var applied []uint64
		for _, s := range g.members {
			applied = append(applied, s.machine.applied.load())
		}
		for _, a := range applied {
			if a != applied[0] {
				return false
			}
		}
		return true
	})
	var first []byte
	for id, s := range g.members {
		b, err := s.Snapshot()
		if err != nil {
			g.t.Fatal(err)
		}
		if first == nil {
			first = b
		}
		if !bytes.Equal(first, b) {
			g.t.Fatalf("the state of member %d has other bytes", id)
		}
	}
}

// partition cuts or heals all ways between a member and the others, those to it
// or those from it.
func (g *group) partition(id uint64, to, from, cut bool) {
	for pair, l := range g.links {
		if pair[0] != pair[1] && (to && pair[1] == id || from && pair[0] == id) {
			l.setCut(cut)
		}
	}
}

// freeze swallows what comes from and goes to a member, or lets it go on.
func (g *group) freeze(id uint64, on bool) {
	for pair, l := range g.links {
		if pair[0] != pair[1] && (pair[0] == id || pair[1] == id) {
			l.setFrozen(on)
		}
	}
}

func (g *group) any() store.Store {
	for _, s := range g.members {
		return s
	}
	return nil
}
