package memory

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// command makes a command of a body.
func command(op, rid string, at uint64, body any) Command {
	b, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	return Command{V: CommandVersion, RID: rid, Op: op, At: at, Body: b}
}

// drawCommand draws a command over few names, so that they meet.
func drawCommand(t *rapid.T, token uint64) (string, any) {
	pick := func(what string, from ...string) string { return rapid.SampledFrom(from).Draw(t, what) }
	tenant := pick("tenant", "a", "b")
	ns := model.NamespaceKey{TenantID: tenant, Namespace: pick("namespace", "x", "y")}
	name := pick("name", "s", "s-", "t")
	id := pick("node", "n1", "n2", "n3")
	kind := rapid.SampledFrom([]model.ShardKind{model.StreamShard, model.CacheShard}).Draw(t, "kind")
	shard := model.ShardKey{TenantID: tenant, Namespace: ns.Namespace, Stream: name, Shard: rapid.Uint32Range(0, 2).Draw(t, "shard"), Kind: kind}
	generation := rapid.Uint64Range(0, 3).Draw(t, "generation")
	stream := model.Stream{TenantID: tenant, Namespace: ns.Namespace, Stream: name, Shards: 2, UID: fmt.Sprint(rapid.Uint8().Draw(t, "uid"))}
	cache := model.Cache{TenantID: tenant, Namespace: ns.Namespace, Cache: name, Shards: 2, UID: stream.UID}
	switch op := pick("op", "create_tenant", "create_namespace", "create_namespace", "create_stream", "create_stream", "create_cache", "create_cache",
		"delete_tenant", "delete_namespace", "delete_stream", "delete_cache", "patch_stream", "register_node", "register_node",
		"set_node_lifecycle", "delete_node", "record_heartbeat", "expire_stale_nodes",
		"put_assignment_if", "put_assignment_if", "put_assignment_if", "put_assignment_if", "delete_assignment", "record_reports"); op {
	case "create_tenant":
		return op, model.Tenant{TenantID: tenant}
	case "create_namespace":
		return op, model.Namespace{TenantID: tenant, Namespace: ns.Namespace}
	case "create_stream":
		return op, stream
	case "create_cache":
		return op, cache
	case "delete_tenant":
		return op, tenantID{tenant}
	case "delete_namespace":
		return op, ns
	case "delete_stream":
		return op, stream.Key()
	case "delete_cache":
		return op, cache.Key()
	case "patch_stream":
		durable := rapid.Bool().Draw(t, "durable")
		return op, streamPatch{stream.Key(), model.StreamPatch{Durable: &durable}}
	case "register_node":
		return op, registration{id, model.NodeSpec{AdvertiseAddr: pick("address", "1", "2", "3", "4"), Labels: map[string]string{}}}
	case "set_node_lifecycle":
		to := rapid.SampledFrom([]model.Lifecycle{model.Live, model.Draining, model.Down, model.Left}).Draw(t, "to")
		return op, lifecycleBody{id, to}
	case "delete_node":
		return op, nodeID{id}
	case "record_heartbeat":
		return op, heartbeatBody{id, generation}
	case "expire_stale_nodes":
		return op, expiry{rapid.Uint64Range(0, 1000).Draw(t, "before")}
	case "put_assignment_if":
		a := model.Assignment{ShardKey: shard, Leader: id, Replicas: []string{}, State: model.Assigning}
		if rapid.Bool().Draw(t, "replicated") {
			a.Replicas = append(a.Replicas, pick("replica", "n1", "n2", "n3"))
		}
		b := putBody{Assignment: a, Token: token}
		if rapid.IntRange(0, 9).Draw(t, "stale token") == 0 {
			b.Token++
		}
		if rapid.Bool().Draw(t, "expects") {
			b.Expected = &generation
		}
		return op, b
	case "delete_assignment":
		return op, shard
	default:
		return op, reportsBody{id, []model.ReplicaReport{{
			ShardKey: shard, Generation: generation, CaughtUp: []string{}, Offsets: map[string]uint64{},
		}}}
	}
}

