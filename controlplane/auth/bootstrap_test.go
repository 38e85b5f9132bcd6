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

func (w *world) bootRequest() auth.BootstrapRequest {
	return auth.BootstrapRequest{
		DisplayName: "Tenant", IdpIssuers: []model.IdpIssuer{w.issuer()}, InitialAdminPrincipals: []string{w.principal("alice")},
	}
}

func TestBootstrap(t *testing.T) {
	w := newWorld(t, nil)
	r := w.bootRequest()
	r.Policies = []model.Policy{
		w.rule("role:operator tenant.manage cluster:*"), w.rule("role:operator node.view cluster:*"), w.rule("role:operator node.manage cluster:*"),
		w.rule("broker-1 node.manage node:broker-1"),
	}
	r.Groupings = []model.Grouping{{User: w.principal("alice"), Role: "role:operator"}, {User: w.principal("alice"), Role: auth.AdminRole}}
	answer, err := w.Bootstrap(t.Context(), "größe", oldSecret, r)
	w.must(err)
	if answer.TenantID != "größe" || answer.Status != "initialized" || answer.JWKSURL != "/v1/tenants/gr%C3%B6%C3%9Fe/.well-known/jwks.json" {
		t.Errorf("%+v", answer)
	}
	set, err := w.JWKS(t.Context(), "größe")
	if err != nil || len(set.Keys) != 1 || set.Keys[0].KeyID != answer.KID {
		t.Errorf("%+v, %v", set, err)
	}
	exchanged, err := w.Exchange(t.Context(), "größe", w.upstream("alice"), auth.ExchangeRequest{Audience: control})
	w.must(err)
	w.said.secret(exchanged.FelixToken, exchanged.RefreshToken)
	alice, err := w.Authenticate(t.Context(), "Bearer "+exchanged.FelixToken, "")
	w.must(err)
	for a, o := range map[rbac.Action]rbac.Object{
		rbac.TenantManage: rbac.Tenant("größe"), rbac.RBACView: rbac.Tenant("größe"), rbac.RBACPolicyManage: rbac.Tenant("größe"),
		rbac.RBACAssignmentManage: rbac.Tenant("größe"), rbac.NamespaceManage: rbac.Namespace("größe", rbac.Any),
		rbac.NodeView: rbac.Cluster(), rbac.NodeManage: rbac.Cluster(),
	} {
		if !alice.May(a, o) {
			t.Errorf("the administrator may not %v over %v", a, o)
		}
	}
	groupings, err := w.store.Groupings(t.Context(), "größe")
	if err != nil || len(groupings) != 2 {
		t.Errorf("%v, %v", groupings, err)
	}
	_, err = w.Bootstrap(t.Context(), "größe", bootSecret, r)
	w.refused(err, 409, "already_initialized")
	if w.counted("bootstrap initialized ok") != 1 || w.counted("bootstrap refused already_initialized") != 1 {
		t.Errorf("%v", w.counts)
	}
}

func TestBootstrapRefuses(t *testing.T) {
	w := newWorld(t, nil)
	for name, test := range map[string]struct {
		token  string
		reason string
	}{
		"none": {"", "missing_token"}, "wrong": {"guess", "invalid_token"}, "long": {strings.Repeat("x", 5000), "malformed_token"},
		"prefix": {bootSecret[:20], "invalid_token"}, "longer": {bootSecret + "x", "invalid_token"},
	} {
		before := w.counted("bootstrap rejected " + test.reason)
		w.refused(second(w.Bootstrap(t.Context(), tenant, test.token, w.bootRequest())), 401, "unauthorized")
		w.refused(second(w.DevToken(t.Context(), tenant, test.token, auth.DevTokenRequest{})), 401, "unauthorized")
		if w.counted("bootstrap rejected "+test.reason) != before+2 {
			t.Errorf("%s: not counted", name)
		}
	}
	for name, change := range map[string]func(*auth.BootstrapRequest){
		"no display name":     func(r *auth.BootstrapRequest) { r.DisplayName = "" },
		"blank display name":  func(r *auth.BootstrapRequest) { r.DisplayName = " " },
		"odd display name":    func(r *auth.BootstrapRequest) { r.DisplayName = "a\x00" },
		"no principals":       func(r *auth.BootstrapRequest) { r.InitialAdminPrincipals = nil },
		"blank principal":     func(r *auth.BootstrapRequest) { r.InitialAdminPrincipals = []string{"x", " "} },
		"too many principals": func(r *auth.BootstrapRequest) { r.InitialAdminPrincipals = make([]string, 1001) },
		"blank issuer":        func(r *auth.BootstrapRequest) { r.IdpIssuers = append(r.IdpIssuers, model.IdpIssuer{}) },
		"issuer with a pipe":  func(r *auth.BootstrapRequest) { r.IdpIssuers[0].Issuer += "|x" },
		"issuer twice":        func(r *auth.BootstrapRequest) { r.IdpIssuers = append(r.IdpIssuers, r.IdpIssuers[0]) },
		"policy without subject": func(r *auth.BootstrapRequest) {
			r.Policies = []model.Policy{{Action: "node.view", Object: "cluster:*"}}
		},
		"policy without sense":    func(r *auth.BootstrapRequest) { r.Policies = []model.Policy{w.rule("x node.view node:a")} },
		"policy of other tenant":  func(r *auth.BootstrapRequest) { r.Policies = []model.Policy{w.rule("x stream.publish stream:t2/n/s")} },
		"policy of 16.4":          func(r *auth.BootstrapRequest) { r.Policies = []model.Policy{w.rule("x tenant.manage namespace:t1/n")} },
		"unknown action":          func(r *auth.BootstrapRequest) { r.Policies = []model.Policy{w.rule("x stream.paint stream:t1/n/s")} },
		"grouping without a role": func(r *auth.BootstrapRequest) { r.Groupings = []model.Grouping{{User: "x"}} },
	} {
		r := w.bootRequest()
		change(&r)
		if got := w.refused(second(w.Bootstrap(t.Context(), tenant, bootSecret, r)), 400, "validation_error"); strings.Contains(got.Message, "%!") {
			t.Errorf("%s: %s", name, got.Message)
		}
	}
	for _, name := range []string{"", "a/b", "a:b", "*", strings.Repeat("x", 3000)} {
		w.refused(second(w.Bootstrap(t.Context(), name, bootSecret, w.bootRequest())), 400, "validation_error")
	}
	if tenants, err := w.store.Tenants(t.Context()); err != nil || len(tenants) != 0 {
		t.Errorf("a refused bootstrap left %v, %v", tenants, err)
	}
	w.options.Bootstrap = auth.BootstrapOptions{Token: bootSecret}
	off := w.another()
	w.refused(second(off.Bootstrap(t.Context(), tenant, bootSecret, w.bootRequest())), 404, "not_enabled")
	w.refused(second(off.DevToken(t.Context(), tenant, bootSecret, auth.DevTokenRequest{})), 404, "not_enabled")
	w.options.Bootstrap.Enabled = true
	w.refused(second(w.another().DevToken(t.Context(), tenant, bootSecret, auth.DevTokenRequest{})), 404, "not_enabled")
	for name, o := range map[string]auth.BootstrapOptions{
		"without a token": {Enabled: true}, "previous alone": {PreviousToken: "x"}, "development alone": {DevTokens: true},
	} {
		w.options.Bootstrap = o
		if _, err := auth.New(w.options); err == nil {
			t.Errorf("%s starts", name)
		}
	}
}

