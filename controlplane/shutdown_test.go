package controlplane

import (
	"bufio"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"
)

// Work in flight is given its deadline, then cut off, counted and said.
func TestShutdownCutsWhatHangs(t *testing.T) {
	st := newStuck(t)
	o := quick(st)
	o.ShutdownDrainTimeout = 50 * time.Millisecond
	o.ReadinessTimeout = 10 * time.Millisecond
	s := start(t, o)
	c := client(t)
	failed := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+s.Addr()+"/v1/tenants/x/.well-known/jwks.json", nil)
		if err != nil {
			failed <- err
			return
		}
		res, err := c.Do(req)
		if err == nil {
			_ = res.Body.Close()
		}
		failed <- err
	}()
	for what := range st.entered {
		if what == "tenant" {
			break
		}
	}
	if err := s.Shutdown(t.Context()); !errors.Is(err, errCut) {
		t.Errorf("%v", err)
	}
	if err := <-failed; err == nil {
		t.Error("the request was answered")
	}
	families, err := s.metrics.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	forced := 0.0
	for _, f := range families {
		if f.GetName() == "felix_drain_forced_total" {
			for _, m := range f.GetMetric() {
				forced += m.GetCounter().GetValue()
			}
		}
	}
	if forced == 0 {
		t.Error("what was cut off is not counted")
	}
	close(st.release)
}

// The end of the context, and a second call, end the predrain; every call
// answers the same.
func TestPredrainIsCutShort(t *testing.T) {
	o := quick(memoryStore(t))
	o.ShutdownPredrain = time.Hour
	s := start(t, o)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A client that uses its connection when the listener closes is answered, told to
// leave with an answer, and never cut off without one.
func TestClientsAreToldToLeave(t *testing.T) {
	l, err := listen("test", "127.0.0.1:0", 16, nil, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNoContent)
	}), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", l.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	ask := func() (told bool) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.addr(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := req.Write(conn); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(in, req)
		if err != nil {
			t.Fatalf("a request is not answered: %v", err)
		}
		_ = res.Body.Close()
		return res.Close
	}
	if ask() {
		t.Error("it is told to leave at once")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan bool)
	go func() { ended <- l.shutdown(ctx, time.Hour) }()
	for !ask() {
	}
	cancel()
	if <-ended {
		t.Error("work was cut off")
	}
	if other, err := net.Dial("tcp", l.addr()); err == nil {
		_ = other.Close()
		t.Error("connections are still accepted")
	}
}
