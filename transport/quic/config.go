package quic

import (
	"fmt"
	"log/slog"
	"time"

	quicgo "github.com/quic-go/quic-go"
)

const (
	defaultInitialStream = 512 * kib
	defaultInitialConn   = 1 * mib
)

// config is o as quic-go wants it, with every default in place.
func (o ConnOptions) config(windows Windows, log *slog.Logger) (*quicgo.Config, error) {
	idle := orDefault(o.IdleTimeout, DefaultIdleTimeout)
	if idle < 0 {
		return nil, fmt.Errorf("idle timeout %v is negative", idle)
	}
	c := &quicgo.Config{
		HandshakeIdleTimeout:  orDefault(o.HandshakeTimeout, DefaultHandshakeTimeout),
		MaxIdleTimeout:        idle,
		KeepAlivePeriod:       o.keepAlive(idle, log),
		MaxIncomingStreams:    orDefault(o.MaxStreams, DefaultMaxStreams),
		MaxIncomingUniStreams: orDefault(o.MaxUniStreams, DefaultMaxStreams),
	}
	if err := windows.apply(c); err != nil {
		return nil, err
	}
	return c, nil
}

// keepAlive applies [KeepAlivePeriod] and reports a configured value that it
// replaced. Leaving it at zero is the default and needs no report.
func (o ConnOptions) keepAlive(idle time.Duration, log *slog.Logger) time.Duration {
	if o.KeepAlive < 0 {
		return 0
	}
	period, adjusted := KeepAlivePeriod(idle, o.KeepAlive)
	if adjusted && o.KeepAlive > 0 && log != nil {
		log.Warn("keep-alive is not below half the idle timeout, using a third of it",
			"keep_alive", o.KeepAlive, "idle_timeout", idle, "used", period)
	}
	return period
}

func (w Windows) apply(c *quicgo.Config) error {
	if w.Stream == 0 || w.Conn == 0 {
		return fmt.Errorf("receive windows: stream %d and connection %d must both be set", w.Stream, w.Conn)
	}
	if w.Stream > w.Conn {
		return fmt.Errorf("receive windows: stream window %d is larger than connection window %d", w.Stream, w.Conn)
	}
	c.MaxStreamReceiveWindow, c.MaxConnectionReceiveWindow = w.Stream, w.Conn
	c.InitialStreamReceiveWindow = min(orDefault(w.InitialStream, defaultInitialStream), w.Stream)
	c.InitialConnectionReceiveWindow = min(orDefault(w.InitialConn, defaultInitialConn), w.Conn)
	return nil
}

func orDefault[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}
