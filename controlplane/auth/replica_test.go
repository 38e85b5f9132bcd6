package auth_test

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/felixlog/felix/controlplane/auth"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/memory"
)

// A replica is the store of an instance that is behind: it reads what it had
// when it last caught up, and writes where all others do.
type replica struct {
	auth.Store // where writes go
	all        store.Store
	copy       *memory.Store
	cut        atomic.Bool // off from the others: it cannot catch up
	catches    atomic.Int64
}

func newReplica(w *world) *replica {
	r := &replica{Store: w.store, all: w.store, copy: memory.Open(memory.Options{})}
	w.t.Cleanup(func() { _ = r.copy.Close() })
	return r
}

func (r *replica) CatchUp(ctx context.Context) error {
	r.catches.Add(1)
	if r.cut.Load() {
		return &store.UnavailableError{Err: errors.New("no leader")}
	}
	d, err := r.all.Export(ctx)
	if err != nil {
		return err
	}
	return r.copy.Import(ctx, d, true)
}

func (r *replica) Tenant(ctx context.Context, id string) (model.Tenant, error) {
	return r.copy.Tenant(ctx, id)
}

func (r *replica) SigningKeys(ctx context.Context, tenant string) ([]model.SigningKey, error) {
	return r.copy.SigningKeys(ctx, tenant)
}

func (r *replica) Issuers(ctx context.Context, tenant string) ([]model.IdpIssuer, error) {
	return r.copy.Issuers(ctx, tenant)
}

func (r *replica) Policies(ctx context.Context, tenant string) ([]model.Policy, error) {
	return r.copy.Policies(ctx, tenant)
}

func (r *replica) Groupings(ctx context.Context, tenant string) ([]model.Grouping, error) {
	return r.copy.Groupings(ctx, tenant)
}
