package auth_test

import (
	"context"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/felixlog/felix/controlplane/auth"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/rbac"
	token "github.com/felixlog/felix/internal/auth"
)

// The people of the property: what they may administer overlaps, and none of
// them may do everything.
var (
	people   = []string{"alice", "rules-n", "roles-n", "both-n", "both-s", "ns-m", "issuers", "root", "nobody"}
	roles    = []string{"role:a", "role:b", "role:c", "role:ops", auth.AdminRole}
	powers   = []string{"@rules-n rbac.policy.manage namespace:t1/n", "@roles-n rbac.assignment.manage namespace:t1/n", "@both-n rbac.policy.manage namespace:t1/n", "@both-n rbac.assignment.manage namespace:t1/n", "@both-s rbac.policy.manage stream:t1/n/s", "@both-s rbac.assignment.manage stream:t1/*/*", "@ns-m ns.manage namespace:t1/m", "@issuers tenant.manage tenant:t1", "@root tenant.manage tenant:t1", "@root tenant.manage cluster:*", "role:ops node.manage cluster:*", "role:ops tenant.manage cluster:*", "role:a stream.publish stream:t1/n/s", "role:b ns.manage namespace:t1/m", "role:c group.consume group:t1/n/s/g"}
	someRule = rapid.Custom(func(t *rapid.T) model.Policy {
		return model.Policy{
			Subject: rapid.SampledFrom(append(slices.Clone(people), roles...)).Draw(t, "subject"),
			Action: rapid.SampledFrom([]string{
				"stream.publish", "stream.subscribe", "stream.manage", "cache.read", "group.consume", "group.manage", "ns.manage", "tenant.manage",
				"rbac.view", "rbac.policy.manage", "rbac.assignment.manage", "node.manage", "node.view", "token.delegate", "stream.paint",
			}).Draw(t, "action"),
			Object: rapid.SampledFrom([]string{
				"cluster:*", "node:a", "tenant:t1", "tenant:t2", "namespace:t1/n", "namespace:t1/m", "namespace:t1/*", "stream:t1/n/s", "stream:t1/n/*",
				"stream:t1/m/x", "stream:t1/*/*", "cache:t1/n/c", "cache:t1/n/c/k*", "group:t1/n/s/g", "group:t1/n/s/h", "stream:t1/*/s",
			}).Draw(t, "object"),
		}
	})
)

// subject writes people as their principals.
func (w *world) subject(name string) string {
	if slices.Contains(people, name) {
		return w.principal(name)
	}
	return name
}

// rights are what every person may do, and what a broker makes of it for groups
// of a stream, where one rule can hide another.
func (w *world) rights() map[string]map[rbac.Permission]bool {
	policies, err := w.store.Policies(w.ctx(), tenant)
	w.must(err)
	groupings, err := w.store.Groupings(w.ctx(), tenant)
	w.must(err)
	all := make(map[string]map[rbac.Permission]bool)
	for _, name := range append(slices.Clone(people), roles...) {
		perms := rbac.Effective(tenant, policies, groupings, []string{w.subject(name)})
		all[name] = make(map[rbac.Permission]bool)
		var texts []string
		for _, p := range perms {
			all[name][p] = true
			texts = append(texts, p.String())
		}
		grants, err := token.CompileGrants(tenant, texts)
		w.must(err)
		for _, group := range []string{"g", "h", "other"} {
			o := rbac.Group(tenant, "n", "s", group)
			if grants.CanConsumeGroup("n", "s", group) {
				all[name][rbac.Permission{Action: rbac.GroupConsume, Object: o}] = true
			}
			if grants.CanManageGroup("n", "s", group) {
				all[name][rbac.Permission{Action: rbac.GroupManage, Object: o}] = true
			}
		}
	}
	return all
}

// TestNobodyGivesWhatTheyLack: whatever sequence of writes is let through, what
// anybody gains by a write lies within the scopes of the one who wrote. In
// particular nobody gains anything over the cluster or a node, and nobody
// changes whose keys are believed without the right to the cluster.
func TestNobodyGivesWhatTheyLack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(cleaning{t}, nil)
		w.boot(powers...)
		for user, role := range map[string]string{w.principal("root"): "role:a", "role:a": "role:b"} {
			w.must(w.store.AddGrouping(w.ctx(), tenant, model.Grouping{User: user, Role: role}))
		}
		for range rapid.IntRange(1, 14).Draw(t, "writes") {
			name := rapid.SampledFrom(people[:len(people)-1]).Draw(t, "who")
			c := w.as(name)
			if c == nil {
				continue
			}
			before := w.rights()
			issuers, err := w.store.Issuers(w.ctx(), tenant)
			w.must(err)
			scopes, did := w.write(t, c)
			after := w.rights()
			for who := range after {
				for p := range after[who] {
					if !before[who][p] && !slices.ContainsFunc(scopes, func(s rbac.Object) bool { return s.Contains(p.Object) }) {
						t.Fatalf("%s (scopes %v) did %s, and %s gained %v", name, scopes, did, who, p)
					}
					if !before[who][p] && (p.Object.Kind == rbac.KindCluster || p.Object.Kind == rbac.KindNode) {
						t.Fatalf("%s did %s, and %s gained %v", name, did, who, p)
					}
				}
			}
			w.checkIssuers(t, c, issuers, did)
		}
	})
}

