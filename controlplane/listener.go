package controlplane

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
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
	stopped chan struct{}
}

// listen binds an address and serves it, over TLS where there is a
// configuration.
func listen(name, addr string, most int, config *tls.Config, handler http.Handler, logger *slog.Logger) (*listener, error) {
	socket, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for the %s: %w", name, err)
	}
	l := &listener{
		name: name, socket: socket, stopped: make(chan struct{}),
		http: &http.Server{
			Handler:           handler,
			TLSConfig:         config,
			ReadHeaderTimeout: headerTimeout,
			WriteTimeout:      writeTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeaderBytes,
			ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		},
	}
	go func() {
		defer close(l.stopped)
		limited := netutil.LimitListener(socket, most)
		serve := func() error { return l.http.Serve(limited) }
		if config != nil {
			serve = func() error { return l.http.ServeTLS(limited, "", "") }
		}
		if err := serve(); !errors.Is(err, http.ErrServerClosed) {
			logger.Error("an HTTP listener ended", "listener", name, "addr", socket.Addr().String(), "error", err)
		}
	}()
	return l, nil
}

func (l *listener) addr() string { return l.socket.Addr().String() }

// shutdown stops accepting and waits for requests until ctx ends; then it cuts
// them off and says so.
func (l *listener) shutdown(ctx context.Context) (cut bool) {
	err := l.http.Shutdown(ctx)
	if err != nil {
		// What is cut off has no more to say.
		_ = l.http.Close()
	}
	<-l.stopped
	return err != nil
}
