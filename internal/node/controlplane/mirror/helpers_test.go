package mirror

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/memory"
	"github.com/felixlog/felix/wire"
)

// A source reads a store as a client would, and fails on demand.
type source struct {
	mu    sync.Mutex
	store store.Store
	fail  func(call string) error // "streams snapshot", "streams changes"
	calls map[string]int
	waits bool // changes are held as long as asked for
}

func newSource(s store.Store) *source {
	return &source{store: s, calls: make(map[string]int)}
}

func (s *source) at(call string) (store.Store, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[call]++
	if s.fail != nil {
		if err := s.fail(call); err != nil {
			return nil, err
		}
	}
	return s.store, nil
}

func (s *source) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *source) count(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[call]
}

func snap[T any](s *source, name string, read func(store.Store) (model.Snapshot[T], error)) (model.Snapshot[T], error) {
	st, err := s.at(name + " snapshot")
	if err != nil {
		return model.Snapshot[T]{}, err
	}
	return read(st)
}

func page[T any](ctx context.Context, s *source, name string, wait time.Duration, read func(store.Store) (model.Page[T], error)) (model.Page[T], error) {
	call := name + " changes"
	if wait > 0 {
		call = name + " long-poll"
	}
	st, err := s.at(call)
	if err != nil {
		return model.Page[T]{}, err
	}
	s.mu.Lock()
	held := wait > 0 && s.waits
	s.mu.Unlock()
	if held {
		pause(ctx, wait)
	}
	return read(st)
}

func (s *source) TenantsSnapshot(ctx context.Context) (model.Snapshot[model.Tenant], error) {
	return snap(s, "tenants", func(st store.Store) (model.Snapshot[model.Tenant], error) { return st.TenantsSnapshot(ctx) })
}

func (s *source) NamespacesSnapshot(ctx context.Context) (model.Snapshot[model.Namespace], error) {
	return snap(s, "namespaces", func(st store.Store) (model.Snapshot[model.Namespace], error) { return st.NamespacesSnapshot(ctx) })
}

func (s *source) CachesSnapshot(ctx context.Context) (model.Snapshot[model.Cache], error) {
	return snap(s, "caches", func(st store.Store) (model.Snapshot[model.Cache], error) { return st.CachesSnapshot(ctx) })
}

func (s *source) StreamsSnapshot(ctx context.Context) (model.Snapshot[model.Stream], error) {
	return snap(s, "streams", func(st store.Store) (model.Snapshot[model.Stream], error) { return st.StreamsSnapshot(ctx) })
}

func (s *source) AssignmentsSnapshot(ctx context.Context) (model.Snapshot[model.Assignment], error) {
	return snap(s, "assignments", func(st store.Store) (model.Snapshot[model.Assignment], error) { return st.AssignmentsSnapshot(ctx) })
}

func (s *source) TenantChanges(ctx context.Context, since uint64, wait time.Duration) (model.Page[model.TenantChange], error) {
	return page(ctx, s, "tenants", wait, func(st store.Store) (model.Page[model.TenantChange], error) { return st.TenantChanges(ctx, since) })
}

func (s *source) NamespaceChanges(ctx context.Context, since uint64, wait time.Duration) (model.Page[model.NamespaceChange], error) {
	return page(ctx, s, "namespaces", wait, func(st store.Store) (model.Page[model.NamespaceChange], error) {
		return st.NamespaceChanges(ctx, since)
	})
}

func (s *source) CacheChanges(ctx context.Context, since uint64, wait time.Duration) (model.Page[model.CacheChange], error) {
	return page(ctx, s, "caches", wait, func(st store.Store) (model.Page[model.CacheChange], error) { return st.CacheChanges(ctx, since) })
}

func (s *source) StreamChanges(ctx context.Context, since uint64, wait time.Duration) (model.Page[model.StreamChange], error) {
	return page(ctx, s, "streams", wait, func(st store.Store) (model.Page[model.StreamChange], error) { return st.StreamChanges(ctx, since) })
}

func (s *source) AssignmentChanges(ctx context.Context, since uint64, wait time.Duration) (model.Page[model.AssignmentChange], error) {
	return page(ctx, s, "assignments", wait, func(st store.Store) (model.Page[model.AssignmentChange], error) {
		return st.AssignmentChanges(ctx, since)
	})
}

// A target holds what it was given, and data that outlives it. It complains of
// what a target is never asked for.
type target struct {
	t    testing.TB
	mu   sync.Mutex
	has  map[string]string // name to settings
	data map[string]bool   // "stream t/n/s uid" of all that was ever served
	log  []string
	fail func(step string) error
}

func newTarget(t testing.TB) *target {
	return &target{t: t, has: make(map[string]string), data: make(map[string]bool)}
}

