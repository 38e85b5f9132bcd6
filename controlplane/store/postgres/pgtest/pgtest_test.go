package pgtest_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/felixlog/felix/controlplane/store/postgres/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.Tests(m)) }

func timeout(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	ctx := timeout(t, time.Minute)
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func TestEachTestHasItsOwnDatabase(t *testing.T) {
	ctx := timeout(t, time.Minute)
	for range 2 {
		conn := connect(t, pgtest.Start(t))
		if _, err := conn.Exec(ctx, "CREATE TABLE only_here (n INT)"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAServerCanBeStoppedAndStartedAgain(t *testing.T) {
	ctx := timeout(t, 2*time.Minute)
	server := pgtest.StartServer(t, nil)
	url := server.URL(t, "mine")
	conn := connect(t, url)
	if _, err := conn.Exec(ctx, "CREATE TABLE kept (n INT)"); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	if _, err := conn.Exec(ctx, "SELECT 1"); err == nil {
		t.Fatal("a connection lives on over a stop")
	}
	if _, err := pgx.Connect(ctx, url); err == nil {
		t.Fatal("a stopped server is connected to")
	}
	server.Restart(t)
	if _, err := connect(t, url).Exec(ctx, "SELECT n FROM kept"); err != nil {
		t.Fatal(err)
	}
}

func TestProxySilencesAndCuts(t *testing.T) {
	ctx := timeout(t, 2*time.Minute)
	proxy, url := pgtest.NewProxy(t, pgtest.Start(t))
	conn := connect(t, url)

	proxy.Silence()
	answered := make(chan error, 1)
	go func() {
		_, err := conn.Exec(ctx, "SELECT 1")
		answered <- err
	}()
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	if _, err := pgx.Connect(short, url); err == nil {
		t.Fatal("a silent server is connected to")
	}
	select {
	case err := <-answered:
		t.Fatalf("a silent server answered: %v", err)
	default:
	}
	proxy.Heal()
	if err := <-answered; err != nil {
		t.Fatalf("what was held back did not arrive: %v", err)
	}

	proxy.Cut()
	if _, err := conn.Exec(ctx, "SELECT 1"); err == nil {
		t.Fatal("a cut connection lives on")
	}
	if _, err := pgx.Connect(ctx, url); err == nil {
		t.Fatal("connected over a cut")
	}
	proxy.Heal()
	connect(t, url)
}
