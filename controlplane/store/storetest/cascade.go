package storetest

import (
	"slices"

	"github.com/felixlog/felix/controlplane/model"
)

// shardChanges are the keys of changes of one kind.
func shardChanges(f *fixture, since uint64, op model.Op) []model.ShardKey {
	f.Helper()
	keys := []model.ShardKey{}
	for _, c := range changesSince(f, f.AssignmentChanges, since) {
		if c.Op != op || (c.Assignment == nil) != (op == model.Unassigned) {
			f.Fatalf("change %s, want %s", asJSON(c), op)
		}
		keys = append(keys, c.Key)
	}
	return keys
}

// report makes the leader of a shard report it.
func (f *fixture) report(k model.ShardKey, leader string) {
	f.Helper()
	a := want(f.Assignment(f.ctx, k))(f)
	outcomes := want(f.RecordReports(f.ctx, leader, []model.ReplicaReport{{ShardKey: k, Generation: a.Generation}}))(f)
	f.same(outcomes, []model.ReportOutcome{model.ReportAccepted})
}

// reports are those of a tenant.
func (f *fixture) reports(tenant string) []model.ReplicaReport {
	f.Helper()
	return slices.DeleteFunc(want(f.Reports(f.ctx))(f), func(r model.ReplicaReport) bool { return r.TenantID != tenant })
}

// testDeleteOwners deletes a stream and a cache that share a name: each takes
// its own assignments and reports only.
func testDeleteOwners(f *fixture) {
	k := f.place()
	s, c := f.stream(k, "same", 12), f.cache(k, "same", 2)
	near := f.stream(k, "same-", 1)
	a, b, _ := f.trio()
	var streamKeys, cacheKeys []model.ShardKey
	for i := range uint32(12) {
		streamKeys = append(streamKeys, streamShard(s, i))
	}
	for i := range uint32(2) {
		cacheKeys = append(cacheKeys, cacheShard(c, i))
	}
	for _, key := range slices.Backward(slices.Concat(streamKeys, cacheKeys)) {
		f.put(assigning(key, a, b))
		f.report(key, a)
	}
	f.put(assigning(streamShard(near, 0), b))

	since := want(f.AssignmentsSnapshot(f.ctx))(f).NextSeq
	f.ok(f.DeleteStream(f.ctx, s.Key()))
	f.same(shardChanges(f, since, model.Unassigned), streamKeys)
	f.same(len(f.reports(k.TenantID)), 2)
	f.same(len(want(f.AssignmentsOf(f.ctx, b))(f)), 3)
	_, err := f.Assignment(f.ctx, streamKeys[0])
	f.missing(err, "")

	since = want(f.AssignmentsSnapshot(f.ctx))(f).NextSeq
	f.ok(f.DeleteCache(f.ctx, c.Key()))
	f.same(shardChanges(f, since, model.Unassigned), cacheKeys)
	f.same(f.reports(k.TenantID), []model.ReplicaReport{})
	f.same(len(want(f.AssignmentsOf(f.ctx, a))(f)), 0)
	f.same(len(want(f.AssignmentsOf(f.ctx, b))(f)), 1)

	// What comes after starts anew.
	f.ok(f.CreateStream(f.ctx, s))
	f.same(f.put(assigning(streamKeys[0], a)).Generation, 0)
}

// estate is what a cascade has to take with it.
type estate struct {
	streams []model.Stream
	caches  []model.Cache
	shards  []model.ShardKey
}

// settle fills a namespace with streams and caches, assigned to a node.
func (f *fixture) settle(k model.NamespaceKey, node string) (e estate) {
	f.Helper()
	for _, name := range []string{"a", "b", "c"} {
		s, c := newStream(k, name, 2), newCache(k, name, 1)
		s.UID, c.UID = "stream of "+asJSON(s.Key()), "cache of "+asJSON(c.Key())
		f.ok(f.CreateStream(f.ctx, s))
		f.ok(f.CreateCache(f.ctx, c))
		e.streams, e.caches = append(e.streams, s), append(e.caches, c)
		e.shards = append(e.shards, streamShard(s, 0), streamShard(s, 1), cacheShard(c, 0))
	}
	slices.SortFunc(e.shards, model.ShardKey.Compare)
	for _, key := range e.shards {
		f.put(assigning(key, node))
		f.report(key, node)
	}
	return e
}

// heads are the heads of the feeds that a cascade writes.
type heads struct{ tenants, namespaces, streams, caches, assignments uint64 }

func (f *fixture) heads() heads {
	f.Helper()
	return heads{
		want(f.TenantsSnapshot(f.ctx))(f).NextSeq, want(f.NamespacesSnapshot(f.ctx))(f).NextSeq,
		want(f.StreamsSnapshot(f.ctx))(f).NextSeq, want(f.CachesSnapshot(f.ctx))(f).NextSeq,
		want(f.AssignmentsSnapshot(f.ctx))(f).NextSeq,
	}
}

