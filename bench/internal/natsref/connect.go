package natsref

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/felixlog/felix/bench/internal/pki"
)

// A Target is a server to load, and how.
type Target struct {
	URL   string    `json:"url"`
	TLS   bool      `json:"tls"`
	Files pki.Files `json:"files"`
}

// connect opens one connection. What goes wrong on it later, a dropped
// message above all, ends the run through fail.
func (t Target) connect(fail context.CancelCauseFunc) (*nats.Conn, error) {
	opts := []nats.Option{
		nats.NoReconnect(),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { fail(fmt.Errorf("nats: %w", err)) }),
		nats.ClosedHandler(func(nc *nats.Conn) { fail(errors.Join(errors.New("nats: connection closed"), nc.LastError())) }),
	}
	if t.TLS {
		cfg, err := t.Files.Client()
		if err != nil {
			return nil, err
		}
		opts = append(opts, nats.Secure(cfg))
	}
	nc, err := nats.Connect(t.URL, opts...)
	if err != nil {
		return nil, fmt.Errorf("connect to nats: %w", err)
	}
	return nc, nil
}
