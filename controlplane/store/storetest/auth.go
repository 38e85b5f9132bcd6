package storetest

import (
	"github.com/felixlog/felix/controlplane/model"
)

func testIssuers(f *fixture) {
	t := f.tenant("a")
	b := model.IdpIssuer{
		Issuer: "https://b.example/x?y=%20", Audiences: []string{"z", "a"}, DiscoveryURL: ptr("https://d"), JWKSURL: ptr("https://j"),
		ClaimMappings: model.ClaimMappings{SubjectClaim: "email", GroupsClaim: ptr("groups")},
	}
	a := model.IdpIssuer{Issuer: "https://a.example", ClaimMappings: model.ClaimMappings{SubjectClaim: "sub"}}
	f.same(want(f.Issuers(f.ctx, t))(f), []model.IdpIssuer{})
	f.ok(f.PutIssuer(f.ctx, t, b))
	f.ok(f.PutIssuer(f.ctx, t, a))
	a.Audiences = []string{}
	f.same(want(f.Issuers(f.ctx, t))(f), []model.IdpIssuer{a, b})
	// Putting replaces all of it.
	b.Audiences, b.DiscoveryURL, b.ClaimMappings = []string{"c"}, nil, model.ClaimMappings{SubjectClaim: "sub"}
	f.ok(f.PutIssuer(f.ctx, t, b))
	f.same(want(f.Issuers(f.ctx, t))(f), []model.IdpIssuer{a, b})
	f.same(want(f.Issuers(f.ctx, f.tenant("b")))(f), []model.IdpIssuer{})
	f.ok(f.DeleteIssuer(f.ctx, t, a.Issuer))
	f.missing(f.DeleteIssuer(f.ctx, t, a.Issuer), "")
	f.same(want(f.Issuers(f.ctx, t))(f), []model.IdpIssuer{b})
}

func testPolicies(f *fixture) {
	t, other := f.tenant("a"), f.tenant("b")
	policies := []model.Policy{
		{Subject: "a", Object: "o", Action: "x"}, {Subject: "a", Object: "o", Action: "y"},
		{Subject: "a", Object: "p", Action: "x"}, {Subject: "b", Object: "o", Action: "x"},
	}
	for _, i := range []int{3, 1, 2, 0, 1} {
		f.ok(f.AddPolicy(f.ctx, t, policies[i]))
	}
	f.same(want(f.Policies(f.ctx, t))(f), policies)
	f.same(want(f.Policies(f.ctx, other))(f), []model.Policy{})
	f.missing(f.RemovePolicy(f.ctx, other, policies[1]), "")
	f.ok(f.RemovePolicy(f.ctx, t, policies[1]))
	f.missing(f.RemovePolicy(f.ctx, t, policies[1]), "")
	f.same(want(f.Policies(f.ctx, t))(f), append(policies[:1:1], policies[2:]...))

	groupings := []model.Grouping{{User: "a", Role: "r"}, {User: "a", Role: "s"}, {User: "b", Role: "r"}}
	for _, i := range []int{2, 0, 1, 0} {
		f.ok(f.AddGrouping(f.ctx, t, groupings[i]))
	}
	f.same(want(f.Groupings(f.ctx, t))(f), groupings)
	f.same(want(f.Groupings(f.ctx, other))(f), []model.Grouping{})
	f.missing(f.RemoveGrouping(f.ctx, other, groupings[0]), "")
	f.ok(f.RemoveGrouping(f.ctx, t, groupings[0]))
	f.missing(f.RemoveGrouping(f.ctx, t, groupings[0]), "")
	f.same(want(f.Groupings(f.ctx, t))(f), groupings[1:])
}

// testUnknownTenant asks everything of a tenant that is not there.
func testUnknownTenant(f *fixture) {
	t := f.prefix + "-none"
	p, g, i := model.Policy{Subject: "s"}, model.Grouping{User: "u"}, model.IdpIssuer{Issuer: "i"}
	for name, err := range map[string]error{
		"Issuers":            failed(f.Issuers(f.ctx, t)),
		"PutIssuer":          f.PutIssuer(f.ctx, t, i),
		"DeleteIssuer":       f.DeleteIssuer(f.ctx, t, "i"),
		"Policies":           failed(f.Policies(f.ctx, t)),
		"AddPolicy":          f.AddPolicy(f.ctx, t, p),
		"RemovePolicy":       f.RemovePolicy(f.ctx, t, p),
		"Groupings":          failed(f.Groupings(f.ctx, t)),
		"AddGrouping":        f.AddGrouping(f.ctx, t, g),
		"RemoveGrouping":     f.RemoveGrouping(f.ctx, t, g),
		"EnsureSigningKey":   failed(f.EnsureSigningKey(f.ctx, t, newKey("k"))),
		"StageSigningKey":    failed(f.StageSigningKey(f.ctx, t, newKey("k"))),
		"ActivateSigningKey": failed(f.ActivateSigningKey(f.ctx, t, "k")),
		"RetireSigningKey":   failed(f.RetireSigningKey(f.ctx, t, "k")),
		"Bootstrapped":       failed(f.Bootstrapped(f.ctx, t)),
		"InsertRefreshToken": f.InsertRefreshToken(f.ctx, newToken(t, "r", "f", "p")),
		"TakeRefreshToken":   failed(f.TakeRefreshToken(f.ctx, t, "r")),
		"RevokeFamily":       failed(f.RevokeFamily(f.ctx, t, "f")),
		"RevokePrincipal":    failed(f.RevokePrincipal(f.ctx, t, "p")),
	} {
		if err == nil {
			f.Errorf("%s of a tenant that is not there: no error", name)
			continue
		}
		f.missing(err, "")
	}
	f.same(want(f.SigningKeys(f.ctx, t))(f), []model.SigningKey{})
}

func failed[V any](_ V, err error) error { return err }
