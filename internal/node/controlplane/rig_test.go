package controlplane

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	server "github.com/felixlog/felix/controlplane"
	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/memory"
	"github.com/felixlog/felix/internal/auth"
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
	spec := streamSpec(name)
	spec.Shards, spec.Durable = shards, durable
	s, err := c.of("t1").CreateStream(c.t.Context(), defaultNamespace, spec)
	must(c.t, err)
	return s
}

func streamSpec(name string) apiclient.StreamSpec {
	return apiclient.StreamSpec{Stream: name, Kind: model.KindStream, Shards: 1, Consistency: model.Leader, Delivery: model.AtLeastOnce}
}

func (c *cluster) cache(name string, shards uint32) model.Cache {
	c.t.Helper()
	ca, err := c.of("t1").CreateCache(c.t.Context(), defaultNamespace, apiclient.CacheSpec{Cache: name, DisplayName: name, Shards: shards})
	must(c.t, err)
	return ca
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
