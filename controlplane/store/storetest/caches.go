package storetest

import (
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

func testCaches(f *fixture) {
	k := f.place()
	since := want(f.CachesSnapshot(f.ctx))(f).NextSeq
	b, a := newCache(k, "b", 7), newCache(k, "a", 1)
	b.Consistency, b.ReplicationFactor = model.Quorum, 3
	f.same(want(f.Caches(f.ctx, k))(f), []model.Cache{})
	f.ok(f.CreateCache(f.ctx, b))
	f.ok(f.CreateCache(f.ctx, a))
	f.conflict(f.CreateCache(f.ctx, a), store.Exists)
	f.missing(f.CreateCache(f.ctx, newCache(model.NamespaceKey{TenantID: k.TenantID, Namespace: "none"}, "c", 1)), "namespace")
	f.same(want(f.Caches(f.ctx, k))(f), []model.Cache{a, b})
	f.same(want(f.Cache(f.ctx, b.Key()))(f), b)
	_, err := f.Cache(f.ctx, newCache(k, "none", 1).Key())
	f.missing(err, "cache")
	_, err = f.Caches(f.ctx, model.NamespaceKey{TenantID: k.TenantID, Namespace: "none"})
	f.missing(err, "namespace")

	patched := b
	patched.DisplayName = "New name"
	f.same(want(f.PatchCache(f.ctx, b.Key(), model.CachePatch{DisplayName: ptr("New name")}))(f), patched)
	f.same(want(f.Cache(f.ctx, b.Key()))(f), patched)
	_, err = f.PatchCache(f.ctx, newCache(k, "none", 1).Key(), model.CachePatch{DisplayName: ptr("x")})
	f.missing(err, "cache")

	f.ok(f.DeleteCache(f.ctx, b.Key()))
	f.missing(f.DeleteCache(f.ctx, b.Key()), "cache")
	var dead model.Tombstone
	for _, t := range want(f.CachesSnapshot(f.ctx))(f).Tombstones {
		if t.TenantID == k.TenantID {
			dead = t
		}
	}
	f.same(dead, model.Tombstone{
		Kind: model.CacheShard, TenantID: k.TenantID, Namespace: k.Namespace, Name: "b", UID: b.UID,
		DeletedAtMillis: dead.DeletedAtMillis,
	})
	f.same(changesSince(f, f.CacheChanges, since), []model.CacheChange{
		{Seq: since, Op: model.Created, Key: b.Key(), Cache: &b},
		{Seq: since + 1, Op: model.Created, Key: a.Key(), Cache: &a},
		{Seq: since + 2, Op: model.Updated, Key: b.Key(), Cache: &patched},
		{Seq: since + 3, Op: model.Deleted, Key: b.Key(), Tombstone: &dead},
	})
}
