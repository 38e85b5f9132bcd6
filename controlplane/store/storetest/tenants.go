package storetest

import (
	"fmt"
	"sync"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// absent wants nothing left of a tenant, as if nobody had ever made it.
func (f *fixture) absent(t string) {
	f.Helper()
	_, err := f.Tenant(f.ctx, t)
	f.missing(err, "tenant")
	f.same(want(f.SigningKeys(f.ctx, t))(f), []model.SigningKey{})
	_, err = f.Bootstrapped(f.ctx, t)
	f.missing(err, "tenant")
}

// testTenantWithKey makes a tenant and its first key in one step: both or
// neither.
func testTenantWithKey(f *fixture) {
	since := want(f.TenantsSnapshot(f.ctx))(f).NextSeq
	a := model.Tenant{TenantID: f.prefix + "-a", DisplayName: "Ay"}
	short := newKey("short")
	short.Public = short.Public[1:]
	for name, bad := range map[string]model.SigningKey{"nothing": {}, "no id": newKey(""), "short": short} {
		if err := f.CreateTenantWithKey(f.ctx, a, bad); err == nil {
			f.Fatalf("a tenant was made with a bad key: %s", name)
		}
		f.absent(a.TenantID)
	}
	f.ok(f.CreateTenantWithKey(f.ctx, a, newKey("one")))
	f.same(want(f.Tenant(f.ctx, a.TenantID))(f), a)
	f.same(want(f.SigningKeys(f.ctx, a.TenantID))(f), []model.SigningKey{as(newKey("one"), model.KeyCurrent)})
	f.same(want(f.EnsureSigningKey(f.ctx, a.TenantID, newKey("two")))(f), []model.SigningKey{as(newKey("one"), model.KeyCurrent)})
	f.same(want(f.Bootstrapped(f.ctx, a.TenantID))(f), false)

	// One that is there stays as it is, with its key or without.
	other := a
	other.DisplayName = "Other"
	f.conflict(f.CreateTenantWithKey(f.ctx, other, newKey("two")), store.Exists)
	f.same(want(f.Tenant(f.ctx, a.TenantID))(f), a)
	f.same(want(f.SigningKeys(f.ctx, a.TenantID))(f), []model.SigningKey{as(newKey("one"), model.KeyCurrent)})
	bare := f.tenant("b")
	f.conflict(f.CreateTenantWithKey(f.ctx, model.Tenant{TenantID: bare}, newKey("two")), store.Exists)
	f.same(want(f.SigningKeys(f.ctx, bare))(f), []model.SigningKey{})

	// The feed tells of each once.
	b := want(f.Tenant(f.ctx, bare))(f)
	f.same(changesSince(f, f.TenantChanges, since), []model.TenantChange{
		{Seq: since, Op: model.Created, TenantID: a.TenantID, Tenant: &a},
		{Seq: since + 1, Op: model.Created, TenantID: bare, Tenant: &b},
	})
	// Made anew, it has the new key alone.
	f.ok(f.DeleteTenant(f.ctx, a.TenantID))
	f.absent(a.TenantID)
	f.ok(f.CreateTenantWithKey(f.ctx, a, newKey("three")))
	f.same(want(f.SigningKeys(f.ctx, a.TenantID))(f), []model.SigningKey{as(newKey("three"), model.KeyCurrent)})
}

// testTenantWithKeyRace makes a tenant in several places at once: the key is
// the winner's.
func testTenantWithKeyRace(f *fixture) {
	id := f.prefix + "-a"
	var mu sync.Mutex
	winners := []string{}
	together(8, func(i int) {
		kid := fmt.Sprintf("k%d", i)
		err := f.CreateTenantWithKey(f.ctx, model.Tenant{TenantID: id, DisplayName: kid}, newKey(kid))
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			winners = append(winners, kid)
		}
	})
	f.same(len(winners), 1)
	f.same(want(f.SigningKeys(f.ctx, id))(f), []model.SigningKey{as(newKey(winners[0]), model.KeyCurrent)})
	f.same(want(f.Tenant(f.ctx, id))(f).DisplayName, winners[0])
}
