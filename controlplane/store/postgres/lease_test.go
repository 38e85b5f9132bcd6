package postgres_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/postgres"
	"github.com/felixlog/felix/controlplane/store/postgres/pgtest"
)

func TestTheLeasePassesBetweenInstances(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t)
	a, b := open(t, postgres.Options{URL: url}), open(t, postgres.Options{URL: url})
	ctx := within(t)
	token := func() uint64 {
		n, err := a.PlacementToken(ctx)
		must(t, err)
		return n
	}
	acquire := func(s *postgres.Store, holder string, ttl time.Duration, want store.Lease) {
		t.Helper()
		got, err := s.AcquireLease(ctx, holder, ttl)
		must(t, err)
		if got != want {
			t.Fatalf("%s got %+v, want %+v", holder, got, want)
		}
	}
	acquire(a, "a", time.Hour, store.Lease{Held: true, TakenOver: true})
	first := token()
	acquire(b, "b", time.Hour, store.Lease{})
	must(t, b.ReleaseLease(ctx, "b")) // not its own
	acquire(a, "a", time.Hour, store.Lease{Held: true})
	if token() != first {
		t.Fatal("a renewal advanced the token")
	}
	must(t, a.ReleaseLease(ctx, "a"))
	acquire(b, "b", 0, store.Lease{Held: true, TakenOver: true}) // expires at once
	if token() != first+1 {
		t.Fatal("another holder did not advance the token")
	}
	acquire(a, "a", time.Hour, store.Lease{Held: true, TakenOver: true})
	if token() != first+2 {
		t.Fatal("an expired lease was taken over without advancing the token")
	}
	// Of many that want a free lease one gets it.
	must(t, a.ReleaseLease(ctx, "a"))
	var all sync.WaitGroup
	held := make(chan string, 16)
	for i := range 16 {
		all.Go(func() {
			lease, err := []*postgres.Store{a, b}[i%2].AcquireLease(ctx, fmt.Sprintf("h%d", i), time.Hour)
			if err != nil {
				t.Error(err)
			} else if lease.Held {
				held <- fmt.Sprint(i)
			}
		})
	}
	all.Wait()
	if len(held) != 1 {
		t.Fatalf("%d hold the lease", len(held))
	}
}

func TestANodeThatComesBackFencesAPass(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Options{URL: pgtest.Start(t)})
	ctx := within(t)
	k := namespaceOf(t, s)
	must(t, s.CreateStream(ctx, streamOf(k, "orders", 1)))
	register := func() {
		_, err := s.RegisterNode(ctx, "n1", specOf("10.0.0.1:1"))
		must(t, err)
	}
	register()
	_, _, err := s.SetLifecycle(ctx, "n1", model.Down)
	must(t, err)
	token, err := s.PlacementToken(ctx)
	must(t, err)
	register()
	r, err := s.PutAssignmentIf(ctx, model.Assignment{ShardKey: shardOf("orders", 0), Leader: "n1", State: model.Assigning}, nil, token)
	must(t, err)
	if r.Outcome != store.Fenced || r.Token != token+1 {
		t.Fatalf("a pass from before: %+v", r)
	}
	register() // a restart that nobody noticed takes nothing from a pass
	if after, err := s.PlacementToken(ctx); err != nil || after != r.Token {
		t.Fatalf("token %d, %v", after, err)
	}
}
