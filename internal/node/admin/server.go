// Package admin is the HTTP listener for operators: /live, /ready, /metrics
// and, behind a switch, /debug/pprof (broker 13). It is plain HTTP without
// authentication, and answers reads only.
//
// /live touches nothing and answers 200 as long as the process runs: a node
// that cannot serve is taken out by /ready, and not restarted for it.
package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/net/netutil"
)

// What a client of the listener may cost.
const (
	maxConnections    = 256
	maxHeaderBytes    = 16 << 10
	maxScrapes        = 4 // at once; more are answered 503
	readTimeout       = 5 * time.Second
	idleTimeout       = 30 * time.Second
	scrapeTimeout     = 10 * time.Second
	writeTimeout      = 30 * time.Second
	pprofWriteTimeout = 5 * time.Minute // a profile takes as long as it was asked to
)

// Options are the parameters of [Listen].
type Options struct {
	Addr      string // host:port
	Readiness *Readiness
	Gatherer  prometheus.Gatherer
	PProf     bool
	Logger    *slog.Logger
}

// A Server is a running listener.
type Server struct {
	http     *http.Server
	listener net.Listener
	stopped  chan struct{}
}

// Listen binds the address and serves until Shutdown. The error says which
// address could not be bound.
func Listen(o Options) (*Server, error) {
	listener, err := net.Listen("tcp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("listen for HTTP: %w", err)
	}
	s := &Server{
		http: &http.Server{
			Handler:           Handler(o),
			ReadHeaderTimeout: readTimeout,
			ReadTimeout:       readTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeaderBytes,
			ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
		},
		listener: listener,
		stopped:  make(chan struct{}),
	}
	go func() {
		defer close(s.stopped)
		err := s.http.Serve(netutil.LimitListener(listener, maxConnections))
		if !errors.Is(err, http.ErrServerClosed) {
			o.Logger.Error("HTTP listener ended", "addr", listener.Addr().String(), "error", err)
		}
	}()
	return s, nil
}

// Addr is the bound address.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Shutdown stops accepting and waits for requests being served until ctx
// ends; then it cuts them off and returns ctx's error.
func (s *Server) Shutdown(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	<-s.stopped
	return err
}

// Handler is what the listener serves.
func Handler(o Options) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /live", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		ready, text := o.Readiness.Check()
		status := http.StatusServiceUnavailable
		if ready {
			status = http.StatusOK
		}
		answer(w, status, text)
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(o.Gatherer, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(o.Logger.Handler(), slog.LevelWarn),
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
		Timeout:             scrapeTimeout,
	}))
	if o.PProf {
		mux.Handle("GET /debug/pprof/", within(pprofWriteTimeout, pprof.Index))
		mux.Handle("GET /debug/pprof/cmdline", within(pprofWriteTimeout, pprof.Cmdline))
		mux.Handle("GET /debug/pprof/profile", within(pprofWriteTimeout, pprof.Profile))
		mux.Handle("GET /debug/pprof/symbol", within(pprofWriteTimeout, pprof.Symbol))
		mux.Handle("GET /debug/pprof/trace", within(pprofWriteTimeout, pprof.Trace))
	}
	return within(writeTimeout, mux.ServeHTTP)
}

func answer(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text) // a client that left is no concern of ours
}

// within bounds the time an answer may take. The deadline is set per request,
// because that of a profile is longer than that of the rest.
func within(limit time.Duration, serve http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Recorders and wrappers without deadlines are not the network's.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit))
		serve(w, r)
	})
}
