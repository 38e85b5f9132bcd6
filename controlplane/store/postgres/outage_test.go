package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/postgres"
	"github.com/felixlog/felix/controlplane/store/postgres/pgtest"
)

func unavailable(err error) bool {
	var e *store.UnavailableError
	return errors.As(err, &e)
}

// everything makes a read, a write and a snapshot.
func everything(ctx context.Context, s *postgres.Store) map[string]error {
	_, read := s.Tenants(ctx)
	_, snapshot := s.StreamsSnapshot(ctx)
	_, page := s.StreamChanges(ctx, 0)
	_, heartbeat := s.Heartbeat(ctx, "n1", 0)
	return map[string]error{
		"read": read, "snapshot": snapshot, "page": page, "heartbeat": heartbeat,
		"write":  s.PutBridge(ctx, model.Bridge{Source: "a", Destination: "b"}),
		"create": s.CreateTenant(ctx, model.Tenant{TenantID: "during"}),
		"health": s.Health(ctx),
	}
}

// recovered waits until everything works.
func recovered(t *testing.T, s *postgres.Store) {
	t.Helper()
	eventually(t, s.Health)
	eventually(t, func(ctx context.Context) error {
		_, err := s.Tenants(ctx)
		return err
	})
	eventually(t, func(ctx context.Context) error {
		err := s.CreateTenant(ctx, model.Tenant{TenantID: "after"})
		if conflict(err, store.Exists) {
			return nil // by an attempt that got no answer
		}
		return err
	})
}

func TestAStoppedDatabase(t *testing.T) {
	t.Parallel()
	server := pgtest.StartServer(t, nil)
	s := open(t, postgres.Options{URL: server.URL(t, "felix")})
	ctx := within(t)
	_, err := s.RegisterNode(ctx, "n1", specOf("10.0.0.1:1"))
	must(t, err)

	server.Stop()
	for what, err := range everything(ctx, s) {
		if !unavailable(err) {
			t.Errorf("%s without a database: %v", what, err)
		}
	}
	server.Restart(t)
	recovered(t, s)
}

// A connection that a restart broke while it lay in the pool costs no call.
func TestARestartBetweenCallsIsNotNoticed(t *testing.T) {
	t.Parallel()
	server := pgtest.StartServer(t, nil)
	s := open(t, postgres.Options{URL: server.URL(t, "felix")})
	ctx := within(t)
	_, err := s.RegisterNode(ctx, "n1", specOf("10.0.0.1:1"))
	must(t, err)
	server.Stop()
	server.Restart(t)
	must(t, s.CreateTenant(ctx, model.Tenant{TenantID: "t1"}))
	server.Stop()
	server.Restart(t)
	for what, err := range everything(ctx, s) {
		if err != nil {
			t.Errorf("%s after a restart: %v", what, err)
		}
	}
}

func TestASilentDatabase(t *testing.T) {
	t.Parallel()
	proxy, url := pgtest.NewProxy(t, pgtest.Start(t))
	limit := 300 * time.Millisecond
	s := open(t, postgres.Options{URL: url, CallTimeout: limit, AcquireTimeout: limit})
	eventually(t, s.Health) // leaves a connection in the pool

	proxy.Silence()
	// Health ends with its context.
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := s.Health(ctx); !unavailable(err) {
		t.Fatalf("health of a silent database: %v", err)
	}
	// Calls without a limit of their own end by the store's.
	for what, err := range everything(context.Background(), s) {
		if !unavailable(err) {
			t.Errorf("%s of a silent database: %v", what, err)
		}
	}
	proxy.Heal()
	recovered(t, s)
}

func TestACutConnection(t *testing.T) {
	t.Parallel()
	proxy, url := pgtest.NewProxy(t, pgtest.Start(t))
	s := open(t, postgres.Options{URL: url})
	_, err := s.RegisterNode(within(t), "n1", specOf("10.0.0.1:1"))
	must(t, err)
	proxy.Cut()
	for what, err := range everything(within(t), s) {
		if !unavailable(err) {
			t.Errorf("%s over a cut: %v", what, err)
		}
	}
	proxy.Heal()
	recovered(t, s)
}

func TestAFullPool(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t)
	s := open(t, postgres.Options{URL: url, MaxConns: 1, AcquireTimeout: time.Second})
	eventually(t, s.Health) // the one connection is there
	ctx := within(t)
	blocker := connect(t, url)
	exec(t, blocker, `BEGIN`)
	exec(t, blocker, `UPDATE tenant_change_seq SET next_seq = next_seq`)
	created := make(chan error, 1)
	go func() { created <- s.CreateTenant(ctx, model.Tenant{TenantID: "t1"}) }()
	waiting(t, url, 1)
	if _, err := s.Tenants(ctx); !unavailable(err) {
		t.Fatalf("a call without a free connection: %v", err)
	}
	exec(t, blocker, `COMMIT`)
	must(t, <-created)
	_, err := s.Tenants(ctx)
	must(t, err)
}

// waiting returns when n sessions of the database wait for a lock.
func waiting(t testing.TB, url string, n int) {
	t.Helper()
	ctx, conn := within(t), connect(t, url)
	for {
		var found int
		must(t, conn.QueryRow(ctx, `
			SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&found))
		if found >= n {
			return
		}
	}
}

// An instance that vanishes in the middle of a write, holding the counter of a
// feed, keeps nobody from writing.
func TestAVanishedInstanceKeepsNothingLocked(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t)
	proxy, proxied := pgtest.NewProxy(t, url)
	vanishing := open(t, postgres.Options{URL: proxied, CallTimeout: 4 * time.Second})
	s := open(t, postgres.Options{URL: url})
	ctx := within(t)

	blocker := connect(t, url)
	exec(t, blocker, `BEGIN`)
	exec(t, blocker, `UPDATE tenant_change_seq SET next_seq = next_seq`)
	vanished := make(chan error, 1)
	go func() { vanished <- vanishing.CreateTenant(ctx, model.Tenant{TenantID: "gone"}) }()
	waiting(t, url, 1)
	proxy.Silence()
	exec(t, blocker, `COMMIT`) // now the vanished one holds the counter

	must(t, s.CreateTenant(ctx, model.Tenant{TenantID: "t1"}))
	if err := <-vanished; !unavailable(err) {
		t.Fatalf("the vanished instance: %v", err)
	}
	proxy.Heal()
	page, err := s.TenantChanges(ctx, 0)
	must(t, err)
	if len(page.Items) != 1 || page.Items[0].TenantID != "t1" || page.NextSeq != 1 {
		t.Fatalf("changes: %+v", page)
	}
}
