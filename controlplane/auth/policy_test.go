package auth_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/felixlog/felix/controlplane/auth"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/rbac"
	"github.com/felixlog/felix/controlplane/store"
)

func TestPolicyAdministration(t *testing.T) {
	w := newWorld(t, nil)
	w.boot("@ns rbac.policy.manage namespace:t1/n", "@ns rbac.view namespace:t1/n", "@st rbac.policy.manage stream:t1/n/s", "@st rbac.view stream:t1/n/s",
		"@res ns.manage namespace:t1/n", "role:ops node.view cluster:*", "role:ops tenant.manage cluster:*")
	for _, test := range []struct {
		who, rule string
		status    int
	}{
		{"alice", "x stream.publish stream:t1/n/s", 0},
		{"alice", "x tenant.manage tenant:t1", 0},
		{"alice", "x node.view cluster:*", 403},
		{"alice", "x tenant.manage cluster:*", 403},
		{"alice", "x node.manage node:a", 403},
		{"alice", "x stream.publish stream:t2/n/s", 400},
		{"alice", "x stream.paint stream:t1/n/s", 400},
		{"alice", "x stream.publish stream:t1/*/s", 400},
		{"alice", "x stream.publish namespace:t1/n", 400},
		{"ns", "x stream.publish stream:t1/n/*", 0},
		{"ns", "x cache.read cache:t1/n/c/k*", 0},
		{"ns", "x group.consume group:t1/n/s/g", 0},
		{"ns", "x rbac.policy.manage stream:t1/n/s", 0},
		{"ns", "x ns.manage namespace:t1/n", 0},
		{"ns", "x ns.manage namespace:t1/*", 403},
		{"ns", "x stream.publish stream:t1/*/*", 403},
		{"ns", "x stream.publish stream:t1/m/s", 403},
		{"ns", "x tenant.manage tenant:t1", 403},
		// The escalation of control plane 16.4: the tenant by way of a namespace.
		{"ns", "@ns tenant.manage namespace:t1/n", 400},
		{"ns", "@ns tenant.manage stream:t1/n/s", 400},
		{"ns", "@ns tenant.manage cache:t1/n/c", 400},
		{"st", "x stream.publish stream:t1/n/s", 0},
		{"st", "x stream.publish stream:t1/n/x", 403},
		{"st", "x cache.read cache:t1/n/s", 403},
		{"res", "x stream.publish stream:t1/n/s", 403},
		{"res", "nonsense nonsense nonsense", 403},
	} {
		t.Run(test.who+" "+test.rule, func(t *testing.T) {
			err := w.AddPolicy(t.Context(), w.caller(test.who), tenant, w.rule(test.rule))
			if test.status == 0 {
				w.must(err)
				w.must(w.AddPolicy(t.Context(), w.caller(test.who), tenant, w.rule(test.rule)))
				return
			}
			w.refused(err, test.status, map[int]string{400: "validation_error", 403: "forbidden"}[test.status])
		})
	}
	alice := w.caller("alice")
	for _, blank := range []string{"", "  ", "\x00", strings.Repeat("x", 5000)} {
		p := model.Policy{Subject: blank, Action: "stream.publish", Object: "stream:t1/n/s"}
		w.refused(w.AddPolicy(t.Context(), alice, tenant, p), 400, "validation_error")
	}
	w.refused(w.AddPolicy(t.Context(), alice, "t2", w.rule("x stream.publish stream:t2/n/s")), 403, "forbidden")
	if got := w.counted("rejected tenant_mismatch"); got != 1 {
		t.Errorf("%d counted", got)
	}
	// What each may see, and take back.
	seen := func(who string) (n int) {
		list, err := w.Policies(t.Context(), w.caller(who), tenant)
		w.must(err)
		for _, p := range list {
			if !contained(w.caller(who).Scopes(rbac.RBACView), p.Object) {
				t.Errorf("%s sees %v", who, p)
			}
		}
		return len(list)
	}
	all, err := w.store.Policies(t.Context(), tenant)
	w.must(err)
	if a, n, s := seen("alice"), seen("ns"), seen("st"); a != len(all)-2 || n <= s || s == 0 || n >= a {
		t.Errorf("of %d rules, two of the cluster, alice sees %d, ns %d, st %d", len(all), a, n, s)
	}
	w.refused(second(w.Policies(t.Context(), w.caller("res"), tenant)), 403, "forbidden")
	ns := w.caller("ns")
	w.refused(w.RemovePolicy(t.Context(), ns, tenant, w.rule("x tenant.manage tenant:t1")), 403, "forbidden")
	w.refused(w.RemovePolicy(t.Context(), alice, tenant, w.rule("role:ops node.view cluster:*")), 403, "forbidden")
	w.refused(w.RemovePolicy(t.Context(), ns, tenant, w.rule("x stream.paint stream:t1/n/s")), 400, "validation_error")
	w.must(w.RemovePolicy(t.Context(), ns, tenant, w.rule("x stream.publish stream:t1/n/*")))
	var missing *store.NotFoundError
	if err := w.RemovePolicy(t.Context(), ns, tenant, w.rule("x stream.publish stream:t1/n/*")); !errors.As(err, &missing) {
		t.Error(err)
	}
	// A rule that gives nothing, from an import perhaps, can be taken back.
	w.must(w.store.AddPolicy(t.Context(), tenant, w.rule("x tenant.manage namespace:t1/n")))
	w.must(w.RemovePolicy(t.Context(), ns, tenant, w.rule("x tenant.manage namespace:t1/n")))
}

