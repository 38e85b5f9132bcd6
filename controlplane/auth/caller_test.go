package auth_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/auth"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/rbac"
	"github.com/felixlog/felix/controlplane/store"
	token "github.com/felixlog/felix/internal/auth"
)

func TestAuthenticate(t *testing.T) {
	w := newWorld(t, nil)
	w.boot()
	answer := w.exchange("alice", auth.ExchangeRequest{Audience: control})
	for _, want := range []string{"", tenant} {
		c, err := w.Authenticate(t.Context(), "Bearer   "+answer.FelixToken+" ", want)
		if err != nil {
			t.Fatal(err)
		}
		if c.Tenant != tenant || c.Subject != w.principal("alice") || c.Audience != control || c.Actor != "" {
			t.Errorf("%+v", c)
		}
		if !c.May(rbac.TenantManage, rbac.Tenant(tenant)) || !c.May(rbac.StreamPublish, rbac.Stream(tenant, "n", "s")) {
			t.Error("the administrator lacks what was given")
		}
		if c.May(rbac.TenantManage, rbac.Cluster()) || c.May(rbac.TenantManage, rbac.Tenant("t2")) || c.May(rbac.NodeView, rbac.Cluster()) {
			t.Error("the administrator has what was not given")
		}
		if got := c.Scopes(rbac.RBACView); len(got) != 1 || got[0] != rbac.Tenant(tenant) {
			t.Errorf("scopes %v", got)
		}
		if w.Require(t.Context(), c, rbac.TenantManage, rbac.Tenant(tenant)) != nil {
			t.Error("refused what the caller may do")
		}
		w.refused(w.Require(t.Context(), c, rbac.TenantManage, rbac.Cluster()), 403, "forbidden")
	}
	if got := w.counted("rejected forbidden"); got != 2 {
		t.Errorf("%d refusals counted, want 2", got)
	}
}

// TestAuthenticateRefuses is acceptance test 25.9 for the API.
func TestAuthenticateRefuses(t *testing.T) {
	w := newWorld(t, nil)
	w.boot()
	now := w.clock.Now()
	_, foreign, _ := ed25519.GenerateKey(nil)
	stranger, err := token.NewSigner("", foreign).Mint(token.Claims{
		Tenant: tenant, Subject: "x", Audience: control, IssuedAt: now, Expires: now.Add(time.Minute)})
	w.must(err)
	elsewhere, err := token.NewSigner("", foreign).Mint(token.Claims{
		Tenant: "nowhere", Subject: "x", Audience: control, IssuedAt: now, Expires: now.Add(time.Minute)})
	w.must(err)
	good := w.mint(token.Claims{Audience: control})
	head, rest, _ := strings.Cut(good, ".")
	for name, test := range map[string]struct {
		header string
		tenant string
		status int
		code   string
		reason auth.Reason
	}{
		"nothing":           {"", "", 401, "unauthorized", auth.ReasonMissingToken},
		"no token":          {"Bearer ", "", 401, "unauthorized", auth.ReasonMissingToken},
		"blank token":       {"Bearer    ", "", 401, "unauthorized", auth.ReasonMissingToken},
		"lower case":        {"bearer " + good, "", 401, "unauthorized", auth.ReasonMissingToken},
		"basic":             {"Basic " + good, "", 401, "unauthorized", auth.ReasonMissingToken},
		"no scheme":         {good, "", 401, "unauthorized", auth.ReasonMissingToken},
		"no JWT":            {"Bearer hello", "", 401, "unauthorized", auth.ReasonMalformedToken},
		"no head":           {"Bearer ." + rest, "", 401, "unauthorized", auth.ReasonMalformedToken},
		"huge":              {"Bearer " + good + strings.Repeat("A", 1<<17), "", 401, "unauthorized", auth.ReasonMalformedToken},
		"no signature":      {"Bearer " + head + "." + strings.Split(rest, ".")[0] + ".", "", 401, "unauthorized", auth.ReasonInvalidToken},
		"upstream token":    {"Bearer " + w.upstream("alice"), "", 401, "unauthorized", auth.ReasonMalformedToken},
		"stranger's key":    {"Bearer " + stranger, "", 401, "unauthorized", auth.ReasonInvalidToken},
		"unknown tenant":    {"Bearer " + elsewhere, "", 401, "unauthorized", auth.ReasonInvalidToken},
		"broker's audience": {"Bearer " + w.mint(token.Claims{Audience: broker}), "", 401, "unauthorized", auth.ReasonInvalidToken},
		"expired":           {"Bearer " + w.mint(token.Claims{Audience: control, IssuedAt: now.Add(-time.Hour), Expires: now.Add(-6 * time.Second)}), "", 401, "unauthorized", auth.ReasonInvalidToken},
		"other tenant":      {"Bearer " + good, "t2", 403, "forbidden", auth.ReasonTenantMismatch},
	} {
		t.Run(name, func(t *testing.T) {
			before := w.counted("rejected " + string(test.reason))
			_, err := w.Authenticate(t.Context(), test.header, test.tenant)
			if r := w.refused(err, test.status, test.code); r.Reason != test.reason {
				t.Errorf("reason %s, want %s", r.Reason, test.reason)
			}
			if w.counted("rejected "+string(test.reason)) != before+1 {
				t.Error("not counted")
			}
		})
	}
	skewed := w.mint(token.Claims{Audience: control, IssuedAt: now.Add(-time.Hour), Expires: now.Add(-5 * time.Second)})
	if _, err := w.Authenticate(t.Context(), "Bearer "+skewed, ""); err != nil {
		t.Errorf("expired within the skew: %v", err)
	}
	// A stranger learns nothing about which tenants there are.
	_, known := w.Authenticate(t.Context(), "Bearer "+stranger, "")
	_, unknown := w.Authenticate(t.Context(), "Bearer "+elsewhere, "")
	if known.Error() != unknown.Error() {
		t.Errorf("%q and %q tell a tenant that exists", known, unknown)
	}
	if log := w.said.text.String(); strings.Count(log, "credential refused") < 16 || !strings.Contains(log, "reason=tenant_mismatch") {
		t.Error("refusals are not in the log")
	}
}