func (g *target) step(format string, args ...any) error {
	step := fmt.Sprintf(format, args...)
	if g.fail != nil {
		if err := g.fail(step); err != nil {
			return err
		}
	}
	g.log = append(g.log, step)
	return nil
}

func (g *target) add(name, within, settings string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, there := g.has[within]; within != "" && !there {
		g.t.Errorf("%s is added to %s, which is not there", name, within)
	}
	if err := g.step("add %s", name); err != nil {
		return err
	}
	g.has[name] = settings
	return nil
}

func (g *target) remove(name string, within ...string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, there := g.has[name]; !there {
		g.t.Errorf("%s is removed and not there", name)
	}
	if err := g.step("remove %s", name); err != nil {
		return err
	}
	delete(g.has, name)
	maps.DeleteFunc(g.has, func(k, _ string) bool {
		return slices.ContainsFunc(within, func(p string) bool { return strings.HasPrefix(k, p) })
	})
	return nil
}

func (g *target) AddTenant(t string) error { return g.add("tenant "+t, "", "") }
func (g *target) RemoveTenant(t string) error {
	return g.remove("tenant "+t, "namespace "+t+"/", "stream "+t+"/", "cache "+t+"/", "shard "+t+"/")
}
func (g *target) AddNamespace(k model.NamespaceKey) error {
	return g.add("namespace "+k.TenantID+"/"+k.Namespace, "tenant "+k.TenantID, "")
}
func (g *target) RemoveNamespace(k model.NamespaceKey) error {
	p := k.TenantID + "/" + k.Namespace
	return g.remove("namespace "+p, "stream "+p+"/", "cache "+p+"/", "shard "+p+"/")
}

func (g *target) AddStream(s model.Stream) error {
	err := g.add("stream "+streamName(s.Key()), "namespace "+s.TenantID+"/"+s.Namespace, streamText(s))
	if err == nil {
		g.mu.Lock()
		g.data["stream "+streamName(s.Key())+" "+s.UID] = true
		g.mu.Unlock()
	}
	return err
}

func streamText(s model.Stream) string {
	size := uint64(0)
	if s.Retention.MaxSizeBytes != nil {
		size = *s.Retention.MaxSizeBytes
	}
	return fmt.Sprintf("%s, %d shards, %d bytes", s.UID, s.Shards, size)
}

func (g *target) RemoveStream(k model.StreamKey) error {
	return g.remove("stream "+streamName(k), "shard "+streamName(k)+"/")
}

func (g *target) AddCache(c model.Cache) error {
	err := g.add("cache "+cacheName(c.Key()), "namespace "+c.TenantID+"/"+c.Namespace, c.UID)
	if err == nil {
		g.mu.Lock()
		g.data["cache "+cacheName(c.Key())+" "+c.UID] = true
		g.mu.Unlock()
	}
	return err
}

func (g *target) RemoveCache(k model.CacheKey) error { return g.remove("cache " + cacheName(k)) }

func (g *target) Purge(_ context.Context, d model.Tombstone) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	name := fmt.Sprintf("%s %s/%s/%s", d.Kind, d.TenantID, d.Namespace, d.Name)
	if strings.HasPrefix(g.has[name], d.UID) && d.UID != "" {
		g.t.Errorf("data of %s is removed while it is served with that uid", name)
	}
	if err := g.step("purge %s %s", name, d.UID); err != nil {
		return 0, err
	}
	if !g.data[name+" "+d.UID] {
		return 0, nil
	}
	delete(g.data, name+" "+d.UID)
	return 1, nil
}

func (g *target) shard(k model.ShardKey) string {
	if k.Kind == model.CacheShard {
		return fmt.Sprintf("shard %s/%s/%s/%d (cache)", k.TenantID, k.Namespace, k.Stream, k.Shard)
	}
	return fmt.Sprintf("shard %s/%s/%s/%d", k.TenantID, k.Namespace, k.Stream, k.Shard)
}

func (g *target) Assign(k model.ShardKey, generation uint64) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.step("assign %s at %d", g.shard(k), generation); err != nil {
		return err
	}
	g.has[g.shard(k)] = fmt.Sprint(generation)
	return nil
}

func (g *target) Unassign(k model.ShardKey, generation uint64, _ string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.step("unassign %s at %d", g.shard(k), generation); err != nil {
		return err
	}
	delete(g.has, g.shard(k))
	return nil
}

func (g *target) Release(k model.ShardKey, _ string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.step("release %s", g.shard(k)); err != nil {
		return err
	}
	delete(g.has, g.shard(k))
	return nil
}

// holds is everything it was given, sorted.
func (g *target) holds() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := make([]string, 0, len(g.has))
	for name, settings := range g.has {
		all = append(all, strings.TrimSuffix(name+": "+settings, ": "))
	}
	slices.Sort(all)
	return all
}

func (g *target) steps() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	log := g.log
	g.log = nil
	return log
}

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
}

var errAway = errors.New("connection refused")
