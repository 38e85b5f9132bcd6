package controlplane

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/felixlog/felix/client"
	server "github.com/felixlog/felix/controlplane"
	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/memory"
	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/internal/config"
	"github.com/felixlog/felix/internal/node"
	"github.com/felixlog/felix/transport/tlsconfig"
	"github.com/felixlog/felix/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 60 * time.Second

// A cluster is control plane instances on one store, and tokens for them.
type cluster struct {
	t         testing.TB
	store     store.Store
	instances []*server.Server
	signers   map[string]*auth.Signer
	admin     *apiclient.Client // may do everything
	change    func(*server.Options)
}

func newCluster(t testing.TB, instances int, change ...func(*server.Options)) *cluster {
	t.Helper()
	c := &cluster{t: t, store: memory.Open(memory.Options{}), signers: make(map[string]*auth.Signer)}
	c.change = func(o *server.Options) {
		for _, f := range change {
			f(o)
		}
	}
	t.Cleanup(func() {
		if err := c.store.Close(); err != nil {
			t.Error(err)
		}
	})
	for range instances {
		c.start("127.0.0.1:0")
	}
	c.tenant("ops")
	c.tenant("t1")
	c.admin = c.client(c.url(), c.token("ops", "tenant.manage:cluster:*", "node.view:cluster:*", "node.manage:cluster:*"))
	must(t, c.store.CreateNamespace(t.Context(), model.Namespace{TenantID: "t1", Namespace: "default"}))
	return c
}

// start adds an instance.
func (c *cluster) start(addr string) *server.Server {
	c.t.Helper()
	o := server.DefaultOptions()
	o.Store, o.ValidateName = c.store, wire.ValidateName
	o.BindAddr, o.MetricsBind = addr, "127.0.0.1:0"
	o.Logger = slog.New(slog.DiscardHandler)
	o.ShutdownPredrain, o.ShutdownDrainTimeout, o.PlacementSettle = 0, 5*time.Second, 0
	o.NodeHeartbeatInterval, o.NodeExpiryTimeout = 50*time.Millisecond, 30*time.Second
	o.NodeRegrantMargin, o.ShardReconcileInterval = 7500*time.Millisecond, 100*time.Millisecond
	c.change(&o)
	s, err := server.Start(c.t.Context(), o)
	if err != nil {
		c.t.Fatal(err)
	}
	c.instances = append(c.instances, s)
	c.t.Cleanup(func() { stop(s) })
	return s
}

// stop ends an instance at once.
func stop(s *server.Server) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = s.Shutdown(ctx) // work that is cut off is not this test's
}

// url names all instances.
func (c *cluster) url() string {
	var urls []string
	for _, s := range c.instances {
		urls = append(urls, "http://"+s.Addr())
	}
	return strings.Join(urls, ",")
}

// tenant makes a tenant with a key that the test has.
func (c *cluster) tenant(name string) {
	c.t.Helper()
	private, err := auth.GenerateKey(rand.Reader)
	must(c.t, err)
	signer := auth.NewSigner("", private)
	must(c.t, c.store.CreateTenant(c.t.Context(), model.Tenant{TenantID: name, DisplayName: name}))
	_, err = c.store.EnsureSigningKey(c.t.Context(), name, model.SigningKey{
		KID: signer.Key().ID, Seed: private.Seed(), Public: signer.Key().Public, Status: model.KeyCurrent,
	})
	must(c.t, err)
	c.signers[name] = signer
}

func (c *cluster) mint(tenant, audience string, perms ...string) string {
	c.t.Helper()
	token, err := c.signers[tenant].Mint(auth.Claims{
		Tenant: tenant, Subject: "tester", Audience: audience, Permissions: perms, IssuedAt: time.Now(), Expires: auth.NoExpiry(),
	})
	must(c.t, err)
	return token
}

func (c *cluster) token(tenant string, perms ...string) string {
	return c.mint(tenant, auth.AudienceControlPlane, perms...)
}

// clientToken is for brokers, and allows everything in a tenant.
func (c *cluster) clientToken(tenant string) string {
	var perms []string
	for _, p := range []string{"stream.publish:stream:", "stream.subscribe:stream:", "stream.manage:stream:", "cache.read:cache:", "cache.write:cache:", "group.consume:group:", "group.manage:group:"} {
		perms = append(perms, p+tenant+"/*")
	}
	return c.mint(tenant, auth.AudienceBroker, perms...)
}

func (c *cluster) client(url, token string) *apiclient.Client {
	c.t.Helper()
	a, err := apiclient.New(apiclient.Options{URL: url, Token: func(context.Context) (string, error) { return token, nil }})
	must(c.t, err)
	c.t.Cleanup(a.CloseIdle)
	return a
}

// of manages what is in a tenant.
func (c *cluster) of(tenant string) *apiclient.Client {
	return c.client(c.url(), c.token(tenant, "ns.manage:namespace:"+tenant+"/*", "stream.manage:stream:"+tenant+"/*/*", "cache.manage:cache:"+tenant+"/*/*"))
}

var defaultNamespace = model.NamespaceKey{TenantID: "t1", Namespace: "default"}

// stream creates a stream through the API.
func (c *cluster) stream(name string, shards uint32, durable bool) model.Stream {
	c.t.Helper()
	s, err := c.of("t1").CreateStream(c.t.Context(), defaultNamespace, apiclient.StreamSpec{
		Stream: name, Kind: model.KindStream, Shards: shards, Consistency: model.Leader, Delivery: model.AtLeastOnce, Durable: durable,
	})
	must(c.t, err)
	return s
}

func (c *cluster) cache(name string, shards uint32) model.Cache {
	c.t.Helper()
	ca, err := c.of("t1").CreateCache(c.t.Context(), defaultNamespace, apiclient.CacheSpec{Cache: name, DisplayName: name, Shards: shards})
	must(c.t, err)
	return ca
}

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

// kill stops it without a word to the control plane, nor a drain.
func (b *brokerRig) kill() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	b.agent.cancel()
	_ = b.node.Shutdown(ctx)
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

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits for what must become true.
func eventually(t testing.TB, what string, f func() error) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %v", what, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

var errNotYet = errors.New("not yet")

func when(ok bool) error {
	if ok {
		return nil
	}
	return errNotYet
}

// has says whether the core serves a stream.
func (b *brokerRig) has(name string) error {
	_, err := b.node.Core().Stream("t1", "default", name)
	return err
}

func (b *brokerRig) publish(c *client.Client, stream, text string) {
	b.t.Helper()
	eventually(b.t, "publish to "+stream, func() error {
		ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
		defer cancel()
		_, err := c.Publish(ctx, stream, []byte(text))
		return err
	})
}

// read is every record of shard 0 of a durable stream.
func (b *brokerRig) read(c *client.Client, stream string) (records []string, err error) {
	ctx, cancel := context.WithTimeout(b.t.Context(), 10*time.Second)
	defer cancel()
	page, err := c.Read(ctx, stream, client.Range{})
	if err != nil {
		return nil, err
	}
	for _, e := range page.Records {
		records = append(records, string(e.Payload))
	}
	return records, nil
}

func (b *brokerRig) expect(c *client.Client, stream string, want ...string) {
	b.t.Helper()
	eventually(b.t, "read "+stream, func() error {
		got, err := b.read(c, stream)
		if err == nil && strings.Join(got, ",") != strings.Join(want, ",") {
			err = fmt.Errorf("records are %q, want %q", got, want)
		}
		return err
	})
}

func put(ctx context.Context, c *client.Cache, key, value string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return c.Put(ctx, key, []byte(value))
}
