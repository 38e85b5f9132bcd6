package controlplane

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/net/netutil"
)

// What clients of a listener may cost.
const (
	maxConnections      = 8192
	maxOtherConnections = 256 // of the metrics and bootstrap listeners
	maxHeaderBytes      = 64 << 10
	headerTimeout       = 10 * time.Second
	idleTimeout         = 2 * time.Minute
	// writeTimeout is more than the longest wait of a handler and the answer.
	writeTimeout = 2 * time.Minute
)

// A listener serves HTTP on one address.
type listener struct {
	name    string
	http    *http.Server
	socket  net.Listener
	leaving atomic.Bool   // nothing is accepted any more
	stopped chan struct{} // closed when that is so
}

// listen binds an address and serves it, over TLS where there is a
// configuration.
func listen(name, addr string, most int, config *tls.Config, handler http.Handler, logger *slog.Logger) (*listener, error) {
	socket, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for the %s: %w", name, err)
	}
	l := &listener{name: name, socket: netutil.LimitListener(socket, most), stopped: make(chan struct{})}
	l.http = &http.Server{
		Handler:           l.closing(handler),
		TLSConfig:         config,
		ReadHeaderTimeout: headerTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
	}
	go func() {
		defer close(l.stopped)
		serve := func() error { return l.http.Serve(l.socket) }
		if config != nil {
			serve = func() error { return l.http.ServeTLS(l.socket, "", "") }
		}
		if err := serve(); !errors.Is(err, http.ErrServerClosed) && !l.leaving.Load() {
			logger.Error("an HTTP listener ended", "listener", name, "addr", socket.Addr().String(), "error", err)
		}
	}()
	return l, nil
}

func (l *listener) addr() string { return l.socket.Addr().String() }

// closing has clients leave their connections with the next answer, once nothing
// is accepted any more.
func (l *listener) closing(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.leaving.Load() {
			w.Header().Set("Connection", "close")
		}
		handler.ServeHTTP(w, r)
	})
}

// shutdown stops accepting and waits for requests until ctx ends; then it cuts
// them off and says so. Connections that are in use have the time of linger to
// be left by their clients: a request that meets the close of its connection is
// never answered, and the client of a write cannot tell what became of it.
func (l *listener) shutdown(ctx context.Context, linger time.Duration) (cut bool) {
	l.leaving.Store(true)
	_ = l.socket.Close() // it is not used any more, whatever it says
	timer := time.NewTimer(linger)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	// Any other error is that the socket is closed already, as it is.
	cut = errors.Is(l.http.Shutdown(ctx), context.DeadlineExceeded)
	if cut {
		_ = l.http.Close() // what is cut off has no more to say
	}
	<-l.stopped
	return cut
}