// as is the caller with that name, nil if there is nothing left to call with.
func (w *world) as(name string) *auth.Caller {
	answer, err := w.Exchange(w.ctx(), tenant, w.upstream(name), auth.ExchangeRequest{Audience: control})
	if err != nil {
		w.refused(err, 403, "forbidden")
		return nil
	}
	c, err := w.Authenticate(w.ctx(), "Bearer "+answer.FelixToken, tenant)
	w.must(err)
	return c
}

// write tries one write, and says what it was and within which scopes it may
// give rights.
func (w *world) write(t *rapid.T, c *auth.Caller) ([]rbac.Object, string) {
	ctx := context.Background()
	op := rapid.SampledFrom([]string{"policy", "policy", "no policy", "grouping", "grouping", "no grouping", "issuer", "no issuer"}).Draw(t, "op")
	outcome := func(what string, err error) string {
		if err == nil {
			return what
		}
		return what + " (refused)"
	}
	switch op {
	case "policy", "no policy":
		p := someRule.Draw(t, "rule")
		p.Subject = w.subject(p.Subject)
		if op == "policy" {
			return c.Scopes(rbac.RBACPolicyManage), outcome("add "+p.Action+":"+p.Object, w.AddPolicy(ctx, c, tenant, p))
		}
		if existing, err := w.store.Policies(ctx, tenant); err == nil && len(existing) > 0 && rapid.Bool().Draw(t, "existing") {
			p = rapid.SampledFrom(existing).Draw(t, "which")
		}
		return c.Scopes(rbac.RBACPolicyManage), outcome("remove "+p.Action+":"+p.Object, w.RemovePolicy(ctx, c, tenant, p))
	case "grouping", "no grouping":
		g := model.Grouping{
			User: w.subject(rapid.SampledFrom(append(slices.Clone(people), roles...)).Draw(t, "user")),
			Role: w.subject(rapid.SampledFrom(append(slices.Clone(roles), people...)).Draw(t, "role")),
		}
		if op == "grouping" {
			return c.Scopes(rbac.RBACAssignmentManage), outcome("link "+g.User+" to "+g.Role, w.AddGrouping(ctx, c, tenant, g))
		}
		if existing, err := w.store.Groupings(ctx, tenant); err == nil && len(existing) > 0 && rapid.Bool().Draw(t, "existing") {
			g = rapid.SampledFrom(existing).Draw(t, "which")
		}
		return c.Scopes(rbac.RBACAssignmentManage), outcome("unlink "+g.User+" from "+g.Role, w.RemoveGrouping(ctx, c, tenant, g))
	case "issuer":
		i := w.issuer()
		evil := "https://evil.example/keys"
		switch rapid.SampledFrom([]string{"new", "keys", "document", "subject", "groups", "audience", "same"}).Draw(t, "change") {
		case "new":
			i.Issuer = "https://new.example"
		case "keys":
			i.JWKSURL = &evil
		case "document":
			i.DiscoveryURL = &evil
		case "subject":
			i.ClaimMappings.SubjectClaim = "name"
		case "groups":
			i.ClaimMappings.GroupsClaim = nil
		case "audience":
			i.Audiences = append(i.Audiences, "evil")
		}
		did := outcome("put issuer "+i.Issuer, w.PutIssuer(ctx, c, tenant, i))
		return nil, did
	default:
		issuer := rapid.SampledFrom([]string{w.idp.Issuer(), "https://new.example"}).Draw(t, "issuer")
		return nil, outcome("delete issuer "+issuer, w.DeleteIssuer(ctx, c, tenant, issuer))
	}
}

// checkIssuers judges what became of the issuers, and puts them back so that
// the others can go on.
func (w *world) checkIssuers(t *rapid.T, c *auth.Caller, before []model.IdpIssuer, did string) {
	after, err := w.store.Issuers(w.ctx(), tenant)
	w.must(err)
	now := make(map[string]model.IdpIssuer)
	for _, i := range after {
		now[i.Issuer] = i
	}
	for _, old := range before {
		changed, there := now[old.Issuer]
		delete(now, old.Issuer)
		if there && sameIssuer(old, changed) {
			continue
		}
		if !c.May(rbac.TenantManage, rbac.Cluster()) || !c.May(rbac.TenantManage, rbac.Tenant(tenant)) {
			t.Fatalf("%s by one without the right to the cluster", did)
		}
		w.must(w.store.PutIssuer(w.ctx(), tenant, old))
	}
	if added := slices.Collect(maps.Keys(now)); len(added) > 0 && !c.May(rbac.TenantManage, rbac.Tenant(tenant)) {
		t.Fatalf("%s by one without the right to the tenant", did)
	}
}

func sameIssuer(a, b model.IdpIssuer) bool {
	deref := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	return slices.Equal(a.Audiences, b.Audiences) && deref(a.JWKSURL) == deref(b.JWKSURL) && deref(a.DiscoveryURL) == deref(b.DiscoveryURL) &&
		a.ClaimMappings.SubjectClaim == b.ClaimMappings.SubjectClaim && deref(a.ClaimMappings.GroupsClaim) == deref(b.ClaimMappings.GroupsClaim)
}

// cleaning is a rapid.T as a world wants it.
type cleaning struct{ *rapid.T }
