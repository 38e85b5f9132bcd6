// Package felixtest gives a test a real Felix node in its own process: real
// QUIC on a loopback port, real TLS, real tokens; in memory, or with [Durable]
// on disk.
//
//	func TestOrders(t *testing.T) {
//		n := felixtest.Start(t)
//		c, err := client.Dial(t.Context(), []string{n.Addr()},
//			client.WithTenant(n.Tenant()), client.WithToken(n.Token()), client.WithCAPEM(n.CAPEM()))
//		...
//	}
//
// Streams and caches appear on first use. The node ends with the test.
package felixtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/internal/config"
	"github.com/felixlog/felix/internal/node"
	"github.com/felixlog/felix/transport/tlsconfig"
)

// The tenant and namespace every test node knows.
const (
	tenant    = "t1"
	namespace = "default"
)

// TB is what a node needs of the test it belongs to.
type TB interface {
	Helper()
	Cleanup(func())
	Fatalf(format string, args ...any)
	Logf(format string, args ...any)
	TempDir() string
}

// A Node is a broker that belongs to one test.
type Node struct {
	t      TB
	opts   options
	dir    string
	ca     *tlsconfig.DevCA
	signer *auth.Signer
	keys   *auth.StaticKeys
	reset  [32]byte

	mu      sync.Mutex
	node    *node.Node
	bind    string                   // host:port, fixed by the first start
	created []func(*node.Node) error // what a durable node has again after a restart
}

// Start starts a node and arranges for its end with the test.
func Start(t TB, opts ...Option) *Node {
	t.Helper()
	n := &Node{t: t, dir: t.TempDir(), bind: "127.0.0.1:0", keys: auth.NewStaticKeys()}
	for _, o := range opts {
		o(&n.opts)
	}
	if err := n.prepare(); err != nil {
		t.Fatalf("prepare node: %v", err)
	}
	n.start()
	t.Cleanup(n.Stop)
	return n
}

func (n *Node) prepare() error {
	ca, err := tlsconfig.LoadDevCA(n.dir, tlsconfig.DevOptions{Hosts: n.opts.hosts})
	if err != nil {
		return err
	}
	private, err := auth.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	n.ca, n.signer = ca, auth.NewSigner("", private)
	if _, err := rand.Read(n.reset[:]); err != nil {
		return err
	}
	return n.keys.Set(tenant, []auth.Key{n.signer.Key()})
}

// start runs the node on n.bind and pins its port.
func (n *Node) start() {
	n.t.Helper()
	flags := map[string]string{
		"quic-bind":                 n.bind,
		"quic-listeners":            "1",
		"metrics-bind":              "127.0.0.1:0",
		"auto-create":               "true",
		"shutdown-drain-timeout-ms": "5000",
	}
	if n.opts.durable {
		flags["durable-storage-dir"] = n.DataDir()
	}
	for k, v := range n.opts.settings {
		flags[k] = v
	}
	cfg, _, err := config.Load(config.Sources{Flags: flags, FileSystem: noFiles{}})
	if err != nil {
		n.t.Fatalf("configure node: %v", err)
	}
	cert := n.ca.ServerCertificate()
	started, err := node.Start(context.Background(), node.Options{
		Config: cfg, Keys: n.keys, Certificate: &cert, ResetKey: &n.reset,
		Clock: n.opts.clock, Logger: n.opts.logger, FileSystem: n.opts.files, Version: "test",
	})
	if err != nil {
		n.t.Fatalf("start node: %v", err)
	}
	if err := started.AddTenant(tenant, namespace); err != nil {
		n.t.Fatalf("add tenant: %v", err)
	}
	for _, create := range n.created {
		if err := create(started); err != nil {
			n.t.Fatalf("create again: %v", err)
		}
	}
	started.Ready()
	n.mu.Lock()
	n.node, n.bind = started, started.ClientAddrs()[0]
	n.mu.Unlock()
}

// DataDir is where a durable node has its data.
func (n *Node) DataDir() string {
	if n.opts.data != "" {
		return n.opts.data
	}
	return filepath.Join(n.dir, "data")
}

// create makes something now and, on a durable node, after each restart.
func (n *Node) create(what string, f func(*node.Node) error) {
	n.t.Helper()
	if err := f(n.current()); err != nil {
		n.t.Fatalf("create %s: %v", what, err)
	}
	if n.opts.durable {
		n.created = append(n.created, f)
	}
}

// noFiles keeps a test node from reading the machine's configuration.
type noFiles struct{}

