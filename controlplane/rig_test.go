package controlplane

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/memory"
	"github.com/felixlog/felix/controlplane/store/postgres/pgtest"
	"github.com/felixlog/felix/wire"
)

// patience is how long a test waits for what must happen.
const patience = 60 * time.Second

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.Tests(m)) }

// quick are the options of an instance on free ports.
func quick(st store.Store) Options {
	o := DefaultOptions()
	o.Store = st
	o.BindAddr, o.MetricsBind, o.Bootstrap.BindAddr = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	o.ValidateName = wire.ValidateName
	o.Logger = slog.New(slog.DiscardHandler)
	o.ShutdownPredrain = 0
	return o
}

func memoryStore(t *testing.T) *memory.Store {
	t.Helper()
	st := memory.Open(memory.Options{})
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// start starts an instance that ends with the test.
func start(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil && !errors.Is(err, errCut) {
			t.Errorf("shutdown: %v", err)
		}
	})
	return s
}

// client is one whose connections end with the test.
func client(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// get answers the status and the body.
func get(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, strings.TrimSpace(string(text))
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("never happened: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// A stuck store answers nothing while it is held, whatever its callers' time.
type stuck struct {
	*memory.Store
	entered chan string   // what was asked
	release chan struct{} // closed to let go
}

func newStuck(t *testing.T) *stuck {
	return &stuck{Store: memoryStore(t), entered: make(chan string, 1000), release: make(chan struct{})}
}

func (s *stuck) Health(context.Context) error {
	s.entered <- "health"
	<-s.release
	return nil
}

func (s *stuck) Tenant(ctx context.Context, id string) (model.Tenant, error) {
	s.entered <- "tenant"
	<-s.release
	return s.Store.Tenant(ctx, id)
}
