package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/postgres"
	"github.com/felixlog/felix/controlplane/store/postgres/pgtest"
)

// connect is a way around the store.
func connect(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(within(t), url)
	must(t, err)
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func exec(t testing.TB, conn *pgx.Conn, query string, args ...any) {
	t.Helper()
	_, err := conn.Exec(within(t), query, args...)
	must(t, err)
}

func TestManyInstancesMigrateAnEmptyDatabaseAtOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t)
	const instances = 8
	stores := make([]*postgres.Store, instances)
	errs := make([]error, instances)
	var all sync.WaitGroup
	for i := range instances {
		all.Go(func() { stores[i], errs[i] = postgres.Open(within(t), postgres.Options{URL: url, MaxConns: 2}) })
	}
	all.Wait()
	for i := range instances {
		must(t, errs[i])
		must(t, stores[i].Health(within(t)))
		must(t, stores[i].Close())
	}
	var applied int
	must(t, connect(t, url).QueryRow(within(t), `SELECT count(*) FROM goose_db_version WHERE version_id = 1`).Scan(&applied))
	if applied != 1 {
		t.Fatalf("the schema was applied %d times", applied)
	}
}

func TestMigrateSaysFromWhereToWhere(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t)
	from, to, err := postgres.Migrate(within(t), url)
	must(t, err)
	if from != 0 || to < 1 {
		t.Fatalf("migrated from %d to %d", from, to)
	}
	again, still, err := postgres.Migrate(within(t), url)
	must(t, err)
	if again != to || still != to {
		t.Fatalf("a second time migrated from %d to %d", again, still)
	}
}

func TestAFailedMigrationFailsOpen(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t)
	conn := connect(t, url)
	exec(t, conn, `CREATE TABLE caches (in_the_way INT)`)
	if _, err := postgres.Open(within(t), postgres.Options{URL: url}); err == nil {
		t.Fatal("opened over a failed migration")
	}
	exec(t, conn, `DROP TABLE caches`)
	must(t, open(t, postgres.Options{URL: url}).Health(within(t))) // nothing was left half done
}

