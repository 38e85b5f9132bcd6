package storetest

import (
	"slices"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

func testTenants(f *fixture) {
	since := want(f.TenantsSnapshot(f.ctx))(f).NextSeq
	b := model.Tenant{TenantID: f.prefix + "-b", DisplayName: "Bee"}
	a := model.Tenant{TenantID: f.prefix + "-a", DisplayName: "Ay, \"quoted\" and ünïcode"}
	f.ok(f.CreateTenant(f.ctx, b))
	f.ok(f.CreateTenant(f.ctx, a))
	f.conflict(f.CreateTenant(f.ctx, model.Tenant{TenantID: a.TenantID}), store.Exists)

	f.same(want(f.Tenant(f.ctx, a.TenantID))(f), a)
	mine := func(list []model.Tenant) []model.Tenant {
		return slices.DeleteFunc(list, func(t model.Tenant) bool { return t.TenantID != a.TenantID && t.TenantID != b.TenantID })
	}
	f.same(mine(want(f.Tenants(f.ctx))(f)), []model.Tenant{a, b})
	f.same(mine(want(f.TenantsSnapshot(f.ctx))(f).Items), []model.Tenant{a, b})

	f.ok(f.DeleteTenant(f.ctx, b.TenantID))
	f.missing(f.DeleteTenant(f.ctx, b.TenantID), "tenant")
	_, err := f.Tenant(f.ctx, b.TenantID)
	f.missing(err, "tenant")
	f.same(mine(want(f.Tenants(f.ctx))(f)), []model.Tenant{a})

	f.same(changesSince(f, f.TenantChanges, since), []model.TenantChange{
		{Seq: since, Op: model.Created, TenantID: b.TenantID, Tenant: &b},
		{Seq: since + 1, Op: model.Created, TenantID: a.TenantID, Tenant: &a},
		{Seq: since + 2, Op: model.Deleted, TenantID: b.TenantID},
	})
}

func testNamespaces(f *fixture) {
	t := f.tenant("a")
	since := want(f.NamespacesSnapshot(f.ctx))(f).NextSeq
	y := model.Namespace{TenantID: t, Namespace: "y", DisplayName: "Why"}
	x := model.Namespace{TenantID: t, Namespace: "x"}
	f.same(want(f.Namespaces(f.ctx, t))(f), []model.Namespace{})
	f.ok(f.CreateNamespace(f.ctx, y))
	f.ok(f.CreateNamespace(f.ctx, x))
	f.conflict(f.CreateNamespace(f.ctx, x), store.Exists)
	f.missing(f.CreateNamespace(f.ctx, model.Namespace{TenantID: "none", Namespace: "x"}), "tenant")

	f.same(want(f.Namespaces(f.ctx, t))(f), []model.Namespace{x, y})
	f.same(want(f.Namespace(f.ctx, y.Key()))(f), y)
	_, err := f.Namespaces(f.ctx, "none")
	f.missing(err, "tenant")
	_, err = f.Namespace(f.ctx, model.NamespaceKey{TenantID: t, Namespace: "z"})
	f.missing(err, "namespace")

	f.ok(f.DeleteNamespace(f.ctx, x.Key()))
	f.missing(f.DeleteNamespace(f.ctx, x.Key()), "namespace")
	f.same(changesSince(f, f.NamespaceChanges, since), []model.NamespaceChange{
		{Seq: since, Op: model.Created, Key: y.Key(), Namespace: &y},
		{Seq: since + 1, Op: model.Created, Key: x.Key(), Namespace: &x},
		{Seq: since + 2, Op: model.Deleted, Key: x.Key()},
	})
}

func testResources(f *fixture) {
	k := f.place()
	s1, s2, c1 := newStream(k, "s1", 1), newStream(k, "s2", 2), newCache(k, "s1", 3)
	streams := want(f.StreamsSnapshot(f.ctx))(f).NextSeq
	caches := want(f.CachesSnapshot(f.ctx))(f).NextSeq
	f.ok(f.CreateResources(f.ctx, k, []model.Stream{s2, s1}, []model.Cache{c1}))
	f.same(want(f.Streams(f.ctx, k))(f), []model.Stream{s1, s2})
	f.same(want(f.Caches(f.ctx, k))(f), []model.Cache{c1})
	f.same(len(changesSince(f, f.StreamChanges, streams)), 2)
	f.same(len(changesSince(f, f.CacheChanges, caches)), 1)

	// All or none.
	f.conflict(f.CreateResources(f.ctx, k, []model.Stream{newStream(k, "s3", 1), s2}, nil), store.Exists)
	f.conflict(f.CreateResources(f.ctx, k, []model.Stream{newStream(k, "s3", 1)}, []model.Cache{newCache(k, "c3", 1), c1}), store.Exists)
	f.conflict(f.CreateResources(f.ctx, k, []model.Stream{newStream(k, "s3", 1), newStream(k, "s3", 1)}, nil), store.Exists)
	f.conflict(f.CreateResources(f.ctx, k, nil, []model.Cache{newCache(k, "c3", 1), newCache(k, "c3", 1)}), store.Exists)
	other := model.NamespaceKey{TenantID: k.TenantID, Namespace: "none"}
	f.missing(f.CreateResources(f.ctx, other, []model.Stream{newStream(other, "s3", 1)}, nil), "namespace")
	f.same(want(f.Streams(f.ctx, k))(f), []model.Stream{s1, s2})
	f.same(want(f.Caches(f.ctx, k))(f), []model.Cache{c1})
	f.same(len(changesSince(f, f.StreamChanges, streams)), 2)
	f.same(len(changesSince(f, f.CacheChanges, caches)), 1)
}

func testBridges(f *fixture) {
	a := model.Bridge{Source: f.prefix + "a", Destination: f.prefix + "b"}
	b := model.Bridge{Source: f.prefix + "b", Destination: f.prefix + "a"}
	f.ok(f.PutBridge(f.ctx, b))
	f.ok(f.PutBridge(f.ctx, a))
	f.ok(f.PutBridge(f.ctx, a))
	f.same(want(f.Bridges(f.ctx))(f), []model.Bridge{a, b})
	f.ok(f.DeleteBridge(f.ctx, a))
	f.missing(f.DeleteBridge(f.ctx, a), "bridge")
	f.same(want(f.Bridges(f.ctx))(f), []model.Bridge{b})
	f.ok(f.DeleteBridge(f.ctx, b))
	f.same(want(f.Bridges(f.ctx))(f), []model.Bridge{})
}