// TestStateAgainstNaive applies random commands to a state, to a second one, to
// a third that is restored from snapshots again and again, and to the naive
// store, with repeats.
func TestStateAgainstNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := store.Limits{ChangesPage: 3, ChangesKept: 7}
		s, twin, restored, n := NewState(limits), NewState(limits), NewState(limits), newNaive()
		var at uint64
		var past []Command
		for i := range rapid.IntRange(1, 80).Draw(t, "commands") {
			if len(past) > 0 && rapid.IntRange(0, 9).Draw(t, "repeat") == 0 {
				c := rapid.SampledFrom(past).Draw(t, "repeated")
				want := s.answered[c.RID]
				c.At += 50
				for _, s := range []*State{s, twin, restored} {
					equal(t, "repeat of "+c.Op, s.Apply(c), want)
				}
				continue
			}
			// The clock of whoever stamps may be behind.
			at = uint64(max(0, int64(at)+rapid.Int64Range(-10, 40).Draw(t, "time")))
			op, body := drawCommand(t, n.token)
			c := command(op, fmt.Sprint("r", i), at, body)
			past = append(past, c)
			r := s.Apply(c)
			equal(t, op, outcome(r), n.apply(at, body))
			equal(t, op, twin.Apply(c), r)
			equal(t, op, restored.Apply(c), r)
			checkInvariants(t, s)
			if rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
				fresh := NewState(limits)
				if err := fresh.Restore(snapshotOf(t, restored)); err != nil {
					t.Fatal(err)
				}
				restored = fresh
				checkInvariants(t, restored)
			}
		}
		compare(t, s, n)
		for _, other := range []*State{twin, restored} {
			if a, b := snapshotOf(t, s), snapshotOf(t, other); !bytes.Equal(a, b) {
				t.Fatalf("snapshots differ:\n%s\n%s", a, b)
			}
		}
	})
}

