package dev

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/internal/config"
	"github.com/felixlog/felix/storage/fs"
)

func start(t *testing.T, o Options) *Server {
	t.Helper()
	server, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return server
}

// Streams and caches appear on first use, and a late reader gets what was
// published before.
func TestFirstUseMakesStreamsAndCaches(t *testing.T) {
	server := start(t, Options{})
	if server.CAFile() != "" || server.TokenFile() != "" {
		t.Errorf("a server in memory names files %q, %q", server.CAFile(), server.TokenFile())
	}
	c, err := server.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	const messages = 3000 // more than a broker keeps by default
	publisher := c.Publisher("orders")
	for i := range messages {
		if err := publisher.SendFunc(t.Context(), func(client.Ack, error) {}, strconv.AppendInt(nil, int64(i), 10)); err != nil {
			t.Fatal(err)
		}
	}
	if err := publisher.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	subscription, err := c.Subscribe(t.Context(), "orders", client.From(client.Earliest()))
	if err != nil {
		t.Fatal(err)
	}
	defer subscription.Close()
	for i := range messages {
		event, err := subscription.Next(t.Context())
		if err != nil || string(event.Payload) != strconv.Itoa(i) {
			t.Fatalf("message %d is %q, error %v", i, event.Payload, err)
		}
	}
	users := c.Cache("users")
	if err := users.Put(t.Context(), "u1", []byte("v")); err != nil {
		t.Fatal(err)
	}
	if value, found, err := users.Get(t.Context(), "u1"); err != nil || !found || string(value) != "v" {
		t.Errorf("value %q, found %v, error %v", value, found, err)
	}
}

// What was published and cached is there again after a restart, and of two
// servers only one has the data.
func TestDataIsFoundAgain(t *testing.T) {
	o := Options{Dir: t.TempDir()}
	o.Data = DataDir(o.Dir)
	first, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if first.DataDir() != o.Data || first.Fsync() != config.FsyncOnCommit {
		t.Errorf("data in %q, fsync %q", first.DataDir(), first.Fsync())
	}
	c, err := first.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ack, err := c.Publish(t.Context(), "orders", []byte("kept"))
	if err != nil || !ack.HasOffset || ack.Offset != 0 {
		t.Errorf("published %+v: %v", ack, err)
	}
	if err := c.Cache("users").Put(t.Context(), "u1", []byte("v")); err != nil {
		t.Error(err)
	}
	c.Close()
	var locked *fs.LockedError
	if _, err := Start(t.Context(), o); !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Errorf("a second server on the same data: %v", err)
	}
	if err := first.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}

	second := start(t, o)
	if c, err = second.Dial(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	subscription, err := c.Subscribe(t.Context(), "orders", client.From(client.Earliest()))
	if err != nil {
		t.Fatal(err)
	}
	defer subscription.Close()
	if event, err := subscription.Next(t.Context()); err != nil || string(event.Payload) != "kept" {
		t.Errorf("event %q, error %v", event.Payload, err)
	}
	if value, found, err := c.Cache("users").Get(t.Context(), "u1"); err != nil || !found || string(value) != "v" {
		t.Errorf("value %q, found %v, error %v", value, found, err)
	}
}

func TestTakenPortIsNamed(t *testing.T) {
	first := start(t, Options{})
	_, text, err := net.SplitHostPort(first.Addr())
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Start(t.Context(), Options{Port: port})
	taken, ok := errors.AsType[*PortTakenError](err)
	if !ok || taken.Network != UDP || taken.Port != port {
		t.Errorf("error %v, want that UDP port %d is taken", err, port)
	}
}

// The environment tunes the broker, but cannot make it listen elsewhere or
// present other certificates; a settings file is not read.
func TestEnvironmentTunes(t *testing.T) {
	environ := []string{
		"FELIX_QUIC_BIND=0.0.0.0:1", "FELIX_QUIC_LISTENERS=4", "FELIX_TLS_CERT=/no/such/file",
		"FELIX_BROKER_CONFIG=/no/such/file", "FELIX_BROKER_PUBLISH_WINDOW=7", "FELIX_AUTH_TENANT=t1",
	}
	given := slices.Clone(environ)
	cfg, _, err := settings(&Options{Port: 5000, Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(environ, given) {
		t.Errorf("the caller's environment was changed to %v", environ)
	}
	if cfg.Listen.QUICBind != "127.0.0.1:5000" || cfg.Listen.QUICListeners != 1 || cfg.TLS.CertFile != "" {
		t.Errorf("listens on %s (%d listeners) with %q", cfg.Listen.QUICBind, cfg.Listen.QUICListeners, cfg.TLS.CertFile)
	}
	if cfg.Publish.Window != 7 || cfg.Publish.RingRecords != 100_000 || cfg.Process.Log != "warn" {
		t.Errorf("window %d, ring of %d, log %s", cfg.Publish.Window, cfg.Publish.RingRecords, cfg.Process.Log)
	}
	cfg, _, err = settings(&Options{
		Environ: []string{"FELIX_STREAM_RING_RECORDS=10", "FELIX_LOG=debug"},
		Flags:   map[string]string{"subscriber-queue-policy": "block"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Publish.RingRecords != 10 || cfg.Process.Log != "debug" || cfg.Subscribe.QueuePolicy != config.Block {
		t.Errorf("ring of %d, log %s, policy %s", cfg.Publish.RingRecords, cfg.Process.Log, cfg.Subscribe.QueuePolicy)
	}
	cfg, _, err = settings(&Options{Data: "/data", Environ: []string{"FELIX_DURABLE_FSYNC_MODE=none"}})
	if err != nil || cfg.Storage.Dir != "/data" || cfg.Storage.Fsync != config.FsyncNone || cfg.Publish.RingRecords != 1024 {
		t.Errorf("storage %+v, ring of %d, error %v", cfg.Storage, cfg.Publish.RingRecords, err)
	}
	cfg, warnings, err := settings(&Options{Environ: []string{"FELIX_DURABLE_STORAGE_DIR=/data", "FELIX_STORAGE_SOFT_FREE_BYTES=1"}})
	if err != nil || cfg.Storage.Dir != "" || len(warnings) > 0 {
		t.Errorf("in memory, storage in %q, warnings %q, error %v", cfg.Storage.Dir, warnings, err)
	}
	if _, _, err := settings(&Options{Environ: []string{"FELIX_BROKER_PUBLISH_WINDOW=many"}}); !errors.Is(err, ErrSettings) {
		t.Errorf("a value that is no number: %v", err)
	}
}