func (noFiles) ReadFile(name string) ([]byte, error) {
	return nil, &os.PathError{Op: "open", Path: name, Err: os.ErrNotExist}
}

func (n *Node) current() *node.Node {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.node
}

// Addr is the host:port clients dial.
func (n *Node) Addr() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.bind
}

// AdminURL is the base of the node's HTTP listener: /live, /ready, /metrics.
func (n *Node) AdminURL() string { return "http://" + n.current().AdminAddr() }

// Tenant is the tenant the node knows.
func (n *Node) Tenant() string { return tenant }

// Namespace is that tenant's namespace.
func (n *Node) Namespace() string { return namespace }

// CAFile is a PEM file with the authority that signed the node's certificate.
func (n *Node) CAFile() string { return filepath.Join(n.dir, "ca.pem") }

// CAPEM is the content of CAFile.
func (n *Node) CAPEM() []byte { return n.ca.CAPEM() }

// Token mints a token for the node's tenant that lives as long as the test.
// Without permissions it may do everything there.
func (n *Node) Token(permissions ...string) string {
	return n.TokenFor("tester", auth.NoExpiry(), permissions...)
}

// TokenFor mints a token for a subject that expires at a given time.
func (n *Node) TokenFor(subject string, expires time.Time, permissions ...string) string {
	if len(permissions) == 0 {
		permissions = everything()
	}
	token, err := n.signer.Mint(auth.Claims{
		Tenant: tenant, Subject: subject, Permissions: permissions,
		IssuedAt: time.Now(), Expires: expires,
	})
	if err != nil {
		n.t.Fatalf("mint token: %v", err)
	}
	return token
}

func everything() []string {
	var all []string
	for action, kind := range map[string]string{
		"stream.publish": "stream", "stream.subscribe": "stream", "stream.manage": "stream",
		"cache.read": "cache", "cache.write": "cache", "group.consume": "group", "group.manage": "group",
	} {
		all = append(all, fmt.Sprintf("%s:%s:%s/*", action, kind, tenant))
	}
	return all
}

// CreateStream registers a stream of several shards, durable on a durable
// node; a stream of one shard appears on first use.
func (n *Node) CreateStream(name string, shards int) {
	n.t.Helper()
	n.CreateStreamWith(name, broker.StreamOptions{Shards: uint32(shards), Durable: n.opts.durable})
}

// CreateStreamWith registers a stream with options of the caller's.
func (n *Node) CreateStreamWith(name string, o broker.StreamOptions) {
	n.t.Helper()
	full := broker.StreamName{Tenant: tenant, Namespace: namespace, Name: name}
	n.create("stream "+name, func(on *node.Node) error { return on.Core().AddStream(full, o) })
}

// RemoveStream removes a stream.
func (n *Node) RemoveStream(name string) {
	n.t.Helper()
	full := broker.StreamName{Tenant: tenant, Namespace: namespace, Name: name}
	if err := n.current().Core().RemoveStream(full); err != nil {
		n.t.Fatalf("remove stream %s: %v", name, err)
	}
}

// CreateCache registers a cache, on the log on a durable node.
func (n *Node) CreateCache(name string) {
	n.t.Helper()
	n.CreateCacheWith(name, broker.CacheOptions{Durable: n.opts.durable})
}

// CreateCacheWith registers a cache with options of the caller's.
func (n *Node) CreateCacheWith(name string, o broker.CacheOptions) {
	n.t.Helper()
	full := broker.CacheName{Tenant: tenant, Namespace: namespace, Name: name}
	n.create("cache "+name, func(on *node.Node) error { return on.Core().AddCache(full, o) })
}

// RemoveCache removes a cache.
func (n *Node) RemoveCache(name string) {
	n.t.Helper()
	full := broker.CacheName{Tenant: tenant, Namespace: namespace, Name: name}
	if err := n.current().Core().RemoveCache(full); err != nil {
		n.t.Fatalf("remove cache %s: %v", name, err)
	}
}

// Stats reads the totals of the node's core.
func (n *Node) Stats() broker.Stats { return n.current().Core().Stats() }

// Restart stops the node and starts it again on the same port. What it held
// in memory is gone, what was on the log is there again; certificate, keys and
// tokens stay good.
func (n *Node) Restart() {
	n.t.Helper()
	n.Stop()
	n.start()
}

// Stop shuts the node down. Stopping again does nothing.
func (n *Node) Stop() {
	n.mu.Lock()
	running := n.node
	n.node = nil
	n.mu.Unlock()
	if running == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := running.Shutdown(ctx); err != nil {
		n.t.Logf("shut node down: %v", err)
	}
}
