package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/postgres"
	"github.com/felixlog/felix/controlplane/store/postgres/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.Tests(m)) }

// patience bounds what a test waits for on a busy machine.
const patience = time.Minute

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// open opens a store that bears a slow machine, unless the test says otherwise.
func open(t testing.TB, o postgres.Options) *postgres.Store {
	t.Helper()
	for _, limit := range []*time.Duration{&o.CallTimeout, &o.AcquireTimeout, &o.ConnectTimeout} {
		if *limit == 0 {
			*limit = patience
		}
	}
	s, err := postgres.Open(within(t), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually repeats fn until it succeeds.
func eventually(t testing.TB, fn func(ctx context.Context) error) {
	t.Helper()
	ctx := within(t)
	for {
		err := fn(ctx)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			t.Fatal(err)
		}
	}
}

// namespaceOf makes tenant t1 with namespace ns.
func namespaceOf(t testing.TB, s store.Store) model.NamespaceKey {
	t.Helper()
	ctx := within(t)
	must(t, s.CreateTenant(ctx, model.Tenant{TenantID: "t1"}))
	must(t, s.CreateNamespace(ctx, model.Namespace{TenantID: "t1", Namespace: "ns"}))
	return model.NamespaceKey{TenantID: "t1", Namespace: "ns"}
}

func streamOf(k model.NamespaceKey, name string, shards uint32) model.Stream {
	return model.Stream{
		TenantID: k.TenantID, Namespace: k.Namespace, Stream: name, Kind: model.KindStream, Shards: shards, ReplicationFactor: 1,
		Consistency: model.Leader, Delivery: model.AtLeastOnce, Durable: true, UID: "uid-" + name,
	}
}

func specOf(addr string) model.NodeSpec {
	return model.NodeSpec{AdvertiseAddr: addr, Region: "local", Capacity: model.Capacity{Weight: 1}}
}

func conflict(err error, reason store.ConflictReason) bool {
	var e *store.ConflictError
	return errors.As(err, &e) && e.Reason == reason
}

func missing(err error) bool {
	var e *store.NotFoundError
	return errors.As(err, &e)
}