func contained(scopes []rbac.Object, text string) bool {
	o, err := rbac.ParseObject(text)
	for _, scope := range scopes {
		if err == nil && scope.Contains(o) {
			return true
		}
	}
	return false
}

func TestGroupingAdministration(t *testing.T) {
	w := newWorld(t, nil)
	w.boot("@ns rbac.assignment.manage namespace:t1/n", "@ns rbac.view namespace:t1/n", "@res ns.manage namespace:t1/n",
		"role:in stream.publish stream:t1/n/s", "role:out stream.publish stream:t1/m/s", "role:both stream.publish stream:t1/n/s",
		"role:both stream.publish stream:t1/m/s", "role:chained stream.publish stream:t1/n/s", "role:ops tenant.manage cluster:*")
	w.must(w.store.AddGrouping(t.Context(), tenant, model.Grouping{User: "role:chained", Role: "role:out"}))
	w.must(w.store.AddGrouping(t.Context(), tenant, model.Grouping{User: "someone", Role: "role:empty"}))
	for _, test := range []struct {
		who, user, role string
		status          int
	}{
		{"ns", "bob", "role:in", 0},
		{"ns", "bob", "role:out", 403},
		{"ns", "bob", "role:both", 403},
		{"ns", "bob", "role:chained", 403}, // brings role:out along
		{"ns", "bob", "role:tenant-admin", 403},
		{"ns", "bob", "role:ops", 403},
		{"ns", "bob", "role:none", 403},
		{"ns", "", "role:in", 403},
		{"ns", "bob", " ", 403},
		{"ns", "a\x00", "role:in", 403},
		{"res", "bob", "role:in", 403},
		{"alice", "bob", "role:chained", 0},
		{"alice", "bob", "role:tenant-admin", 0},
		{"alice", "bob", "role:ops", 403},
		{"alice", "bob", "role:none", 403},
	} {
		t.Run(test.who+" "+test.user+" "+test.role, func(t *testing.T) {
			err := w.AddGrouping(t.Context(), w.caller(test.who), tenant, model.Grouping{User: test.user, Role: test.role})
			if test.status == 0 {
				w.must(err)
				return
			}
			w.refused(err, test.status, "forbidden")
		})
	}
	ns, alice := w.caller("ns"), w.caller("alice")
	w.refused(w.AddGrouping(t.Context(), alice, "t2", model.Grouping{User: "x", Role: "role:in"}), 403, "forbidden")
	seen, err := w.Groupings(t.Context(), ns, tenant)
	if err != nil || len(seen) != 2 || seen[0].Role != "role:chained" || seen[1].Role != "role:in" {
		t.Errorf("%v, %v", seen, err)
	}
	if seen, err = w.Groupings(t.Context(), alice, tenant); err != nil || len(seen) != 6 {
		t.Errorf("%v, %v", seen, err)
	}
	w.refused(second(w.Groupings(t.Context(), w.caller("res"), tenant)), 403, "forbidden")
	empty := model.Grouping{User: "someone", Role: "role:empty"}
	w.refused(w.RemoveGrouping(t.Context(), ns, tenant, empty), 403, "forbidden")
	w.refused(w.RemoveGrouping(t.Context(), ns, tenant, model.Grouping{User: "bob", Role: "role:chained"}), 403, "forbidden")
	w.must(w.RemoveGrouping(t.Context(), alice, tenant, empty))
	w.must(w.RemoveGrouping(t.Context(), ns, tenant, model.Grouping{User: "bob", Role: "role:in"}))
	var missing *store.NotFoundError
	if err := w.RemoveGrouping(t.Context(), ns, tenant, model.Grouping{User: "bob", Role: "role:in"}); !errors.As(err, &missing) {
		t.Error(err)
	}
}

