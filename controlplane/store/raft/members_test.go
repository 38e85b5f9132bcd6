package raft

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/store"
)

func TestGroupReplicates(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, Options{})
	leader, follower := g.leader(), g.follower()
	createTenants(t, g.members[leader], 0, 50)
	createTenants(t, g.members[follower], 50, 100)
	// Who wrote through a follower reads it there at once.
	checkTenants(t, g.members[follower], 100)
	g.level()
	for _, s := range g.members {
		checkTenants(t, s, 100)
	}
	if st := g.members[follower].Stats(); st.ForwardedProposals < 50 {
		t.Errorf("%d proposals forwarded", st.ForwardedProposals)
	}
}

func TestQuorumLoss(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, Options{WriteTimeout: time.Second, RetryInterval: 50 * time.Millisecond})
	createTenants(t, g.any(), 0, 10)
	g.level()
	left := g.follower()
	for id := range g.members {
		if id != left {
			g.stop(id)
		}
	}
	s := g.members[left]
	err := s.CreateTenant(t.Context(), tenant(10))
	var unavailable *store.UnavailableError
	if !errors.As(err, &unavailable) {
		t.Errorf("write without a quorum: %v", err)
	}
	if s.Stats().WriteTimeouts == 0 {
		t.Error("the write that found no quorum is not counted")
	}
	eventually(t, "health fails", func() bool { return s.Health(t.Context()) != nil })
	if ok, err := s.MayPlan(t.Context()); ok || err != nil {
		t.Errorf("may plan: %v, %v", ok, err)
	}
	if lease, err := s.AcquireLease(t.Context(), "me", time.Minute); lease.Held || err != nil {
		t.Errorf("lease: %v, %v", lease, err)
	}
	checkTenants(t, s, 10) // reads go on

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.CreateTenant(ctx, tenant(10)); !errors.As(err, &unavailable) {
		t.Errorf("cancelled write: %v", err)
	}

	for id := range g.addrs {
		if id != left {
			g.start(id)
		}
	}
	g.settle()
	createTenants(t, s, 11, 12)
}

// A member that is cut off must not acknowledge, and what others acknowledged
// meanwhile must be there when it is back.
func TestPartitions(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name     string
		to, from bool
		freeze   bool
		writing  int // members through which writes go on
	}{
		{name: "both ways", to: true, from: true, writing: 2},
		{name: "nobody reaches it", to: true, writing: 1}, // and it leads on
		{name: "it reaches nobody", from: true, writing: 2},
		{name: "silence both ways", freeze: true, writing: 2},
	}
	g := newGroup(t, 3, Options{WriteTimeout: patience, AttemptTimeout: 500 * time.Millisecond, RetryInterval: 20 * time.Millisecond})
	written := 0
	for _, c := range cases {
		old := g.leader()
		isolate := func(on bool) {
			if c.freeze {
				g.freeze(old, on)
			} else {
				g.partition(old, c.to, c.from, on)
			}
		}
		isolate(true)
		// Through every member at once, also the one that is cut off: who cannot
		// reach a leader tries until the partition ends.
		done := make(chan error)
		for id, s := range g.members {
			go func() { done <- createRange(s, written+int(id)*20, 20) }()
		}
		for range c.writing {
			if err := <-done; err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		isolate(false)
		for range 3 - c.writing {
			if err := <-done; err != nil {
				t.Fatalf("%s: after it: %v", c.name, err)
			}
		}
		written += 100
		g.level()
		got, err := g.any().Tenants(t.Context())
		if err != nil || len(got) != written*60/100 {
			t.Fatalf("%s: %d tenants, %v; want %d", c.name, len(got), err, written*60/100)
		}
	}
}

func createRange(s store.Store, from, n int) error {
	for i := from; i < from+n; i++ {
		if err := s.CreateTenant(context.Background(), tenant(i)); err != nil {
			return err
		}
	}
	return nil
}

func TestRollingRestart(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, Options{SnapshotEntries: 50, SnapshotInterval: 20 * time.Millisecond, LogsKept: 30})
	var mu sync.Mutex // over g.members, for the writers
	pick := func(n int) store.Store {
		mu.Lock()
		defer mu.Unlock()
		if s, ok := g.members[uint64(n%3)+1]; ok {
			return s
		}
		return nil
	}
	stop := make(chan struct{})
	var writers sync.WaitGroup
	var next atomic.Int64
	for range 4 {
		writers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				n := int(next.Add(1)) - 1
				var err error
				for try := n; ; try++ {
					// A member may be away, and one that goes leaves the answer open.
					if s := pick(try); s != nil {
						if err = s.CreateTenant(context.Background(), tenant(n)); err == nil {
							break
						}
						var unavailable *store.UnavailableError
						var conflict *store.ConflictError
						if errors.As(err, &conflict) && try > n {
							break // an attempt through a member that went was done after all
						}
						if !errors.Is(err, store.ErrClosed) && !errors.As(err, &unavailable) {
							t.Errorf("tenant %d: %v", n, err)
							break
						}
					}
				}
			}
		})
	}
	for id := uint64(1); id <= 3; id++ {
		reached := next.Load() + 60
		eventually(t, "writes go on", func() bool { return next.Load() > reached })
		mu.Lock()
		s := g.members[id]
		delete(g.members, id)
		mu.Unlock()
		closeStore(t, s)
		reached = next.Load() + 60
		eventually(t, "writes go on without the member", func() bool { return next.Load() > reached })
		back, err := g.reopen(id)
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		g.members[id] = back
		mu.Unlock()
		g.settle()
	}
	close(stop)
	writers.Wait()
	g.level()
	for _, s := range g.members {
		checkTenants(t, s, int(next.Load()))
	}
}

// Changing the leader advances the placement token once, which fences what the
// old one still plans.
func TestLeaseFollowsLeadership(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, Options{})
	take := func(id uint64) store.Lease {
		var lease store.Lease
		eventually(t, "the leader holds the lease", func() bool {
			var err error
			lease, err = g.members[id].AcquireLease(t.Context(), "anybody", time.Minute)
			return err == nil && lease.Held
		})
		return lease
	}
	token := func() uint64 {
		n, err := g.members[g.leader()].PlacementToken(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := g.leader()
	before := token()
	if l := take(first); !l.TakenOver {
		t.Errorf("first lease: %+v", l)
	}
	if l := take(first); l.TakenOver {
		t.Errorf("second lease of the same reign: %+v", l)
	}
	if got := token(); got != before+1 {
		t.Errorf("token %d, want %d", got, before+1)
	}
	if l, err := g.members[g.follower()].AcquireLease(t.Context(), "anybody", time.Minute); l.Held || err != nil {
		t.Errorf("lease of a follower: %+v, %v", l, err)
	}
	g.stop(first)
	second := g.leader()
	if l := take(second); !l.TakenOver {
		t.Errorf("lease after the change: %+v", l)
	}
	if got := token(); got != before+2 {
		t.Errorf("token %d after the change, want %d", got, before+2)
	}
}
