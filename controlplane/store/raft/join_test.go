package raft

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	hraft "github.com/hashicorp/raft"

	"github.com/felixlog/felix/controlplane/store"
)

func (g *group) wipe(id uint64) {
	g.t.Helper()
	if err := os.RemoveAll(g.dataDir(id)); err != nil {
		g.t.Fatal(err)
	}
}

// transport sends messages of the library as a member would.
func (g *group) transport(id uint64) *hraft.NetworkTransport {
	g.t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		g.t.Fatal(err)
	}
	tr := hraft.NewNetworkTransportWithConfig(&hraft.NetworkTransportConfig{
		Stream: &streamLayer{Listener: ln, mux: g.members[id].mux, self: id}, MaxPool: 1, Timeout: patience,
		Logger: newLibraryLog(slog.New(slog.DiscardHandler)),
	})
	g.t.Cleanup(func() { _ = tr.Close() })
	return tr
}

// A member that lost its disk must not help a member that lacks committed
// entries into office.
func TestWipedMemberDoesNotVote(t *testing.T) {
	t.Parallel()
	for _, state := range []InitialState{Existing, New} {
		t.Run(string(state), func(t *testing.T) {
			g := newGroup(t, 3, Options{})
			leader := g.leader()
			var lagging, wiped uint64
			for id := range g.members {
				if id != leader {
					lagging, wiped = wiped, id
				}
			}
			// One member lacks what the other two have committed.
			createTenants(t, g.members[leader], 0, 10)
			g.level()
			g.stop(lagging)
			createTenants(t, g.members[leader], 10, 50)
			g.level()
			// Of the two that have it, one loses its disk and the other is down.
			g.stop(wiped)
			g.stop(leader)
			g.wipe(wiped)
			g.base.InitialState = state
			g.start(lagging)
			s := g.start(wiped)

			// Both call for votes for a while, and neither gets one.
			vote := hraft.RequestVoteRequest{
				RPCHeader: hraft.RPCHeader{ProtocolVersion: 3, ID: []byte(serverID(lagging)), Addr: []byte(serverAddress(lagging))},
				Term:      1000, LastLogIndex: 1000, LastLogTerm: 999,
			}
			eventually(t, "the wiped member knows that the group exists", func() bool {
				err := s.Health(t.Context())
				return err != nil && strings.Contains(err.Error(), "catches up")
			})
			eventually(t, "the wiped member takes part", func() bool { return s.raft.Load() != nil })
			candidate := g.transport(lagging)
			for range 20 {
				var resp hraft.RequestVoteResponse
				if err := candidate.RequestVote(serverID(wiped), serverAddress(wiped), &vote, &resp); err != nil {
					t.Fatal(err)
				}
				if resp.Granted {
					t.Fatal("the wiped member voted")
				}
			}
			for id, m := range g.members {
				if ok, _ := m.MayPlan(t.Context()); ok {
					t.Fatalf("member %d leads with the vote of a wiped member", id)
				}
			}
			// It answers nobody from its empty state, also not after a restart.
			var unavailable *store.UnavailableError
			if _, err := s.TenantsSnapshot(t.Context()); !errors.As(err, &unavailable) {
				t.Errorf("read from a wiped member: %v", err)
			}
			g.stop(wiped)
			s = g.start(wiped)
			if _, err := s.TenantsSnapshot(t.Context()); !errors.As(err, &unavailable) || !s.withheld.Load() {
				t.Errorf("read from a wiped member that was restarted: %v", err)
			}

			// With the third one back there is a leader that has everything.
			g.start(leader)
			g.settle()
			g.level()
			for _, m := range g.members {
				checkTenants(t, m, 50)
			}
			if s.withheld.Load() {
				t.Error("the vote is still withheld")
			}
			// And the member that was wiped is as good as any other.
			g.stop(leader)
			createTenants(t, g.members[wiped], 50, 60)
			checkTenants(t, g.members[wiped], 60)
		})
	}
}

// A wiped member takes a snapshot where the log does not reach back.
func TestWipedMemberTakesASnapshot(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, Options{SnapshotEntries: 50, SnapshotInterval: 10 * time.Millisecond, LogsKept: 10})
	wiped := g.follower()
	g.stop(wiped)
	g.wipe(wiped)
	createTenants(t, g.any(), 0, 200)
	for _, s := range g.members {
		eventually(t, "a snapshot", func() bool { return s.Stats().SnapshotIndex > 100 })
	}
	s := g.start(wiped)
	g.settle()
	g.level()
	checkTenants(t, s, 200)
	createTenants(t, s, 200, 220)
	g.stop(wiped)
	s = g.start(wiped)
	g.settle()
	checkTenants(t, s, 220)
}

// A follower with a damaged directory refuses, and says how to go on: with an
// empty one.
func TestDamagedFollower(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, Options{SnapshotEntries: 20, SnapshotInterval: 10 * time.Millisecond, LogsKept: 1})
	createTenants(t, g.any(), 0, 100)
	hurt := g.follower()
	eventually(t, "a snapshot", func() bool { return g.members[hurt].Stats().SnapshotIndex > 20 })
	g.stop(hurt)
	list, err := filepath.Glob(filepath.Join(g.dataDir(hurt), snapshotsDir, "*", "state.bin"))
	if err != nil || len(list) == 0 {
		t.Fatalf("snapshots: %v, %v", list, err)
	}
	for _, p := range list {
		if err := os.Truncate(p, 10); err != nil {
			t.Fatal(err)
		}
	}
	_, err = g.open(hurt, g.options(hurt))
	var damaged *DamagedError
	if !errors.As(err, &damaged) || !strings.Contains(err.Error(), "move the directory away") {
		t.Fatalf("damaged directory: %v", err)
	}
	g.wipe(hurt)
	g.base.InitialState = Existing
	s := g.start(hurt)
	g.settle()
	checkTenants(t, s, 100)
}

// No member of a group that does not exist forms one unless it is told to.
func TestNothingIsFormedUnasked(t *testing.T) {
	t.Parallel()
	g := coldGroup(t, 3, Options{WriteTimeout: 100 * time.Millisecond, RetryInterval: 10 * time.Millisecond})
	g.base.InitialState = Existing
	for id := range g.addrs {
		g.start(id)
	}
	for _, s := range g.members {
		eventually(t, "the member says what is missing", func() bool {
			err := s.Health(t.Context())
			return err != nil && strings.Contains(err.Error(), `"new"`)
		})
		var unavailable *store.UnavailableError
		if err := s.CreateTenant(t.Context(), tenant(0)); !errors.As(err, &unavailable) {
			t.Errorf("write: %v", err)
		}
	}
}

// The group forms when a majority is there, and the last member joins it.
func TestFormingWithAMemberMissing(t *testing.T) {
	t.Parallel()
	g := coldGroup(t, 3, Options{})
	g.start(1)
	eventually(t, "the first waits", func() bool {
		err := g.members[1].Health(t.Context())
		return err != nil && strings.Contains(err.Error(), "waits for the others")
	})
	g.start(2)
	for _, id := range []uint64{1, 2} {
		eventually(t, fmt.Sprintf("member %d is healthy", id), func() bool { return g.members[id].Health(t.Context()) == nil })
	}
	createTenants(t, g.members[2], 0, 10)
	g.start(3)
	g.settle()
	checkTenants(t, g.members[3], 10)
	// Now two of three are enough, whichever.
	g.stop(1)
	createTenants(t, g.members[3], 10, 20)
	checkTenants(t, g.members[3], 20)
}
