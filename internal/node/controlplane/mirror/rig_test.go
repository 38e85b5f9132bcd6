package mirror

import (
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/memory"
	"github.com/felixlog/felix/wire"
)

// wanted is what a target should hold, read from the store.
func wanted(t testing.TB, s store.Store, node string) []string {
	t.Helper()
	ctx := t.Context()
	var all []string
	tenants, err := s.TenantsSnapshot(ctx)
	must(t, err)
	for _, x := range tenants.Items {
		all = append(all, "tenant "+x.TenantID)
	}
	namespaces, err := s.NamespacesSnapshot(ctx)
	must(t, err)
	for _, x := range namespaces.Items {
		all = append(all, "namespace "+x.TenantID+"/"+x.Namespace)
	}
	streams, err := s.StreamsSnapshot(ctx)
	must(t, err)
	for _, x := range streams.Items {
		all = append(all, "stream "+streamName(x.Key())+": "+streamText(x))
	}
	caches, err := s.CachesSnapshot(ctx)
	must(t, err)
	for _, x := range caches.Items {
		all = append(all, "cache "+cacheName(x.Key())+": "+x.UID)
	}
	assignments, err := s.AssignmentsSnapshot(ctx)
	must(t, err)
	for _, a := range assignments.Items {
		if a.Leader == node {
			all = append(all, fmt.Sprintf("%s: %d", (&target{}).shard(a.ShardKey), a.Generation))
		}
	}
	slices.Sort(all)
	return all
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A rig is a store, a mirror of it, and the target.
type rig struct {
	t      testing.TB
	store  *memory.Store
	source *source
	target *target
	mirror *Mirror
	log    *lines
	uids   int
}

// lines keeps what was logged.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func newRig(t testing.TB, node string, change ...func(*Options)) *rig {
	t.Helper()
	return newRigOn(t, openStore(t), node, change...)
}

func newRigOn(t testing.TB, s *memory.Store, node string, change ...func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, store: s, target: newTarget(t), log: new(lines)}
	r.source = newSource(r.store)
	r.mirror = r.again(node, change...)
	return r
}

// openStore opens a store whose feeds keep little.
func openStore(t testing.TB) *memory.Store { return openStoreOf(t, 20) }

func openStoreOf(t testing.TB, kept int) *memory.Store {
	s := memory.Open(memory.Options{Limits: store.Limits{ChangesPage: 5, ChangesKept: kept}})
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

// again makes another mirror for the same source and target.
func (r *rig) again(node string, change ...func(*Options)) *Mirror {
	o := Options{
		Source: r.source, Target: r.target, NodeID: node, ValidateName: wire.ValidateName,
		Logger: slog.New(slog.NewTextHandler(r.log, nil)),
	}
	for _, f := range change {
		f(&o)
	}
	return New(o)
}

func (r *rig) tenant(name string) {
	r.t.Helper()
	must(r.t, r.store.CreateTenant(r.t.Context(), model.Tenant{TenantID: name}))
	must(r.t, r.store.CreateNamespace(r.t.Context(), model.Namespace{TenantID: name, Namespace: "n"}))
}

func (r *rig) newStream(tenant, name string) model.Stream {
	r.uids++
	return model.Stream{
		TenantID: tenant, Namespace: "n", Stream: name, Kind: model.KindStream, Shards: 2, ReplicationFactor: 1,
		Consistency: model.Leader, Delivery: model.AtLeastOnce, Durable: true, UID: fmt.Sprintf("uid-%d", r.uids),
	}
}

func (r *rig) stream(tenant, name string) model.Stream {
	r.t.Helper()
	s := r.newStream(tenant, name)
	must(r.t, r.store.CreateStream(r.t.Context(), s))
	return s
}

func (r *rig) cache(tenant, name string) model.Cache {
	r.t.Helper()
	r.uids++
	c := model.Cache{TenantID: tenant, Namespace: "n", Cache: name, Shards: 1, ReplicationFactor: 1, Consistency: model.Leader, UID: fmt.Sprintf("uid-%d", r.uids)}
	must(r.t, r.store.CreateCache(r.t.Context(), c))
	return c
}

// assign writes an assignment at the next generation.
func (r *rig) assign(k model.ShardKey, leader string) {
	r.t.Helper()
	ctx := r.t.Context()
	token, err := r.store.PlacementToken(ctx)
	must(r.t, err)
	var expected *uint64
	if have, err := r.store.Assignment(ctx, k); err == nil {
		expected = &have.Generation
	}
	got, err := r.store.PutAssignmentIf(ctx, model.Assignment{ShardKey: k, Leader: leader, Replicas: []string{}, State: model.Assigning}, expected, token)
	must(r.t, err)
	if got.Outcome != store.Written {
		r.t.Fatalf("assignment is %s", got.Outcome)
	}
}

func (r *rig) node(id string) {
	r.t.Helper()
	_, err := r.store.RegisterNode(r.t.Context(), id, model.NodeSpec{AdvertiseAddr: "10.0.0." + strings.TrimPrefix(id, "b") + ":7000", Region: "local", Capacity: model.Capacity{Weight: 1}})
	must(r.t, err)
}

func shardOf(s model.Stream, shard uint32) model.ShardKey {
	return model.ShardKey{TenantID: s.TenantID, Namespace: s.Namespace, Stream: s.Stream, Shard: shard, Kind: model.StreamShard}
}

// pass makes passes until there is nothing left to read.
func (r *rig) pass() {
	r.t.Helper()
	must(r.t, r.mirror.Seed(r.t.Context()))
}

func (r *rig) agrees(node string) {
	r.t.Helper()
	if got, want := r.target.holds(), wanted(r.t, r.store, node); !slices.Equal(got, want) {
		r.t.Errorf("target holds\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	all, err := r.store.Assignments(r.t.Context())
	must(r.t, err)
	var want []Lead
	for _, a := range all {
		if a.Leader == node {
			s, err := r.store.Stream(r.t.Context(), model.StreamKey{TenantID: a.TenantID, Namespace: a.Namespace, Stream: a.Stream})
			must(r.t, err)
			want = append(want, Lead{Assignment: a, Movable: !s.Durable})
		}
	}
	if got := r.mirror.Leads(); node != "" && !reflect.DeepEqual(got, want) {
		r.t.Errorf("it says that it leads\n%+v\nand leads\n%+v", got, want)
	}
}

var errAway = errors.New("connection refused")