// TestBootstrapAgain: what failed leaves nothing and can be repeated, and a
// tenant that is there keeps its key.
func TestBootstrapAgain(t *testing.T) {
	var failing *countingStore
	w := newWorld(t, func(o *auth.Options) {
		failing = &countingStore{Store: o.Store}
		failing.failBootstrap.Store(true)
		o.Store = failing
	})
	_, err := w.Bootstrap(t.Context(), tenant, bootSecret, w.bootRequest())
	var unavailable *store.UnavailableError
	if !errors.As(err, &unavailable) || w.counted("bootstrap refused error") != 1 {
		t.Fatalf("%v, %v", err, w.counts)
	}
	if tenants, err := w.store.Tenants(t.Context()); err != nil || len(tenants) != 0 {
		t.Fatalf("%v, %v", tenants, err)
	}
	w.must(w.CreateTenant(t.Context(), model.Tenant{TenantID: tenant}))
	view, err := w.KeyView(t.Context(), tenant)
	w.must(err)
	answer, err := w.Bootstrap(t.Context(), tenant, bootSecret, w.bootRequest())
	w.must(err)
	if answer.KID != view.Current {
		t.Error("the tenant's key was replaced")
	}
	w.exchange("alice", auth.ExchangeRequest{})
}

func TestDevToken(t *testing.T) {
	w := newWorld(t, nil)
	w.must(w.store.CreateTenant(t.Context(), model.Tenant{TenantID: tenant}))
	answer, err := w.DevToken(t.Context(), tenant, bootSecret, auth.DevTokenRequest{
		Permissions: []string{"stream.publish:stream:t1/*/*", "tenant.manage:tenant:t1"}, Audience: control, TTLSeconds: 3600})
	w.must(err)
	w.said.secret(answer.FelixToken)
	c := w.claims(answer.FelixToken, control)
	if answer.ExpiresIn != 3600 || answer.RefreshToken != "" || c.Subject != "dev" || len(c.Permissions) != 2 {
		t.Errorf("%+v", c)
	}
	answer, err = w.DevToken(t.Context(), tenant, oldSecret, auth.DevTokenRequest{Subject: "me", Permissions: []string{"cache.read:cache:t1/n/c"}})
	w.must(err)
	w.said.secret(answer.FelixToken)
	if c = w.claims(answer.FelixToken, broker); answer.ExpiresIn != 900 || c.Subject != "me" {
		t.Errorf("%+v", c)
	}
	for name, r := range map[string]auth.DevTokenRequest{
		"none":         {},
		"cluster":      {Permissions: []string{"node.view:cluster:*"}},
		"node":         {Permissions: []string{"node.manage:node:a"}},
		"other tenant": {Permissions: []string{"stream.publish:stream:t2/n/s"}},
		"no sense":     {Permissions: []string{"stream.publish:tenant:t1"}},
		"audience":     {Permissions: []string{"cache.read:cache:t1/n/c"}, Audience: "x"},
		"subject":      {Permissions: []string{"cache.read:cache:t1/n/c"}, Subject: "\n"},
		"too long":     {Permissions: []string{"cache.read:cache:t1/n/c"}, TTLSeconds: 86401},
	} {
		t.Run(name, func(t *testing.T) {
			w.refused(second(w.DevToken(t.Context(), tenant, bootSecret, r)), 400, "validation_error")
		})
	}
	_, err = w.DevToken(t.Context(), "t9", bootSecret, auth.DevTokenRequest{Permissions: []string{"cache.read:cache:t9/n/c"}})
	var missing *store.NotFoundError
	if !errors.As(err, &missing) {
		t.Error(err)
	}
}
