package auth_test

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/auth"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	token "github.com/felixlog/felix/internal/auth"
)

// A countingStore counts reads of keys, and fails where it is told to.
type countingStore struct {
	auth.Store
	reads         atomic.Int64
	catches       atomic.Int64 // up
	failBootstrap atomic.Bool
}

func (s *countingStore) CatchUp(ctx context.Context) error {
	s.catches.Add(1)
	return s.Store.CatchUp(ctx)
}

func (s *countingStore) SigningKeys(ctx context.Context, tenant string) ([]model.SigningKey, error) {
	s.reads.Add(1)
	return s.Store.SigningKeys(ctx, tenant)
}

func (s *countingStore) BootstrapTenant(ctx context.Context, t model.Tenant, seed model.AuthSeed) ([]model.SigningKey, error) {
	if s.failBootstrap.Swap(false) {
		return nil, &store.UnavailableError{Err: context.DeadlineExceeded}
	}
	return s.Store.BootstrapTenant(ctx, t, seed)
}

// TestInventedKeys: tokens with invented tenants and key ids do not each have
// the store catch up, and those of one tenant do not each cost a read of it.
func TestInventedKeys(t *testing.T) {
	var counting *countingStore
	w := newWorld(t, func(o *auth.Options) {
		counting = &countingStore{Store: o.Store}
		o.Store = counting
	})
	w.boot()
	_, foreign, _ := ed25519.GenerateKey(nil)
	const tokens = 400
	flood := func(tenant func(i int) string) (reads, catches int64) {
		invented := make([]string, tokens)
		for i := range invented {
			var err error
			invented[i], err = token.NewSigner(fmt.Sprint("kid-", i), foreign).Mint(token.Claims{
				Tenant: tenant(i), Subject: "x", Audience: control, IssuedAt: w.clock.Now(), Expires: w.clock.Now().Add(time.Minute)})
			w.must(err)
		}
		reads, catches = counting.reads.Load(), counting.catches.Load()
		var all sync.WaitGroup
		for _, signed := range invented {
			all.Go(func() {
				if _, err := w.Authenticate(w.ctx(), "Bearer "+signed, ""); err == nil {
					t.Error("taken")
				}
			})
		}
		all.Wait()
		return counting.reads.Load() - reads, counting.catches.Load() - catches
	}
	good := w.mint(token.Claims{Audience: control})
	if _, err := w.Authenticate(t.Context(), "Bearer "+good, tenant); err != nil {
		t.Fatal(err)
	}
	// On a slow machine they come one by one, and there are more rounds.
	const rounds = tokens / 4
	for range 3 {
		w.clock.Advance(time.Second)
		// One read a round, and those that begin before the first one is kept.
		if reads, catches := flood(func(int) string { return tenant }); catches < 1 || catches > rounds || reads > catches+16 {
			t.Errorf("invented keys: caught up %d times, %d reads for %d tokens", catches, reads, tokens)
		}
	}
	if reads, catches := flood(func(i int) string { return fmt.Sprint("nowhere-", i) }); catches < 1 || catches > rounds || reads > 2*tokens {
		t.Errorf("invented tenants: caught up %d times, %d reads for %d tokens", catches, reads, tokens)
	}
	w.must(second(w.Authenticate(t.Context(), "Bearer "+good, tenant)))
}
