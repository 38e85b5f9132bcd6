package admin

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gauge remembers what it was set to.
type gauge struct {
	mu    sync.Mutex
	value float64
}

func (g *gauge) Set(v float64) { g.mu.Lock(); g.value = v; g.mu.Unlock() }

func (g *gauge) get() float64 { g.mu.Lock(); defer g.mu.Unlock(); return g.value }

func options() Options {
	return Options{
		Addr: "127.0.0.1:0", Readiness: NewReadiness(&gauge{}, nil), Gatherer: prometheus.NewRegistry(),
		Logger: slog.New(slog.DiscardHandler),
	}
}

func serve(t *testing.T, o Options) *Server {
	t.Helper()
	s, err := Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		http.DefaultClient.CloseIdleConnections()
	})
	return s
}

func get(t *testing.T, s *Server, path string) (int, string) {
	t.Helper()
	answer, err := http.Get("http://" + s.Addr().String() + path)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func TestLifeOfANode(t *testing.T) {
	g := &gauge{value: 7}
	o := options()
	o.Readiness = NewReadiness(g, nil)
	s := serve(t, o)
	for _, step := range []struct {
		reach  State
		status int
		body   string
		gauge  float64
	}{
		{Starting, 503, "starting", 0},
		{Serving, 200, "ok", 1},
		{Starting, 200, "ok", 1},
		{Draining, 503, "draining", 0},
		{Serving, 503, "draining", 0}, // a start that completes late
	} {
		o.Readiness.Reach(step.reach)
		if status, body := get(t, s, "/ready"); status != step.status || body != step.body {
			t.Errorf("after %s /ready answers %d %q, want %d %q", step.reach, status, body, step.status, step.body)
		}
		if status, body := get(t, s, "/live"); status != 200 || body != "ok" {
			t.Errorf("after %s /live answers %d %q", step.reach, status, body)
		}
		if g.get() != step.gauge {
			t.Errorf("after %s the gauge is %v, want %v", step.reach, g.get(), step.gauge)
		}
	}
}

func TestMetricsAreServed(t *testing.T) {
	o := options()
	registry := prometheus.NewRegistry()
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: "felix_test_total", Help: "x"})
	registry.MustRegister(c)
	c.Add(3)
	o.Gatherer = registry
	if status, body := get(t, serve(t, o), "/metrics"); status != 200 || !strings.Contains(body, "felix_test_total 3\n") {
		t.Errorf("%d %s", status, body)
	}
}

func TestABrokenMetricDoesNotTouchHealth(t *testing.T) {
	o := options()
	var logged bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	o.Gatherer = prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		return nil, errors.New("collector is broken")
	})
	h := Handler(o)
	for path, want := range map[string]int{"/metrics": 500, "/live": 200, "/ready": 503} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != want {
			t.Errorf("%s answers %d, want %d", path, w.Code, want)
		}
	}
	if !strings.Contains(logged.String(), "collector is broken") {
		t.Errorf("logged %q", logged.String())
	}
}

func TestOnlyReadsAreAnswered(t *testing.T) {
	s := serve(t, options())
	for _, tt := range []struct {
		method, path string
		want         int
	}{
		{"HEAD", "/live", 200}, {"HEAD", "/ready", 503}, {"POST", "/live", 405}, {"DELETE", "/metrics", 405},
		{"GET", "/", 404}, {"GET", "/live/x", 404}, {"GET", "/debug/pprof/", 404}, {"GET", "/debug/pprof/heap", 404},
	} {
		r, err := http.NewRequest(tt.method, "http://"+s.Addr().String()+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if answer.StatusCode != tt.want {
			t.Errorf("%s %s answers %d, want %d", tt.method, tt.path, answer.StatusCode, tt.want)
		}
	}
}

func TestProfilesBehindTheSwitch(t *testing.T) {
	o := options()
	o.PProf = true
	s := serve(t, o)
	for _, path := range []string{"/debug/pprof/", "/debug/pprof/goroutine?debug=1", "/debug/pprof/cmdline", "/debug/pprof/symbol"} {
		if status, _ := get(t, s, path); status != 200 {
			t.Errorf("%s answers %d", path, status)
		}
	}
	// A profile may be asked to run for longer than other answers may take.
	if status, body := get(t, s, "/debug/pprof/trace?seconds=0.01"); status != 200 {
		t.Errorf("trace answers %d %s", status, body)
	}
}

func TestTakenAddressIsNamed(t *testing.T) {
	s := serve(t, options())
	o := options()
	o.Addr = s.Addr().String()
	if _, err := Listen(o); err == nil || !strings.Contains(err.Error(), o.Addr) {
		t.Errorf("%v does not name %s", err, o.Addr)
	}
}

func TestShutdownWaitsAndThenCutsOff(t *testing.T) {
	o := options()
	started, release := make(chan struct{}), make(chan struct{})
	o.Gatherer = prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		close(started)
		<-release
		return nil, nil
	})
	s, err := Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		answer, err := http.Get("http://" + s.Addr().String() + "/metrics")
		if err == nil {
			answer.Body.Close()
		}
		answered <- err
	}()
	<-started
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Shutdown(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's error", err)
	}
	if err := <-answered; err == nil {
		t.Error("a request in flight past the deadline is answered")
	}
	close(release)
	if c, err := net.DialTimeout("tcp", s.Addr().String(), time.Second); err == nil {
		c.Close()
		t.Error("the address still accepts")
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestReadinessIsSafeForConcurrentUse(t *testing.T) {
	g := &gauge{}
	r := NewReadiness(g, nil)
	var work sync.WaitGroup
	for range 50 {
		for _, s := range []State{Serving, Draining, Starting} {
			work.Go(func() { r.Reach(s); _ = r.State() })
		}
	}
	work.Wait()
	if r.State() != Draining || g.get() != 0 {
		t.Errorf("ends %s with the gauge at %v", r.State(), g.get())
	}
}

// A node that serves is not ready while there is a reason, which is what
// /ready answers; it becomes ready again by itself, and /live stays 200.
func TestReadyNamesTheReason(t *testing.T) {
	var mu sync.Mutex
	why := "opening 3 of 10 logs"
	g := &gauge{}
	o := options()
	o.Readiness = NewReadiness(g, func() string { mu.Lock(); defer mu.Unlock(); return why })
	s := serve(t, o)
	for _, step := range []struct {
		reach  State
		why    string
		status int
		body   string
		gauge  float64
	}{
		{Starting, "opening 3 of 10 logs", 503, "starting", 0},
		{Serving, "opening 3 of 10 logs", 503, "opening 3 of 10 logs", 0},
		{Serving, "", 200, "ok", 1},
		{Serving, "storage full", 503, "storage full", 0},
		{Serving, "", 200, "ok", 1},
		{Draining, "storage full", 503, "draining", 0},
	} {
		mu.Lock()
		why = step.why
		mu.Unlock()
		o.Readiness.Reach(step.reach)
		if status, body := get(t, s, "/ready"); status != step.status || body != step.body || g.get() != step.gauge {
			t.Errorf("%s, %q: %d %q and a gauge of %v", step.reach, step.why, status, body, g.get())
		}
		if status, _ := get(t, s, "/live"); status != 200 {
			t.Errorf("%s, %q: /live answers %d", step.reach, step.why, status)
		}
	}
}
