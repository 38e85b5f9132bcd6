package session_test

import (
	"context"
	"crypto/rand"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/internal/auth"
	"github.com/felixlog/felix/internal/config"
	"github.com/felixlog/felix/internal/node"
	"github.com/felixlog/felix/internal/node/session"
	"github.com/felixlog/felix/transport/tlsconfig"
	"github.com/felixlog/felix/wire"
)

// A map of owners, as a control plane would give it.
type directory struct {
	mu      sync.Mutex
	owners  map[broker.ShardID]session.Owner
	brokers []session.BrokerAddr
}

func (d *directory) Owner(kind wire.ShardKind, tenant, namespace, name string, shard uint32) (session.Owner, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o, known := d.owners[broker.ShardID{Kind: broker.Kind(kind.String()), Tenant: tenant, Namespace: namespace, Name: name, Shard: shard}]
	return o, known
}

func (d *directory) Brokers() []session.BrokerAddr { return d.brokers }

func (d *directory) set(id broker.ShardID, o session.Owner) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.owners == nil {
		d.owners = make(map[broker.ShardID]session.Owner)
	}
	d.owners[id] = o
}

const memberTenant, memberNamespace = "t1", "default"

// A member is a node that is told which shards to serve.
type member struct {
	t      *testing.T
	node   *node.Node
	ca     *tlsconfig.DevCA
	signer *auth.Signer
	dir    *directory
}

type noFiles struct{}

func (noFiles) ReadFile(name string) ([]byte, error) {
	return nil, &os.PathError{Op: "open", Path: name, Err: os.ErrNotExist}
}

func startMember(t *testing.T) *member {
	t.Helper()
	m := &member{t: t, dir: &directory{}}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ca, err := tlsconfig.LoadDevCA(t.TempDir(), tlsconfig.DevOptions{})
	must(err)
	private, err := auth.GenerateKey(rand.Reader)
	must(err)
	m.ca, m.signer = ca, auth.NewSigner("", private)
	keys := auth.NewStaticKeys()
	must(keys.Set(memberTenant, []auth.Key{m.signer.Key()}))
	cfg, _, err := config.Load(config.Sources{FileSystem: noFiles{}, Flags: map[string]string{
		"quic-bind": "127.0.0.1:0", "quic-listeners": "1", "metrics-bind": "127.0.0.1:0",
		"durable-storage-dir": t.TempDir(), "shutdown-drain-timeout-ms": "5000",
	}})
	must(err)
	cert := ca.ServerCertificate()
	m.node, err = node.Start(t.Context(), node.Options{Config: cfg, Keys: keys, Certificate: &cert, Directory: m.dir, Version: "test"})
	must(err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := m.node.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	must(m.node.AddTenant(memberTenant, memberNamespace))
	m.node.Ready()
	return m
}

func (m *member) Addr() string      { return m.node.ClientAddrs()[0] }
func (m *member) CAPEM() []byte     { return m.ca.CAPEM() }
func (m *member) Tenant() string    { return memberTenant }
func (m *member) Namespace() string { return memberNamespace }

func (m *member) Token(permissions ...string) string {
	m.t.Helper()
	if len(permissions) == 0 {
		permissions = []string{
			"stream.publish:stream:t1/*", "stream.subscribe:stream:t1/*", "cache.read:cache:t1/*", "cache.write:cache:t1/*",
			"group.consume:group:t1/*", "group.manage:group:t1/*",
		}
	}
	token, err := m.signer.Mint(auth.Claims{
		Tenant: memberTenant, Subject: "tester", Permissions: permissions, IssuedAt: time.Now(), Expires: auth.NoExpiry(),
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return token
}

// placed registers a stream s and a cache c whose shards wait to be assigned.
func (m *member) placed(shards uint32) (streamOf, cacheOf func(shard uint32) broker.ShardID) {
	m.t.Helper()
	m.must(m.node.Core().AddStream(broker.StreamName{Tenant: memberTenant, Namespace: memberNamespace, Name: "s"},
		broker.StreamOptions{Shards: shards, Durable: true, Placed: true, UID: "us"}))
	m.must(m.node.Core().AddCache(broker.CacheName{Tenant: memberTenant, Namespace: memberNamespace, Name: "c"},
		broker.CacheOptions{Shards: shards, Durable: true, Placed: true, UID: "uc"}))
	of := func(kind broker.Kind, name string) func(uint32) broker.ShardID {
		return func(shard uint32) broker.ShardID {
			return broker.ShardID{Kind: kind, Tenant: memberTenant, Namespace: memberNamespace, Name: name, Shard: shard}
		}
	}
	return of(broker.KindStream, "s"), of(broker.KindCache, "c")
}

func (m *member) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

// own has this node serve a shard, as the directory says.
func (m *member) own(id broker.ShardID, generation uint64) {
	m.t.Helper()
	m.dir.set(id, session.Owner{NodeID: "me", Addr: m.Addr(), Generation: generation, Local: true})
	m.must(m.node.Core().Assign(id, generation))
}

// lose gives a shard to another node.
func (m *member) lose(id broker.ShardID, generation uint64, to session.Owner) {
	m.t.Helper()
	to.Generation = generation
	m.dir.set(id, to)
	m.must(m.node.Core().Unassign(id, generation, "moves to "+to.NodeID))
}