func TestAnOlderSchemaIsNotReadyAndANewerOneIs(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t)
	s := open(t, postgres.Options{URL: url})
	conn := connect(t, url)

	exec(t, conn, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, true)`)
	must(t, s.Health(within(t)))
	must(t, open(t, postgres.Options{URL: url}).Health(within(t)))

	exec(t, conn, `DELETE FROM goose_db_version WHERE version_id > 0`)
	err := s.Health(within(t))
	if err == nil || !strings.Contains(err.Error(), "schema has version 0") {
		t.Fatalf("an older schema: %v", err)
	}
	exec(t, conn, `INSERT INTO goose_db_version (version_id, is_applied) VALUES (1, true)`)
	must(t, s.Health(within(t)))
}

func TestCloseEndsEverything(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Options{URL: pgtest.Start(t)})
	must(t, s.Close())
	must(t, s.Close())
	ctx := within(t)
	_, err := s.Tenants(ctx)
	for name, err := range map[string]error{
		"read": err, "write": s.CreateTenant(ctx, model.Tenant{TenantID: "t"}), "health": s.Health(ctx),
	} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("%s after close: %v", name, err)
		}
	}
}

func TestPasswordsAreNeverShown(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t/pw d"
	for in, want := range map[string]string{
		"postgres://u:s3cr3t%2Fpw%20d@db:5432/felix?sslmode=disable": "postgres://u:xxxxx@db:5432/felix?sslmode=disable",
		"postgres://u@db/felix?password=s3cr3t%2Fpw+d&a=b":           "postgres://u@db/felix?a=b&password=xxxxx",
		"postgres://u@db/felix?PassWord=s3cr3t%2Fpw+d":               "postgres://u@db/felix?PassWord=xxxxx",
		"postgres://db/felix?sslpassword=s3cr3t%2Fpw+d":              "postgres://db/felix?sslpassword=xxxxx",
		"host=db password='s3cr3t/pw d' user=u":                      "host=db password=xxxxx user=u",
		"host=db password = s3cr3t/pw\\ d user=u":                    "host=db password=xxxxx user=u",
		"postgres://u:s3cr3t/pw d@db:5432/felix":                     "(a URL that cannot be parsed)",
		"postgres://u@db/felix":                                      "postgres://u@db/felix",
	} {
		if got := postgres.Redact(in); got != want {
			t.Errorf("Redact gave %q, want %q", got, want)
		}
	}

	server := pgtest.Start(t)
	closed := "postgres://u:s3cr3t%2Fpw%20d@127.0.0.1:1/felix?sslmode=disable"
	for _, url := range []string{
		closed,
		"postgres://u@127.0.0.1:1/felix?sslmode=disable&password=s3cr3t%2Fpw+d",
		"postgres://u:s3cr3t/pw d@127.0.0.1:1/felix",
		"postgres://u:s3cr3t%2Fpw%20d@127.0.0.1:port/felix",
		"host=127.0.0.1 port=1 sslmode=disable password='s3cr3t/pw d'",
		strings.Replace(server, "open%20sesame%2F123", "s3cr3t%2Fpw%20d", 1), // a wrong password
	} {
		var log bytes.Buffer
		s, err := postgres.Open(within(t), postgres.Options{URL: url, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err == nil {
			_ = s.Close()
			t.Fatal("opened with a wrong URL")
		}
		for _, form := range []string{secret, "s3cr3t"} {
			if strings.Contains(err.Error(), form) || strings.Contains(log.String(), form) {
				t.Errorf("the password is shown: %v\n%s", err, log.String())
			}
		}
	}
}

func TestTheLogOfAMigrationHasNoPassword(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s, err := postgres.Open(within(t), postgres.Options{URL: pgtest.Start(t), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	must(t, err)
	must(t, s.Close())
	if !strings.Contains(log.String(), "migrated the schema") || strings.Contains(log.String(), "sesame") {
		t.Fatalf("log: %s", log.String())
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]postgres.Options{
		"no URL":               {},
		"negative connections": {URL: "postgres://u@db/felix", MaxConns: -1},
		"negative timeout":     {URL: "postgres://u@db/felix", CallTimeout: -1},
	} {
		if _, err := postgres.Open(within(t), o); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
}

// Close does not wait for what may take minutes: the calls in flight fail.
func TestCloseEndsCallsInFlight(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t)
	s := open(t, postgres.Options{URL: url})
	blocker := connect(t, url)
	exec(t, blocker, `BEGIN`)
	exec(t, blocker, `LOCK TABLE tenants IN ACCESS EXCLUSIVE MODE`)
	calls := map[string]chan error{"export": make(chan error, 1), "read": make(chan error, 1), "write": make(chan error, 1)}
	go func() {
		_, err := s.Export(context.Background())
		calls["export"] <- err
	}()
	go func() {
		_, err := s.Tenants(context.Background())
		calls["read"] <- err
	}()
	go func() { calls["write"] <- s.CreateTenant(context.Background(), model.Tenant{TenantID: "t"}) }()
	waiting(t, url, 3)

	closed := make(chan error, 1)
	go func() { closed <- s.Close() }()
	for name, call := range calls {
		select {
		case err := <-call:
			if !errors.Is(err, store.ErrClosed) {
				t.Errorf("%s during close: %v", name, err)
			}
		case <-within(t).Done():
			t.Errorf("%s goes on after close", name)
		}
	}
	exec(t, blocker, `COMMIT`)
	must(t, <-closed)
}

func TestErrorsNameTheStoreOnce(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "postgres://u@db:port/felix", "postgres://u@127.0.0.1:1/felix?sslmode=disable"} {
		_, _, migrated := postgres.Migrate(within(t), url)
		_, opened := postgres.Open(within(t), postgres.Options{URL: url})
		for _, err := range []error{migrated, opened} {
			if err == nil || strings.Count(err.Error(), "postgres: ") != 1 {
				t.Errorf("%q: %v", url, err)
			}
		}
	}
}
