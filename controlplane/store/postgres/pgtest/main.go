package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// patience bounds each step of starting and asking a server on a busy machine.
const patience = 2 * time.Minute

// A Runner runs the tests of a package; [testing.M] is one.
type Runner interface{ Run() int }

// Main runs the tests of a package, stops the server they used, and exits. It is
// called from TestMain.
func Main(m *testing.M) { os.Exit(Tests(m).Run()) }

// Tests is m with the server stopped at the end, for checks that come after it:
// goleak.VerifyTestMain(pgtest.Tests(m)).
func Tests(m Runner) Runner { return &suite{tests: m} }

type suite struct{ tests Runner }

func (s *suite) Run() int {
	shared.open()
	defer shared.close()
	return s.tests.Run()
}

// shared is the one server of a test binary. It has to outlive the tests that
// use it, so it belongs to the process.
var shared binaryServer

type binaryServer struct {
	mu     sync.Mutex
	opened bool
	tried  bool
	server *Server
	err    error
	count  int // of databases
}

func (b *binaryServer) open() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened = true
}

func (b *binaryServer) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened = false
	if b.server != nil {
		b.server.remove()
	}
}

// use returns the server, started if need be, and the name of a new database. A
// server that did not start is not tried again.
func (b *binaryServer) use(ctx context.Context) (*Server, string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.opened {
		return nil, "", errors.New("no server to test with: call pgtest.Main(m) from TestMain of this package")
	}
	if !b.tried {
		b.tried = true
		b.server, b.err = launch(ctx, nil)
	}
	if b.err != nil {
		return nil, "", b.err
	}
	b.count++
	return b.server, fmt.Sprintf("felix_%d", b.count), nil
}

// Start returns the URL of an empty database that is dropped when the test ends.
// Without Postgres on the machine it skips the test, or fails it where CI=true.
func Start(t testing.TB) (url string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	server, name, err := shared.use(ctx)
	if err != nil {
		giveUp(t, err)
	}
	if err := server.admin(ctx, "CREATE DATABASE "+name+" TEMPLATE template0"); err != nil {
		t.Fatalf("create database: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := server.admin(ctx, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("drop database: %v", err)
		}
	})
	return server.url(name)
}

// StartServer returns a server of the test's own, which the test may stop and
// start again. Settings are added to its configuration, or replace what pgtest
// chose for speed; with "fsync": "on" the server's data is on disk.
func StartServer(t testing.TB, settings map[string]string) *Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	server, err := launch(ctx, settings)
	if err != nil {
		giveUp(t, err)
	}
	t.Cleanup(server.remove)
	return server
}

// giveUp ends a test that has no server.
func giveUp(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, errNotInstalled) && os.Getenv("CI") != "true" {
		t.Skipf("this test needs Postgres: %v", err)
	}
	t.Fatalf("start Postgres: %v", err)
}
