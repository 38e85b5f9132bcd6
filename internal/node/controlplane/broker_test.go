package controlplane

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/client"
	"github.com/felixlog/felix/internal/config"
	"github.com/felixlog/felix/internal/node"
	"github.com/felixlog/felix/transport/tlsconfig"
)

// A brokerRig is a node with an agent.
type brokerRig struct {
	t     testing.TB
	c     *cluster
	id    string
	dir   string // of the logs; empty: none
	state string
	ca    *tlsconfig.DevCA
	log   *logged
	url   string
	port  string // pinned by the first start

	node  *node.Node
	agent *Agent
}

// logged keeps log lines.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// broker prepares a broker; an empty id stands alone.
func (c *cluster) broker(id string, durable bool) *brokerRig {
	c.t.Helper()
	dir := c.t.TempDir()
	ca, err := tlsconfig.LoadDevCA(dir, tlsconfig.DevOptions{})
	must(c.t, err)
	b := &brokerRig{t: c.t, c: c, id: id, state: filepath.Join(dir, "state"), ca: ca, log: new(logged), url: c.url(), port: "127.0.0.1:0"}
	must(c.t, os.Mkdir(b.state, 0o700))
	if durable {
		b.dir = filepath.Join(dir, "data")
		b.state = b.dir
		must(c.t, os.Mkdir(b.dir, 0o700))
	}
	return b
}

func (b *brokerRig) options() Options {
	o := Options{
		URL: b.url, Token: b.c.token("ops", "node.view:cluster:*", "node.manage:node:"+orNobody(b.id)), NodeID: b.id,
		Storage: b.dir != "", StateDir: b.state, SyncInterval: 200 * time.Millisecond, HandoffTimeout: 20 * time.Second,
		SeedTimeout: 5 * time.Second, LongPoll: 5 * time.Second, Weight: 1,
		Logger: slog.New(slog.NewTextHandler(b.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	return o
}

func orNobody(id string) string {
	if id == "" {
		return "nobody"
	}
	return id
}

// try starts node and agent.
func (b *brokerRig) try(ctx context.Context, change ...func(*Options)) error {
	b.t.Helper()
	flags := map[string]string{
		"quic-bind": b.port, "quic-listeners": "1", "metrics-bind": "127.0.0.1:0", "shutdown-drain-timeout-ms": "5000",
	}
	if b.dir != "" {
		flags["durable-storage-dir"] = b.dir
	}
	cfg, _, err := config.Load(config.Sources{Flags: flags, FileSystem: noFiles{}})
	must(b.t, err)
	o := b.options()
	if b.id != "" {
		// Where clients find the node is known before it is started: the port is
		// tried, and pinned.
		b.pin()
		flags["quic-bind"] = b.port
		cfg, _, err = config.Load(config.Sources{Flags: flags, FileSystem: noFiles{}})
		must(b.t, err)
		o.AdvertiseAddr, o.ClientAddr = b.port, b.port
	}
	for _, f := range change {
		f(&o)
	}
	agent, err := New(o)
	if err != nil {
		return err
	}
	cert := b.ca.ServerCertificate()
	n, err := node.Start(ctx, node.Options{
		Config: cfg, Keys: agent.Keys(), Directory: agent.Directory(), BeforeDrain: agent.Drain, AfterDrain: agent.Leave,
		Certificate: &cert, Logger: o.Logger, Version: "test",
	})
	if err != nil {
		agent.Close(ctx)
		return err
	}
	b.node, b.agent, b.port = n, agent, n.ClientAddrs()[0]
	if err := agent.Start(ctx, n.Core()); err != nil {
		b.stop()
		return err
	}
	n.Ready()
	agent.Join()
	return nil
}

func (b *brokerRig) start(change ...func(*Options)) *brokerRig {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	if err := b.try(ctx, change...); err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(b.stop)
	return b
}

// pin finds a free port.
func (b *brokerRig) pin() {
	b.t.Helper()
	if !strings.HasSuffix(b.port, ":0") {
		return
	}
	port, err := freePort()
	must(b.t, err)
	b.port = port
}

// stop shuts the broker down in order.
func (b *brokerRig) stop() {
	if b.node == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.node.Shutdown(ctx); err != nil {
		b.t.Log(err)
	}
	b.agent.Close(ctx)
	b.node = nil
}

func (b *brokerRig) dial(tenant string) *client.Client {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), patience)
	defer cancel()
	c, err := client.Dial(ctx, []string{b.port}, client.WithTenant(tenant), client.WithToken(b.c.clientToken(tenant)), client.WithCAPEM(b.ca.CAPEM()))
	must(b.t, err)
	b.t.Cleanup(func() { _ = c.Close() })
	return c
}

type noFiles struct{}

func (noFiles) ReadFile(name string) ([]byte, error) {
	return nil, &os.PathError{Op: "open", Path: name, Err: os.ErrNotExist}
}