// gone checks that all of an estate was published as deleted, in the order of
// keys, with tombstones.
func (f *fixture) gone(e estate, since heads) {
	f.Helper()
	f.same(shardChanges(f, since.assignments, model.Unassigned), e.shards)

	buried := want(f.StreamsSnapshot(f.ctx))(f).Tombstones
	changes := changesSince(f, f.StreamChanges, since.streams)
	f.same(len(changes), len(e.streams))
	for i, s := range e.streams {
		dead := f.tombstone(slices.Clone(buried), s.UID)
		f.same(changes[i], model.StreamChange{
			Seq: since.streams + uint64(i), Op: model.Deleted, Key: s.Key(), Tombstone: &dead,
		})
		f.same([]string{string(dead.Kind), dead.TenantID, dead.Namespace, dead.Name}, []string{"stream", s.TenantID, s.Namespace, s.Stream})
	}

	buried = want(f.CachesSnapshot(f.ctx))(f).Tombstones
	cacheChanges := changesSince(f, f.CacheChanges, since.caches)
	f.same(len(cacheChanges), len(e.caches))
	for i, c := range e.caches {
		dead := f.tombstone(slices.Clone(buried), c.UID)
		f.same(cacheChanges[i], model.CacheChange{
			Seq: since.caches + uint64(i), Op: model.Deleted, Key: c.Key(), Tombstone: &dead,
		})
		f.same([]string{string(dead.Kind), dead.TenantID, dead.Namespace, dead.Name}, []string{"cache", c.TenantID, c.Namespace, c.Cache})
	}
	for _, s := range e.streams {
		_, err := f.Stream(f.ctx, s.Key())
		f.missing(err, "")
	}
	for _, key := range e.shards {
		_, err := f.Assignment(f.ctx, key)
		f.missing(err, "")
	}
}

func testDeleteNamespace(f *fixture) {
	t := f.tenant("a")
	node := f.node("a").NodeID
	doomed, kept := f.namespace(t, "m"), f.namespace(t, "m-kept")
	e := f.settle(doomed, node)
	rest := f.settle(kept, node)
	since := f.heads()
	f.ok(f.DeleteNamespace(f.ctx, doomed))
	f.gone(e, since)
	f.same(changesSince(f, f.NamespaceChanges, since.namespaces), []model.NamespaceChange{
		{Seq: since.namespaces, Op: model.Deleted, Key: doomed},
	})
	f.same(changesSince(f, f.TenantChanges, since.tenants), []model.TenantChange(nil))
	_, err := f.Streams(f.ctx, doomed)
	f.missing(err, "")
	f.same(want(f.Streams(f.ctx, kept))(f), rest.streams)
	f.same(want(f.Caches(f.ctx, kept))(f), rest.caches)
	f.same(len(f.reports(t)), len(rest.shards))
	f.same(len(want(f.AssignmentsOf(f.ctx, node))(f)), len(rest.shards))
}

func testDeleteTenant(f *fixture) {
	t, other := f.tenant("a"), f.tenant("a-other")
	node := f.node("a").NodeID
	spared := f.settle(f.namespace(other, "x"), node)
	empty := f.namespace(t, "0-empty")
	x, y := f.namespace(t, "x"), f.namespace(t, "y")
	e, e2 := f.settle(x, node), f.settle(y, node)
	e.streams, e.caches, e.shards = append(e.streams, e2.streams...), append(e.caches, e2.caches...), append(e.shards, e2.shards...)

	f.ok(f.PutIssuer(f.ctx, t, model.IdpIssuer{Issuer: "https://idp"}))
	f.ok(f.AddPolicy(f.ctx, t, model.Policy{Subject: "s", Object: "o", Action: "a"}))
	want(f.BootstrapTenant(f.ctx, model.Tenant{TenantID: t}, model.AuthSeed{Key: newKey(f.prefix + "k")}))(f)
	f.ok(f.InsertRefreshToken(f.ctx, newToken(t, "r", "fam", "p")))

	since := f.heads()
	f.ok(f.DeleteTenant(f.ctx, t))
	f.gone(e, since)
	f.same(changesSince(f, f.NamespaceChanges, since.namespaces), []model.NamespaceChange{
		{Seq: since.namespaces, Op: model.Deleted, Key: empty},
		{Seq: since.namespaces + 1, Op: model.Deleted, Key: x},
		{Seq: since.namespaces + 2, Op: model.Deleted, Key: y},
	})
	f.same(changesSince(f, f.TenantChanges, since.tenants), []model.TenantChange{
		{Seq: since.tenants, Op: model.Deleted, TenantID: t},
	})
	f.same(f.reports(t), []model.ReplicaReport{})
	f.same(len(want(f.AssignmentsOf(f.ctx, node))(f)), len(spared.shards))
	f.same(want(f.Streams(f.ctx, model.NamespaceKey{TenantID: other, Namespace: "x"}))(f), spared.streams)

	// A tenant of the same name inherits nothing.
	f.ok(f.CreateTenant(f.ctx, model.Tenant{TenantID: t}))
	f.same(want(f.Namespaces(f.ctx, t))(f), []model.Namespace{})
	f.same(want(f.Issuers(f.ctx, t))(f), []model.IdpIssuer{})
	f.same(want(f.Policies(f.ctx, t))(f), []model.Policy{})
	f.same(want(f.Groupings(f.ctx, t))(f), []model.Grouping{})
	f.same(want(f.SigningKeys(f.ctx, t))(f), []model.SigningKey{})
	f.same(want(f.Bootstrapped(f.ctx, t))(f), false)
	_, err := f.TakeRefreshToken(f.ctx, t, "r")
	f.missing(err, "")
}