func TestIssuerAdministration(t *testing.T) {
	w := newWorld(t, nil)
	w.boot("@res ns.manage namespace:t1/*", "role:root tenant.manage tenant:t1", "role:root tenant.manage cluster:*")
	w.must(w.store.AddGrouping(t.Context(), tenant, model.Grouping{User: w.principal("root"), Role: "role:root"}))
	alice, root := w.caller("alice"), w.caller("root")
	text := func(s string) *string { return &s }
	fresh := model.IdpIssuer{Issuer: "https://idp.example", Audiences: []string{"a", "b"}}
	put := func(c *auth.Caller, change func(*model.IdpIssuer)) error {
		i := fresh
		change(&i)
		return w.PutIssuer(t.Context(), c, tenant, i)
	}
	w.refused(put(w.caller("res"), func(*model.IdpIssuer) {}), 403, "forbidden")
	w.refused(w.PutIssuer(t.Context(), alice, "t2", fresh), 403, "forbidden")
	w.refused(put(alice, func(i *model.IdpIssuer) { i.Issuer = "https://idp.example/#" }), 400, "validation_error")
	w.must(put(alice, func(*model.IdpIssuer) {}))
	w.must(put(alice, func(i *model.IdpIssuer) { i.ClaimMappings.SubjectClaim = "sub" })) // the usual one, spelled out
	for name, change := range map[string]func(*model.IdpIssuer){
		"keys":     func(i *model.IdpIssuer) { i.JWKSURL = text("https://evil.example/keys") },
		"document": func(i *model.IdpIssuer) { i.DiscoveryURL = text("https://evil.example/document") },
		"subject":  func(i *model.IdpIssuer) { i.ClaimMappings.SubjectClaim = "nickname" },
		"groups":   func(i *model.IdpIssuer) { i.ClaimMappings.GroupsClaim = text("hobbies") },
		"audience": func(i *model.IdpIssuer) { i.Audiences = []string{"a", "evil"} },
	} {
		t.Run(name, func(t *testing.T) {
			w.refused(put(alice, change), 403, "forbidden")
			w.must(put(root, change))
			w.must(put(root, func(*model.IdpIssuer) {}))
		})
	}
	w.must(put(alice, func(i *model.IdpIssuer) { i.Audiences = []string{"b"} }))
	w.refused(w.DeleteIssuer(t.Context(), alice, tenant, fresh.Issuer), 403, "forbidden")
	w.refused(w.DeleteIssuer(t.Context(), root, tenant, "a\x00"), 404, "not_found")
	w.must(w.DeleteIssuer(t.Context(), root, tenant, fresh.Issuer))
	var missing *store.NotFoundError
	if err := w.DeleteIssuer(t.Context(), root, tenant, fresh.Issuer); !errors.As(err, &missing) {
		t.Error(err)
	}
	for i := range 63 {
		w.must(put(alice, func(n *model.IdpIssuer) { n.Issuer += "/" + strings.Repeat("x", i+1) }))
	}
	w.refused(put(alice, func(n *model.IdpIssuer) { n.Issuer += "/one-more" }), 409, "conflict")
	w.must(put(alice, func(n *model.IdpIssuer) { n.Issuer += "/x" }))
}
