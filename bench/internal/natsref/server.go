// Package natsref measures NATS with its own server and client libraries, in
// the shapes Felix is measured in.
package natsref

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/felixlog/felix/bench/internal/pki"
)

// readyWithin bounds the start of a server.
const readyWithin = 10 * time.Second

// A ServerSpec configures a server.
type ServerSpec struct {
	// TLS encrypts, with the certificate in Files.
	TLS   bool      `json:"tls"`
	Files pki.Files `json:"files"`
	// JetStream serves streams and key-value buckets, and keeps those in
	// files under Dir.
	JetStream bool   `json:"jetstream"`
	Dir       string `json:"dir"`
	// SyncAlways syncs every write to a stream before it is acknowledged;
	// otherwise files are synced every two minutes, the server's default.
	SyncAlways bool `json:"sync_always"`
	// Backlog is how many records of BacklogBytes the stream of the run holds
	// before the server is ready. They are written without SyncAlways, which
	// would take minutes.
	Backlog      int `json:"backlog"`
	BacklogBytes int `json:"backlog_bytes"`
}

// Endpoint is what a started server says.
type Endpoint struct {
	URL string `json:"url"`
}

// Serve runs a server on a port of the kernel's choice until ctx ends. It
// tells ready its address.
func Serve(ctx context.Context, spec ServerSpec, ready func(Endpoint) error) error {
	if spec.Backlog > 0 {
		if err := prefill(ctx, spec); err != nil {
			return fmt.Errorf("fill stream: %w", err)
		}
	}
	s, err := start(spec)
	if err != nil {
		return err
	}
	defer stop(s)
	if err := ready(Endpoint{URL: s.ClientURL()}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// start starts a server that the caller must stop.
func start(spec ServerSpec) (*server.Server, error) {
	opts := &server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true}
	if spec.TLS {
		cfg, err := spec.Files.Server()
		if err != nil {
			return nil, err
		}
		opts.TLS, opts.TLSConfig = true, cfg
	}
	if spec.JetStream {
		opts.JetStream, opts.StoreDir, opts.SyncAlways = true, spec.Dir, spec.SyncAlways
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("configure server: %w", err)
	}
	go s.Start()
	if !s.ReadyForConnections(readyWithin) {
		stop(s)
		return nil, errors.New("server did not start in time")
	}
	return s, nil
}

func stop(s *server.Server) {
	s.Shutdown()
	s.WaitForShutdown()
}
