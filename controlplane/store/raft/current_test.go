package raft

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/store"
)

// A member that is asked to catch up then has everything that was answered
// elsewhere before, and without it is behind.
func TestCatchUp(t *testing.T) {
	t.Parallel()
	// A follower learns of a commit this much later, so that it is behind whenever
	// something was just written.
	g := newGroup(t, 3, Options{ElectionTimeout: time.Second, commitTimeout: 150 * time.Millisecond})
	leader, follower := g.members[g.leader()], g.members[g.follower()]
	behind := 0
	for i := range 20 {
		createTenants(t, leader, i, i+1)
		if _, err := follower.Tenant(t.Context(), tenant(i).TenantID); err != nil {
			behind++
		}
		if err := follower.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := follower.Tenant(t.Context(), tenant(i).TenantID); err != nil {
			t.Fatalf("after catching up tenant %d: %v", i, err)
		}
	}
	if behind == 0 {
		t.Error("the follower was never behind, so that the test shows nothing")
	}
	if err := leader.CatchUp(t.Context()); err != nil {
		t.Errorf("the leader: %v", err)
	}
	if n := leader.counts.questions.Load(); n != 0 {
		t.Errorf("the leader asked %d times", n)
	}
}

// Many who catch up at a time share what is asked of the leader.
func TestCatchUpIsShared(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, Options{})
	s := g.members[g.follower()]
	before, begun := s.counts.questions.Load(), time.Now()
	const callers, calls = 200, 10
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range calls {
				if err := s.CatchUp(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	// On a slow machine there is time for more rounds, but never for one a call.
	rounds := uint64(time.Since(begun)/currentInterval) + 1
	if asked := s.counts.questions.Load() - before; asked < calls || asked > min(rounds, callers*calls/2) {
		t.Errorf("%d questions for %d calls within %d intervals", asked, callers*calls, rounds)
	}
}

// A member that cannot know whether it is behind says so, and goes on when it
// can: cut off from the others as a follower, and as a leader that is none any
// more.
func TestCatchUpWithoutALeader(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, Options{WriteTimeout: patience, AttemptTimeout: 500 * time.Millisecond})
	for _, cut := range []uint64{g.follower(), g.leader()} {
		s := g.members[cut]
		g.partition(cut, true, true, true)
		var unavailable *store.UnavailableError
		catchUp := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return s.CatchUp(ctx)
		}
		// A leader may still hear what was under way to it.
		eventually(t, "it cannot tell", func() bool { return errors.As(catchUp(), &unavailable) })
		var id uint64
		for other := range g.members {
			if other != cut {
				id = other
			}
		}
		made := tenant(int(cut))
		if err := g.members[id].CreateTenant(t.Context(), made); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Tenant(t.Context(), made.TenantID); err == nil {
			t.Fatal("a member that is cut off has what was written elsewhere")
		}
		if err := catchUp(); !errors.As(err, &unavailable) {
			t.Errorf("member %d, cut off and behind: %v", cut, err)
		}
		g.partition(cut, true, true, false)
		eventually(t, "it catches up again", func() bool { return catchUp() == nil })
		if _, err := s.Tenant(t.Context(), made.TenantID); err != nil {
			t.Errorf("member %d caught up, and lacks what was written: %v", cut, err)
		}
	}
}

// A member that is closed answers nobody.
func TestCatchUpOfAClosedMember(t *testing.T) {
	t.Parallel()
	g := newGroup(t, 3, Options{})
	id := g.follower()
	s := g.members[id]
	g.partition(id, true, true, true) // so that the call is under way when the store ends
	ended := make(chan error)
	go func() { ended <- s.CatchUp(t.Context()) }()
	g.stop(id)
	if err := <-ended; !errors.Is(err, store.ErrClosed) {
		var unavailable *store.UnavailableError
		if !errors.As(err, &unavailable) {
			t.Errorf("a call under way: %v", err)
		}
	}
	if err := s.CatchUp(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a later call: %v", err)
	}
}
