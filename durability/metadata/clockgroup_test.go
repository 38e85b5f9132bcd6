package metadata

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane"
	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/raft"
	"github.com/felixlog/felix/felixtest/stepped"
	"github.com/felixlog/felix/internal/node/controlplane/membership"
	"github.com/felixlog/felix/wire"
)

// A clockGroup is three instances of a control plane with one Raft group, each on
// a clock of its own, under members that hold leases and a load of writes.
type clockGroup struct {
	t       *testing.T
	clocks  [3]stepped.Clock
	stores  [3]*raft.Store // nil once stopped
	servers [3]*controlplane.Server
	urls    string
	token   string

	members []*membership.Member
	silence []func()
	written atomic.Int64
	// newest is, for each copy of the state, the time at which it had each member
	// heard from when that was last looked at.
	newest [3][clockMembers]uint64
}

// Both are long beside what a busy machine
// takes for a heartbeat. Who stops leads no more at once: nobody waits for an election.
const (
	clockExpiry   = 8 * time.Second
	clockElection = 4 * time.Second
)

func newClockGroup(t *testing.T) *clockGroup {
	t.Helper()
	g := &clockGroup{t: t}
	var listeners [3]net.Listener
	peers := make(map[uint64]string)
	for n := range g.stores {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		listeners[n], peers[uint64(n+1)] = l, l.Addr().String()
	}
	dir := t.TempDir()
	t.Cleanup(func() {
		for n := range g.stores {
			g.stop(n)
		}
	})
	var opening sync.WaitGroup
	var failed [3]error
	for n := range g.stores {
		opening.Go(func() {
			g.stores[n], failed[n] = raft.Open(t.Context(), raft.Options{
				NodeID: uint64(n + 1), DataDir: filepath.Join(dir, fmt.Sprint(n)), Peers: peers, Listener: listeners[n],
				ClusterID: "test", Insecure: true, InitialState: raft.New, ElectionTimeout: clockElection,
				Clock: g.clocks[n].Now, Logger: slog.New(slog.DiscardHandler),
			})
		})
	}
	opening.Wait()
	must(t, errors.Join(failed[:]...))
	g.leader()
	g.token = endlessToken(t, g.stores[0])
	for n := range g.servers {
		o := controlplane.DefaultOptions()
		o.Store, o.ValidateName, o.BindAddr, o.MetricsBind = g.stores[n], wire.ValidateName, "127.0.0.1:0", "127.0.0.1:0"
		o.Clock, o.Logger, o.ShutdownPredrain, o.PlacementSettle = g.clocks[n].Now, slog.New(slog.DiscardHandler), 0, 0
		o.NodeHeartbeatInterval, o.NodeExpiryTimeout, o.NodeRegrantMargin = 50*time.Millisecond, clockExpiry, clockExpiry/4
		o.NodeExpirySweepInterval, o.ShardReconcileInterval = 50*time.Millisecond, 100*time.Millisecond
		server, err := controlplane.Start(t.Context(), o)
		must(t, err)
		g.servers[n] = server
		if g.urls += ",http://" + server.Addr(); n == 0 {
			g.urls = g.urls[1:]
		}
	}
	for n := range clockMembers {
		g.join(n)
	}
	g.load()
	return g
}

// stop ends an instance, if it has not been.
func (g *clockGroup) stop(n int) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if g.servers[n] != nil {
		_ = g.servers[n].Shutdown(ctx) // what was cut off is not what is tested
		g.servers[n] = nil
	}
	if g.stores[n] != nil {
		_ = g.stores[n].Close() // the last of a group has nobody to leave it to
		g.stores[n] = nil
	}
}

// leader waits for the instance that leads, and answers its term.
func (g *clockGroup) leader() (n int, term uint64) {
	g.t.Helper()
	eventually(g.t, "an instance leads", func() error {
		for i, s := range g.stores {
			if s == nil {
				continue
			}
			if st := s.Stats(); st.IsLeader {
				n, term = i, st.Term
				return nil
			}
		}
		return errors.New("none does")
	})
	return n, term
}

// running is an instance that is not stopped.
func (g *clockGroup) running() *raft.Store {
	for _, s := range g.stores {
		if s != nil {
			return s
		}
	}
	return nil
}

// join has a member keep its lease until it is silenced.
func (g *clockGroup) join(n int) {
	g.t.Helper()
	m := membership.New(membership.Options{API: newClient(g.t, g.urls, g.token), Logger: slog.New(slog.DiscardHandler)})
	ctx, cancel := context.WithCancel(g.t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = m.Run(ctx, registration(n), false)
	}()
	silence := func() {
		cancel()
		<-ended
	}
	g.t.Cleanup(silence)
	g.members, g.silence = append(g.members, m), append(g.silence, silence)
	select {
	case <-m.Joined():
	case <-time.After(patience):
		g.t.Fatal("it does not join")
	}
}

func registration(n int) apiclient.Registration {
	return apiclient.Registration{NodeID: nodeName(n), AdvertiseAddr: fmt.Sprintf("10.0.0.%d:7000", n+1), Region: "local", Capacity: &model.Capacity{Weight: 1}}
}

