package storetest

import (
	"sync"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

func newToken(tenant, id, family, principal string) model.RefreshToken {
	return model.RefreshToken{
		TenantID: tenant, TokenID: id, PrincipalID: principal, Groups: []string{}, Issuer: "https://idp",
		SecretHash: "00ff", FamilyID: family, Audience: "felix-broker", IssuedAtSecs: 1_790_000_000, ExpiresAtSecs: 1_792_592_000,
	}
}

func testRefreshTokens(f *fixture) {
	t, other := f.tenant("a"), f.tenant("b")
	full := newToken(t, "full", "fam", "p")
	full.Groups = []string{"https://idp#b", "https://idp#a"}
	full.Actor = "gateway"
	full.Narrowing = &model.Narrowing{Actions: []string{"publish"}, Resources: []string{"stream:t/n/s"}}
	bare := newToken(t, "bare", "fam", "p")
	half := newToken(t, "half", "fam", "p")
	half.Narrowing = &model.Narrowing{Resources: []string{}}
	for _, r := range []model.RefreshToken{full, bare, half} {
		f.ok(f.InsertRefreshToken(f.ctx, r))
		f.conflict(f.InsertRefreshToken(f.ctx, r), store.Exists)
	}
	_, err := f.TakeRefreshToken(f.ctx, other, "full")
	f.missing(err, "")
	_, err = f.TakeRefreshToken(f.ctx, t, "none")
	f.missing(err, "")
	for _, r := range []model.RefreshToken{full, bare, half} {
		f.same(want(f.TakeRefreshToken(f.ctx, t, r.TokenID))(f), r)
		r.Used = true
		f.same(want(f.TakeRefreshToken(f.ctx, t, r.TokenID))(f), r)
	}
	// Tenants may have tokens of the same id.
	f.ok(f.InsertRefreshToken(f.ctx, newToken(other, "full", "fam", "p")))
	f.same(want(f.TakeRefreshToken(f.ctx, other, "full"))(f).Used, false)
}

// testRefreshRace presents one token from several places at once: one may use
// it.
func testRefreshRace(f *fixture) {
	t := f.tenant("a")
	f.ok(f.InsertRefreshToken(f.ctx, newToken(t, "r", "fam", "p")))
	var mu sync.Mutex
	fresh, used := 0, 0
	var errs []error
	together(8, func(int) {
		r, err := f.TakeRefreshToken(f.ctx, t, "r")
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			errs = append(errs, err)
		case r.Used:
			used++
		default:
			fresh++
		}
	})
	for _, err := range errs {
		f.ok(err)
	}
	f.same([]int{fresh, used}, []int{1, 7})
}

func testFamilies(f *fixture) {
	t, other := f.tenant("a"), f.tenant("b")
	for _, r := range []model.RefreshToken{
		newToken(t, "a1", "fam-a", "p"), newToken(t, "a2", "fam-a", "p"), newToken(t, "b1", "fam-b", "p"),
		newToken(t, "c1", "fam-c", "q"), newToken(other, "a1", "fam-a", "p"),
	} {
		f.ok(f.InsertRefreshToken(f.ctx, r))
	}
	revoked := func(tenant, id string) bool {
		f.Helper()
		return want(f.TakeRefreshToken(f.ctx, tenant, id))(f).Revoked
	}
	want(f.TakeRefreshToken(f.ctx, t, "a1"))(f)
	// A used one is revoked with its family; what is revoked counts once.
	f.same(want(f.RevokeFamily(f.ctx, t, "fam-a"))(f), 2)
	f.same(want(f.RevokeFamily(f.ctx, t, "fam-a"))(f), 0)
	f.same(want(f.RevokeFamily(f.ctx, t, "none"))(f), 0)
	f.same([]bool{revoked(t, "a1"), revoked(t, "a2"), revoked(t, "b1"), revoked(t, "c1"), revoked(other, "a1")},
		[]bool{true, true, false, false, false})
	f.same(want(f.RevokePrincipal(f.ctx, t, "p"))(f), 1)
	f.same(want(f.RevokePrincipal(f.ctx, t, "none"))(f), 0)
	f.same([]bool{revoked(t, "b1"), revoked(t, "c1"), revoked(other, "a1")}, []bool{true, false, false})
	f.same(want(f.RevokeFamily(f.ctx, t, "fam-c"))(f), 1)
	f.same(revoked(t, "c1"), true)
}

func testPurge(f *fixture) {
	t, other := f.tenant("a"), f.tenant("b")
	for i, tenant := range []string{t, t, other} {
		r := newToken(tenant, string(rune('a'+i)), "fam", "p")
		r.ExpiresAtSecs = uint64(1000 + i)
		f.ok(f.InsertRefreshToken(f.ctx, r))
	}
	f.same(want(f.PurgeRefreshTokens(f.ctx, 1000))(f), 0)
	f.same(want(f.PurgeRefreshTokens(f.ctx, 1001))(f), 1)
	_, err := f.TakeRefreshToken(f.ctx, t, "a")
	f.missing(err, "")
	want(f.TakeRefreshToken(f.ctx, t, "b"))(f)
	f.same(want(f.RevokeFamily(f.ctx, t, "fam"))(f), 1)
	f.same(want(f.PurgeRefreshTokens(f.ctx, 1003))(f), 2)
	f.same(want(f.RevokePrincipal(f.ctx, other, "p"))(f), 0)
}
