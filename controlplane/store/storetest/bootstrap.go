package storetest

import (
	"fmt"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

func seed(kid string) model.AuthSeed {
	return model.AuthSeed{
		Key:       newKey(kid),
		Issuers:   []model.IdpIssuer{{Issuer: "https://" + kid, Audiences: []string{"a"}}},
		Policies:  []model.Policy{{Subject: "role:tenant-admin", Object: "tenant:" + kid, Action: "tenant.manage"}},
		Groupings: []model.Grouping{{User: "p-" + kid, Role: "role:tenant-admin"}},
	}
}

func (f *fixture) seeded(t string, s model.AuthSeed) {
	f.Helper()
	f.same(want(f.Bootstrapped(f.ctx, t))(f), true)
	f.same(want(f.SigningKeys(f.ctx, t))(f), []model.SigningKey{as(s.Key, model.KeyCurrent)})
	f.same(want(f.Issuers(f.ctx, t))(f), s.Issuers)
	f.same(want(f.Policies(f.ctx, t))(f), s.Policies)
	f.same(want(f.Groupings(f.ctx, t))(f), s.Groupings)
}

func testBootstrap(f *fixture) {
	t := f.tenant("a")
	f.same(want(f.Bootstrapped(f.ctx, t))(f), false)
	was := want(f.Tenant(f.ctx, t))(f)
	since := want(f.TenantsSnapshot(f.ctx))(f).NextSeq
	f.same(want(f.BootstrapTenant(f.ctx, model.Tenant{TenantID: t, DisplayName: "other"}, seed("one")))(f),
		[]model.SigningKey{as(newKey("one"), model.KeyCurrent)})
	f.seeded(t, seed("one"))
	f.conflict(failed(f.BootstrapTenant(f.ctx, was, seed("two"))), store.Bootstrapped)
	f.seeded(t, seed("one"))
	f.same(want(f.Tenant(f.ctx, t))(f), was)
	f.same(len(changesSince(f, f.TenantChanges, since)), 0)

	// A tenant keeps what it has: its key signs on, rules are added to.
	t = f.tenant("b")
	want(f.EnsureSigningKey(f.ctx, t, newKey("own")))(f)
	s := seed("x")
	f.ok(f.AddPolicy(f.ctx, t, s.Policies[0]))
	f.ok(f.PutIssuer(f.ctx, t, model.IdpIssuer{Issuer: s.Issuers[0].Issuer, JWKSURL: ptr("old")}))
	f.ok(f.AddGrouping(f.ctx, t, model.Grouping{User: "a-other", Role: "r"}))
	f.same(want(f.BootstrapTenant(f.ctx, model.Tenant{TenantID: t}, s))(f), []model.SigningKey{as(newKey("own"), model.KeyCurrent)})
	s.Key = newKey("own")
	s.Groupings = append([]model.Grouping{{User: "a-other", Role: "r"}}, s.Groupings...)
	f.seeded(t, s)
}

// testBootstrapMakes initialises a tenant that is not there: it is made with all
// that it is given, or not at all.
func testBootstrapMakes(f *fixture) {
	since := want(f.TenantsSnapshot(f.ctx))(f).NextSeq
	made := model.Tenant{TenantID: f.prefix + "-a", DisplayName: "Ay"}
	bad := seed("one")
	bad.Key.KID = ""
	if _, err := f.BootstrapTenant(f.ctx, made, bad); err == nil {
		f.Fatal("a tenant was initialised with a key without an id")
	}
	f.absent(made.TenantID)
	f.same(len(changesSince(f, f.TenantChanges, since)), 0)
	f.same(want(f.BootstrapTenant(f.ctx, made, seed("one")))(f), []model.SigningKey{as(newKey("one"), model.KeyCurrent)})
	f.same(want(f.Tenant(f.ctx, made.TenantID))(f), made)
	f.seeded(made.TenantID, seed("one"))
	f.conflict(failed(f.BootstrapTenant(f.ctx, made, seed("two"))), store.Bootstrapped)
	f.seeded(made.TenantID, seed("one"))
	f.same(changesSince(f, f.TenantChanges, since), []model.TenantChange{
		{Seq: since, Op: model.Created, TenantID: made.TenantID, Tenant: &made},
	})
}

// testBootstrapRace initialises a tenant from several places at once, one that
// is there and one that is not: one wins, and what is there is all its own.
func testBootstrapRace(f *fixture) {
	f.bootstrapRace(f.tenant("a"))
	f.bootstrapRace(f.prefix + "-b")
}

func (f *fixture) bootstrapRace(t string) {
	f.Helper()
	errs := make([]error, 8)
	together(len(errs), func(i int) {
		_, errs[i] = f.BootstrapTenant(f.ctx, model.Tenant{TenantID: t}, seed(fmt.Sprintf("k%d", i)))
	})
	winner := ""
	for i, err := range errs {
		if err != nil {
			f.conflict(err, store.Bootstrapped)
			continue
		}
		if winner != "" {
			f.Fatalf("both %s and k%d won", winner, i)
		}
		winner = fmt.Sprintf("k%d", i)
	}
	f.seeded(t, seed(winner))
}