// load writes through every instance in turn until the test ends.
func (g *clockGroup) load() {
	ctx, cancel := context.WithCancel(g.t.Context())
	var writers sync.WaitGroup
	for n, s := range g.stores {
		writers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				if s.CreateTenant(ctx, model.Tenant{TenantID: fmt.Sprintf("load-%d-%d", n, i), DisplayName: "load"}) == nil {
					g.written.Add(1)
				}
				select {
				case <-time.After(10 * time.Millisecond):
				case <-ctx.Done():
				}
			}
		})
	}
	g.t.Cleanup(func() {
		cancel()
		writers.Wait()
	})
}

// calm waits for heartbeats of every member and writes of the load. All members
// stay what they are, without a pause in their leases, and the times that the
// store gives them never go back.
func (g *clockGroup) calm(when string) {
	g.t.Helper()
	const many = 8
	var before [clockMembers]uint64
	for n, m := range g.members {
		before[n] = m.Stats().Heartbeats
	}
	written := g.written.Load()
	eventually(g.t, when+": heartbeats and writes go on", func() error {
		var late error
		for n, m := range g.members {
			st := m.Stats()
			if st.Registrations != 1 || !m.LeaseValid() {
				g.t.Fatalf("%s: member %d was registered %d times, its lease holds: %t", when, n, st.Registrations, m.LeaseValid())
			}
			if st.Heartbeats < before[n]+many {
				late = fmt.Errorf("member %d has sent %d since", n, st.Heartbeats-before[n])
			}
		}
		if got := g.written.Load() - written; got < many {
			late = fmt.Errorf("%d writes since", got)
		}
		g.stamps(when)
		return late
	})
}

// lease lets more than a lease pass.
func (g *clockGroup) lease() {
	g.t.Helper()
	for until := time.Now().Add(clockExpiry * 5 / 4); time.Now().Before(until); {
		g.calm("a lease")
	}
}

// stamps looks at the times of the members' records, in every copy of the state.
func (g *clockGroup) stamps(when string) {
	g.t.Helper()
	for i, s := range g.stores {
		if s == nil {
			continue
		}
		for n := range g.members {
			got, err := s.Node(g.t.Context(), nodeName(n))
			var missing *store.NotFoundError
			if g.newest[i][n] == 0 && errors.As(err, &missing) {
				continue // it has not come to this instance
			}
			must(g.t, err)
			at := got.Status.LastHeartbeatAtMillis
			if at < g.newest[i][n] || got.Status.Lifecycle != model.Live {
				g.t.Fatalf("%s: for instance %d member %d is %s, heard from at %d, after %d", when, i, n, got.Status.Lifecycle, at, g.newest[i][n])
			}
			g.newest[i][n] = at
		}
	}
}

// TestClocksOfARaftGroupStep sets the clocks of the leader and of a follower forth
// and back, by an hour, by ten years and to 1970, and then stops the leader: the group is led by the same member until then and by another
// after, and no broker is taken for down or loses its lease. One that falls silent
// is found, by the clock of the new leader.
func TestClocksOfARaftGroupStep(t *testing.T) {
	t.Parallel()
	g := newClockGroup(t)
	g.calm("before")
	leader, term := g.leader()
	same := func(when string) {
		t.Helper()
		if is, now := g.leader(); is != leader || now != term {
			t.Fatalf("%s: instance %d leads in term %d, after %d in term %d", when, is, now, leader, term)
		}
	}
	follower := (leader + 1) % 3
	year1970 := -time.Duration(time.Now().UnixNano())
	for _, step := range []struct {
		name string
		n    int
		off  time.Duration
	}{
		// The store's time leaps twice, each time after the leader has heard from
		// everybody for longer than a lease, so that it may take them for silent.
		{"the leader's clock an hour back", leader, -hour},
		{"the leader's clock in 1970", leader, year1970},
		{"the leader's clock right", leader, 0},
		{"", 0, 0},
		{"the leader's clock an hour forth", leader, hour},
		{"the leader's clock right again", leader, 0},
		{"a follower's clock an hour forth", follower, hour},
		{"a follower's clock an hour back", follower, -hour},
		{"a follower's clock in 1970", follower, year1970},
		{"a follower's clock ten years forth", follower, decade},
		{"a follower's clock right", follower, 0},
		{"", 0, 0},
		{"the leader's clock ten years forth", leader, decade},
		{"the leader's clock in 1970 after that", leader, year1970},
	} {
		if step.name == "" {
			g.lease()
			continue
		}
		g.clocks[step.n].Set(time.Now().Add(step.off))
		g.calm(step.name)
		same(step.name)
	}
	g.stop(leader)
	if next, _ := g.leader(); next == leader {
		t.Fatal("a stopped instance leads")
	}
	g.calm("under another leader")
	g.silence[0]()
	eventually(t, "the silent member is found", func() error {
		got, err := g.running().Node(t.Context(), nodeName(0))
		if err == nil && got.Status.Lifecycle != model.Down {
			err = fmt.Errorf("it is %s", got.Status.Lifecycle)
		}
		return err
	})
	for n := 1; n < clockMembers; n++ {
		if st := g.members[n].Stats(); st.Registrations != 1 || !g.members[n].LeaseValid() {
			t.Errorf("member %d was registered %d times, its lease holds: %t", n, st.Registrations, g.members[n].LeaseValid())
		}
	}
}
