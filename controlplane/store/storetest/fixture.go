package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// patience bounds what a test waits for.
const patience = 60 * time.Second

// A fixture is a store and names in it that no other test uses.
type fixture struct {
	*testing.T
	store.Store
	ctx    context.Context
	prefix string
	nodes  int
}

func newFixture(t *testing.T, s store.Store, prefix string) *fixture {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return &fixture{T: t, Store: s, ctx: ctx, prefix: prefix}
}

// alone is a fixture on a store of its own.
func solitary(t *testing.T, open func(t *testing.T, o Options) store.Store, o Options) *fixture {
	return newFixture(t, open(t, o), "t00")
}

// ok ends the test on an error.
func (f *fixture) ok(err error) {
	f.Helper()
	if err != nil {
		f.Fatalf("unexpected error: %v", err)
	}
}

// want answers with v, and ends the test on an error.
func want[V any](v V, err error) func(f *fixture) V {
	return func(f *fixture) V {
		f.Helper()
		f.ok(err)
		return v
	}
}

// missing wants a NotFoundError; what may be empty where its kind is open.
func (f *fixture) missing(err error, what string) {
	f.Helper()
	var e *store.NotFoundError
	if !errors.As(err, &e) {
		f.Fatalf("got error %v, want not found (%s)", err, what)
	}
	if e.What == "" || what != "" && e.What != what {
		f.Fatalf("%q is not found, want %q", e.What, what)
	}
}

// conflict wants a ConflictError.
func (f *fixture) conflict(err error, reason store.ConflictReason) {
	f.Helper()
	var e *store.ConflictError
	if !errors.As(err, &e) {
		f.Fatalf("got error %v, want a conflict (%s)", err, reason)
	}
	if e.Reason != reason {
		f.Fatalf("conflict is %q (%s), want %q", e.Reason, e.What, reason)
	}
	if e.What == "" {
		f.Fatalf("conflict %q says nothing", e.Reason)
	}
}

// same compares what callers see: the JSON.
func (f *fixture) same(got, want any) {
	f.Helper()
	g, w := asJSON(got), asJSON(want)
	if g != w {
		f.Fatalf("\n got %s\nwant %s", g, w)
	}
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("no JSON: %v", err)
	}
	return string(b)
}

func ptr[T any](v T) *T { return &v }

// eventually waits for a condition.
func (f *fixture) eventually(what string, holds func() bool) {
	f.Helper()
	for !holds() {
		select {
		case <-f.ctx.Done():
			f.Fatalf("never: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// tenant makes one, named after the test.
func (f *fixture) tenant(name string) string {
	f.Helper()
	id := f.prefix + "-" + name
	f.ok(f.CreateTenant(f.ctx, model.Tenant{TenantID: id, DisplayName: "Tenant " + name}))
	return id
}

func (f *fixture) namespace(tenant, name string) model.NamespaceKey {
	f.Helper()
	n := model.Namespace{TenantID: tenant, Namespace: name, DisplayName: "Namespace " + name}
	f.ok(f.CreateNamespace(f.ctx, n))
	return n.Key()
}

// place makes a tenant with a namespace.
func (f *fixture) place() model.NamespaceKey {
	f.Helper()
	return f.namespace(f.tenant("a"), "ns")
}

func newStream(k model.NamespaceKey, name string, shards uint32) model.Stream {
	return model.Stream{
		TenantID: k.TenantID, Namespace: k.Namespace, Stream: name, Kind: model.KindStream,
		Shards: shards, ReplicationFactor: 3, Consistency: model.Quorum, Delivery: model.AtLeastOnce,
		Durable: true, UID: "uid-" + name,
	}
}

func newCache(k model.NamespaceKey, name string, shards uint32) model.Cache {
	return model.Cache{
		TenantID: k.TenantID, Namespace: k.Namespace, Cache: name, DisplayName: "Cache " + name,
		Shards: shards, ReplicationFactor: 1, Consistency: model.Leader, UID: "uid-" + name,
	}
}

func (f *fixture) stream(k model.NamespaceKey, name string, shards uint32) model.Stream {
	f.Helper()
	s := newStream(k, name, shards)
	f.ok(f.CreateStream(f.ctx, s))
	return s
}

func (f *fixture) cache(k model.NamespaceKey, name string, shards uint32) model.Cache {
	f.Helper()
	c := newCache(k, name, shards)
	f.ok(f.CreateCache(f.ctx, c))
	return c
}

// spec is one with an address that no other node has.
func (f *fixture) spec() model.NodeSpec {
	f.nodes++
	var test int
	if _, err := fmt.Sscanf(f.prefix, "t%d", &test); err != nil {
		f.Fatalf("prefix %q: %v", f.prefix, err)
	}
	return model.NodeSpec{
		AdvertiseAddr: fmt.Sprintf("10.%d.%d.%d:7000", test, f.nodes/250, f.nodes%250+1),
		Region:        "local", Labels: map[string]string{}, Capacity: model.Capacity{Weight: 1},
	}
}

// node registers one.
func (f *fixture) node(name string) model.Node {
	f.Helper()
	return want(f.RegisterNode(f.ctx, f.prefix+"-"+name, f.spec()))(f)
}

// trio registers three, in the order of their names.
func (f *fixture) trio() (a, b, c string) {
	f.Helper()
	return f.node("a").NodeID, f.node("b").NodeID, f.node("c").NodeID
}

func streamShard(s model.Stream, shard uint32) model.ShardKey {
	return model.ShardKey{TenantID: s.TenantID, Namespace: s.Namespace, Stream: s.Stream, Shard: shard, Kind: model.StreamShard}
}

func cacheShard(c model.Cache, shard uint32) model.ShardKey {
	return model.ShardKey{TenantID: c.TenantID, Namespace: c.Namespace, Stream: c.Cache, Shard: shard, Kind: model.CacheShard}
}

func assigning(k model.ShardKey, leader string, replicas ...string) model.Assignment {
	if replicas == nil {
		replicas = []string{}
	}
	return model.Assignment{ShardKey: k, Leader: leader, Replicas: replicas, State: model.Assigning}
}

func (f *fixture) token() uint64 {
	f.Helper()
	return want(f.PlacementToken(f.ctx))(f)
}

// put writes an assignment whatever was there.
func (f *fixture) put(a model.Assignment) model.Assignment {
	f.Helper()
	var expected *uint64
	if old, err := f.Assignment(f.ctx, a.ShardKey); err == nil {
		expected = &old.Generation
	}
	r := want(f.PutAssignmentIf(f.ctx, a, expected, f.token()))(f)
	if r.Outcome != store.Written {
		f.Fatalf("assignment of %s was not written: %s", a.ShardKey, r.Outcome)
	}
	return r.Written
}

// together calls do n times at once and waits.
func together(n int, do func(i int)) {
	start, done := make(chan struct{}), make(chan struct{})
	for i := range n {
		go func() {
			<-start
			do(i)
			done <- struct{}{}
		}()
	}
	close(start)
	for range n {
		<-done
	}
}