func TestAcceptBrokerAudience(t *testing.T) {
	w := newWorld(t, func(o *auth.Options) { o.AcceptBrokerAudience = true })
	w.boot()
	answer := w.exchange("alice", auth.ExchangeRequest{})
	c, err := w.Authenticate(t.Context(), "Bearer "+answer.FelixToken, tenant)
	if err != nil || c.Audience != broker {
		t.Fatalf("%+v, %v", c, err)
	}
	w.refused(second(w.Delegate(t.Context(), c, auth.DelegateRequest{})), 403, "forbidden")
}

func second[T any](_ T, err error) error { return err }

// TestPermissionsAreNotTrusted: what a token of ours should not hold counts for
// nothing.
func TestPermissionsAreNotTrusted(t *testing.T) {
	w := newWorld(t, nil)
	w.boot()
	signed := w.mint(token.Claims{Audience: control, Permissions: []string{
		"stream.publish:stream:t2/n/s", "tenant.manage:tenant:t2", "tenant.manage:namespace:t1/n", "stream.publish:stream:t1/*/s",
		"node.manage:node:*", "stream.publish:stream:t1/n/s", "node.view:cluster:*",
	}})
	c, err := w.Authenticate(t.Context(), "Bearer "+signed, "")
	if err != nil {
		t.Fatal(err)
	}
	for a, o := range map[rbac.Action]rbac.Object{
		rbac.TenantManage: rbac.Tenant("t2"), rbac.NodeManage: rbac.Node("n"), rbac.NamespaceManage: rbac.Namespace(tenant, "n"),
	} {
		if c.May(a, o) {
			t.Errorf("%v over %v was believed", a, o)
		}
	}
	if !c.May(rbac.StreamPublish, rbac.Stream(tenant, "n", "s")) || !c.May(rbac.NodeView, rbac.Cluster()) ||
		c.May(rbac.StreamPublish, rbac.Stream("t2", "n", "s")) || len(c.Scopes(rbac.StreamPublish)) != 1 {
		t.Error("good permissions are not what they should be")
	}
}

func TestCannotVerify(t *testing.T) {
	ready := errors.New("the log is being read")
	w := newWorld(t, func(o *auth.Options) { o.Ready = func(context.Context) error { return ready } })
	_, foreign, _ := ed25519.GenerateKey(nil)
	signed, err := token.NewSigner("", foreign).Mint(token.Claims{
		Tenant: tenant, Subject: "x", Audience: control, IssuedAt: w.clock.Now(), Expires: w.clock.Now().Add(time.Minute)})
	w.must(err)
	refresh := strings.Repeat("ab", 32) + "." + strings.Repeat("cd", 32)
	each := func(status int, code string, calls map[string]func() error) {
		t.Helper()
		for name, call := range calls {
			t.Run(name, func(t *testing.T) { w.refused(call(), status, code) })
		}
	}
	calls := map[string]func() error{
		"authenticate": func() error { return second(w.Authenticate(t.Context(), "Bearer "+signed, "")) },
		"exchange": func() error {
			return second(w.Exchange(t.Context(), tenant, w.upstream("alice"), auth.ExchangeRequest{}))
		},
		"refresh": func() error {
			return second(w.Refresh(t.Context(), tenant, auth.RefreshRequest{RefreshToken: refresh}))
		},
		"jwks": func() error { return second(w.JWKS(t.Context(), tenant)) },
	}
	each(503, "cannot_verify", calls)
	if got := w.counted("rejected cannot_verify"); got != 4 {
		t.Errorf("%d counted, want 4", got)
	}
	w.must(w.store.CreateTenant(t.Context(), model.Tenant{TenantID: tenant}))
	each(503, "cannot_verify", map[string]func() error{"exchange without issuers": calls["exchange"]})
	// With the keys here, readiness is not asked.
	w.must(w.EnsureKey(t.Context(), tenant))
	each(401, "unauthorized", map[string]func() error{"authenticate with keys": calls["authenticate"]})
	ready = nil
	each(403, "forbidden", map[string]func() error{"exchange when ready": calls["exchange"], "refresh when ready": calls["refresh"]})
}

// TestStoreErrorsAreThemselves: a store that fails is no verdict on a token.
func TestStoreErrorsAreThemselves(t *testing.T) {
	w := newWorld(t, nil)
	w.boot()
	signed := w.mint(token.Claims{Audience: control})
	w.must(w.store.Close())
	s := w.another()
	for name, err := range map[string]error{
		"authenticate": second(s.Authenticate(t.Context(), "Bearer "+signed, "")),
		"exchange":     second(s.Exchange(t.Context(), tenant, w.upstream("alice"), auth.ExchangeRequest{})),
		"jwks":         second(s.JWKS(t.Context(), tenant)),
	} {
		var r *auth.Refusal
		if !errors.Is(err, store.ErrClosed) || errors.As(err, &r) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