type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func equal(t fataler, what string, got, want any) {
	t.Helper()
	if g, w := asJSON(got), asJSON(want); g != w {
		t.Fatalf("%s:\n got %s\nwant %s", what, g, w)
	}
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func snapshotOf(t fataler, s *State) []byte {
	t.Helper()
	b, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// compare holds a state against the naive store.
func compare(t fataler, s *State, n *naive) {
	equal(t, "token", s.token, n.token)
	equal(t, "clock", s.Clock(), n.now)
	equal(t, "tenants", s.tenants.all(), sorted(n.tenants, cmp.Compare[string]))
	equal(t, "namespaces", s.namespaces.all(), sorted(n.namespaces, compareNamespaces))
	equal(t, "streams", s.streams.all(), sorted(n.streams, model.StreamKey.Compare))
	equal(t, "caches", s.caches.all(), sorted(n.caches, model.CacheKey.Compare))
	equal(t, "nodes", s.nodes.all(), sorted(n.nodes, cmp.Compare[string]))
	equal(t, "assignments", s.assignments.all(), sorted(n.assignments, model.ShardKey.Compare))
	equal(t, "reports", sorted(s.reports, model.ShardKey.Compare), sorted(n.reports, model.ShardKey.Compare))
	compareFeed(t, "tenants", &s.tenantFeed, n.tenantFeed, func(c *model.TenantChange) *uint64 { return &c.Seq })
	compareFeed(t, "namespaces", &s.namespaceFeed, n.namespaceFeed, func(c *model.NamespaceChange) *uint64 { return &c.Seq })
	compareFeed(t, "streams", &s.streamFeed, n.streamFeed, func(c *model.StreamChange) *uint64 { return &c.Seq })
	compareFeed(t, "caches", &s.cacheFeed, n.cacheFeed, func(c *model.CacheChange) *uint64 { return &c.Seq })
	compareFeed(t, "nodes", &s.nodeFeed, n.nodeFeed, func(c *model.NodeChange) *uint64 { return &c.Seq })
	compareFeed(t, "assignments", &s.assignmentFeed, n.assignmentFeed, func(c *model.AssignmentChange) *uint64 { return &c.Seq })
	var dead []model.Tombstone
	for _, c := range n.streamFeed {
		if c.Tombstone != nil {
			dead = append(dead, *c.Tombstone)
		}
	}
	equal(t, "tombstones", some(s.streamTombs.all()), some(dead[max(0, len(dead)-s.limits.ChangesKept):]))
}

func sorted[K comparable, V any](m map[K]V, compare func(a, b K) int) []V {
	list := []V{}
	for _, k := range slices.SortedFunc(maps.Keys(m), compare) {
		list = append(list, m[k])
	}
	return list
}

// compareFeed reads the feed from every sequence, and from beyond its end.
func compareFeed[C any](t fataler, what string, f *feed[C], all []C, seq func(*C) *uint64) {
	for i := range all {
		*seq(&all[i]) = uint64(i)
	}
	equal(t, "head of "+what, f.next, len(all))
	oldest := max(0, len(all)-f.changes.kept)
	for since := range len(all) + 3 {
		from := min(max(since, oldest), len(all))
		want := all[from:min(from+3, len(all))]
		equal(t, fmt.Sprintf("%s since %d", what, since), some(f.since(uint64(since), 3)), some(slices.Clone(want)))
	}
}

// checkInvariants recomputes what a state keeps twice.
func checkInvariants(t fataler, s *State) {
	checkTable(t, s.tenants)
	checkTable(t, s.namespaces)
	checkTable(t, s.streams)
	checkTable(t, s.caches)
	checkTable(t, s.nodes)
	checkTable(t, s.assignments)
	checkTable(t, s.bridges)
	addresses, shards := map[string]string{}, map[string]map[model.ShardKey]struct{}{}
	for _, n := range s.nodes.sorted {
		addresses[n.Spec.AdvertiseAddr] = n.NodeID
	}
	for _, a := range s.assignments.sorted {
		if err := s.checkAssignment(*a); err != nil {
			t.Fatalf("assignment %s: %v", asJSON(a), err)
		}
		for _, node := range append([]string{a.Leader}, a.Replicas...) {
			if shards[node] == nil {
				shards[node] = map[model.ShardKey]struct{}{}
			}
			shards[node][a.ShardKey] = struct{}{}
		}
	}
	if !maps.Equal(addresses, s.addresses) || len(addresses) != len(s.nodes.sorted) {
		t.Fatalf("addresses are %v, want %v", s.addresses, addresses)
	}
	if !maps.EqualFunc(shards, s.shardsOf, maps.Equal[map[model.ShardKey]struct{}, map[model.ShardKey]struct{}]) {
		t.Fatalf("shards of nodes are %v, want %v", s.shardsOf, shards)
	}
	for k := range s.reports {
		if !s.assignments.has(k) {
			t.Fatalf("report of %s, which is not assigned", k)
		}
	}
	for _, n := range s.namespaces.sorted {
		if !s.tenants.has(n.TenantID) {
			t.Fatalf("namespace %s has no tenant", asJSON(n))
		}
	}
	for _, tenants := range [][]string{slices.Sorted(maps.Keys(s.auth)), slices.Sorted(maps.Keys(s.tokens))} {
		if !slices.Equal(tenants, slices.Sorted(maps.Keys(s.tenants.byKey))) {
			t.Fatalf("identities of tenants %q, want those of %d", tenants, len(s.tenants.sorted))
		}
	}
	for tenant, x := range s.tokens {
		families, principals := index{}, index{}
		for id, r := range x.byID {
			families.add(r.FamilyID, id)
			principals.add(r.PrincipalID, id)
		}
		if !maps.EqualFunc(families, x.byFamily, maps.Equal[map[string]struct{}, map[string]struct{}]) ||
			!maps.EqualFunc(principals, x.byPrincipal, maps.Equal[map[string]struct{}, map[string]struct{}]) {
			t.Fatalf("refresh tokens of %s are listed as %v and %v", tenant, x.byFamily, x.byPrincipal)
		}
	}
	if len(s.answered) != s.results.len() {
		t.Fatalf("%d results of %d commands", len(s.answered), s.results.len())
	}
}

func checkTable[K comparable, V any](t fataler, x *table[K, V]) {
	t.Helper()
	if len(x.byKey) != len(x.sorted) {
		t.Fatalf("%T has %d keys and %d records", x, len(x.byKey), len(x.sorted))
	}
	for i, v := range x.sorted {
		if x.byKey[x.key(v)] != v || i > 0 && x.compare(x.key(x.sorted[i-1]), x.key(v)) >= 0 {
			t.Fatalf("%T: record %d is out of place", x, i)
		}
	}
}
