package controlplane

import (
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxScrapes bounds scrapes at once; more are answered 503.
const (
	maxScrapes    = 4
	scrapeTimeout = 10 * time.Second
)

// probeHandler serves the metrics listener (control plane 4.1): /metrics,
// /live, which touches nothing, and /ready, which reads the drain flag and not
// the store.
func (s *Server) probeHandler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /live", func(w http.ResponseWriter, _ *http.Request) { probe(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		if s.ready.isDraining() {
			probe(w, http.StatusServiceUnavailable, "draining")
			return
		}
		probe(w, http.StatusOK, "ok")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.metrics.registry, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(s.o.Logger.Handler(), slog.LevelWarn),
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
		Timeout:             scrapeTimeout,
	}))
	return mux
}

func probe(w http.ResponseWriter, status int, text string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	// A client that left is no concern of ours.
	_, _ = io.WriteString(w, text)
}
