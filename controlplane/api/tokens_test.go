package api_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane"
	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/felixtest/idp"
	"github.com/felixlog/felix/internal/auth"
)

const bootstrapSecret = "a-long-shared-secret-of-the-tests"

func withBootstrap(o *controlplane.Options) {
	o.Bootstrap.Enabled = true
	o.Bootstrap.Token = seen.secret(bootstrapSecret)
}

func principal(p *idp.Provider, subject string) string {
	sum := sha256.Sum256([]byte(p.Issuer() + "|" + subject))
	return hex.EncodeToString(sum[:])
}

func issuerOf(p *idp.Provider) map[string]any {
	return map[string]any{"issuer": p.Issuer(), "audiences": []string{p.Audience()}}
}

// bootstrap initialises a tenant whose administrator is alice.
func (r *rig) bootstrap(tenant string, p *idp.Provider, more map[string]any) answer {
	r.t.Helper()
	body := map[string]any{
		"display_name": tenant, "idp_issuers": []any{issuerOf(p)}, "initial_admin_principals": []string{principal(p, "alice")},
	}
	for k, v := range more {
		body[k] = v
	}
	return r.boot(tenant+"/initialize", bootstrapSecret, body)
}

func (r *rig) boot(path, secret string, body any) answer {
	r.t.Helper()
	req, err := newRequest(r.t, "POST", "http://"+r.server.BootstrapAddr()+"/internal/bootstrap/tenants/"+path, body)
	if err != nil {
		r.t.Fatal(err)
	}
	if secret != "" {
		req.Header.Set("X-Felix-Bootstrap-Token", secret)
	}
	a, err := r.send(req)
	if err != nil {
		r.t.Fatal(err)
	}
	return a
}

type tokens struct {
	FelixToken   string `json:"felix_token"`
	RefreshToken string `json:"refresh_token"`
	ExpiresIn    int    `json:"expires_in"`
}

// exchange gives the tokens of a subject for the API.
func (r *rig) exchange(tenant string, p *idp.Provider, subject string) tokens {
	r.t.Helper()
	upstream := seen.secret(p.Token(idp.Claims{"sub": subject}))
	var got tokens
	r.ok(200, "POST", "/v1/tenants/"+tenant+"/token/exchange", upstream, `{"audience":"felix-controlplane"}`).into(r.t, &got)
	seen.secret(got.FelixToken)
	seen.secret(got.RefreshToken)
	return got
}

// Day 0: from nothing to a stream, with the secret of bootstrap, an identity
// provider and real tokens alone.
func TestFromNothingToAStream(t *testing.T) {
	r := newRig(t, withBootstrap)
	p := idp.Start(t)
	cluster := []map[string]string{}
	for _, action := range []string{"tenant.manage", "node.view", "node.manage"} {
		cluster = append(cluster, map[string]string{"subject": "role:operator", "object": "cluster:*", "action": action})
	}
	a := r.bootstrap("root", p, map[string]any{
		"policies": cluster, "groupings": []map[string]string{{"user": principal(p, "alice"), "role": "role:operator"}},
	})
	if a.status != 200 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	var boot struct {
		TenantID string `json:"tenant_id"`
		KID      string `json:"kid"`
		JWKSURL  string `json:"jwks_url"`
		Status   string
	}
	if a.into(t, &boot); boot.TenantID != "root" || boot.Status != "initialized" || boot.KID == "" {
		t.Fatalf("%+v", boot)
	}
	r.ok(200, "GET", "/v1/tenants/root/.well-known/jwks.json", "", nil)
	if a := r.bootstrap("root", p, nil); a.status != 409 || a.failure(t).Code != "already_initialized" {
		t.Fatalf("again: %d %s", a.status, a.body)
	}
	alice := r.exchange("root", p, "alice")
	r.ok(201, "POST", "/v1/tenants", alice.FelixToken, map[string]string{"tenant_id": "t1", "display_name": "T"})
	r.ok(201, "POST", "/v1/tenants/root/namespaces", alice.FelixToken, map[string]string{"namespace": "ns", "display_name": ""})
	r.ok(201, "POST", "/v1/tenants/root/namespaces/ns/streams", alice.FelixToken, streamBody("s", nil))
	// Bob is nobody.
	r.want(403, "forbidden", "POST", "/v1/tenants/root/token/exchange", seen.secret(p.Token(idp.Claims{"sub": "bob"})), nil)
	// The next token of the session; a spent one ends it.
	var next tokens
	r.ok(200, "POST", "/v1/tenants/root/token/refresh", "", map[string]string{"refresh_token": alice.RefreshToken}).into(t, &next)
	seen.secret(next.FelixToken)
	seen.secret(next.RefreshToken)
	r.ok(200, "GET", "/v1/tenants", next.FelixToken, nil)
	r.want(403, "forbidden", "POST", "/v1/tenants/root/token/refresh", "", map[string]string{"refresh_token": alice.RefreshToken})
	r.want(403, "forbidden", "POST", "/v1/tenants/root/token/refresh", "", map[string]string{"refresh_token": next.RefreshToken})
	if got := r.metric("felix_refresh_token_replays_total "); got != "1" {
		t.Errorf("replays counted: %s", got)
	}
	// A tenant that a route made is keyed and has no issuers yet.
	r.want(403, "forbidden", "POST", "/v1/tenants/t1/token/exchange", seen.secret(p.Token(idp.Claims{"sub": "alice"})), nil)
}

func TestBootstrapRefusals(t *testing.T) {
	r := newRig(t, withBootstrap)
	p := idp.Start(t)
	for secret, status := range map[string]int{"": 401, "wrong": 401, bootstrapSecret + "x": 401} {
		if a := r.boot("t1/initialize", secret, map[string]any{"display_name": "x", "idp_issuers": []any{}, "initial_admin_principals": []string{"p"}}); a.status != status {
			t.Errorf("secret %d characters long: %d %s", len(secret), a.status, a.body)
		}
	}
	for field, bad := range map[string]any{"display_name": " ", "initial_admin_principals": []string{}, "idp_issuers": []any{map[string]any{"issuer": " ", "audiences": []string{"a"}}}, "policies": []any{map[string]string{"subject": "s", "object": "cluster", "action": "node.view"}}} {
		if a := r.bootstrap("t1", p, map[string]any{field: bad}); a.status != 400 || a.failure(t).Code != "validation_error" {
			t.Errorf("%s: %d %s", field, a.status, a.body)
		}
	}
	if a := r.boot("t1/dev-token", bootstrapSecret, `{"permissions":[]}`); a.status != 404 || a.failure(t).Code != "not_enabled" {
		t.Errorf("dev token: %d %s", a.status, a.body)
	}
	// These routes are on their own listener, and it has no others.
	r.want(404, "not_found", "POST", "/internal/bootstrap/tenants/t1/initialize", "", `{}`)
	req, _ := newRequest(t, "GET", "http://"+r.server.BootstrapAddr()+"/v1/system/info", nil)
	if a, err := r.send(req); err != nil || a.status != 404 {
		t.Errorf("%v %d", err, a.status)
	}
}

func TestDevTokens(t *testing.T) {
	r := newRig(t, withBootstrap, func(o *controlplane.Options) { o.Bootstrap.DevTokens = true })
	r.tenant("t1")
	a := r.boot("t1/dev-token", bootstrapSecret, `{"permissions":["ns.manage:namespace:t1/*"],"audience":"felix-controlplane"}`)
	var got tokens
	if a.into(t, &got); a.status != 200 || got.FelixToken == "" {
		t.Fatalf("%d", a.status)
	}
	seen.secret(got.FelixToken)
	r.ok(200, "GET", "/v1/tenants/t1/namespaces", got.FelixToken, nil)
}

// Who is not let in does not learn what exists.
func TestProbing(t *testing.T) {
	r := newRig(t)
	r.namespace("t1")
	now := time.Now()
	claims := auth.Claims{
		Tenant: "t1", Subject: "s", Permissions: []string{"tenant.manage:tenant:t1", "ns.manage:namespace:t1/*"}, Audience: auth.AudienceControlPlane,
		IssuedAt: now, Expires: now.Add(time.Hour),
	}
	change := func(f func(*auth.Claims)) string {
		c := claims
		f(&c)
		return r.mint(c)
	}
	good := r.mint(claims)
	header, rest, _ := strings.Cut(good, ".")
	for name, token := range map[string]string{
		"none": "", "no JWT": "abc", "two parts": "a.b", "no signature": header + "." + strings.Split(rest, ".")[0] + ".",
		"signed by none": "eyJhbGciOiJub25lIn0." + strings.Split(rest, ".")[0] + ".", "expired": change(func(c *auth.Claims) { c.IssuedAt, c.Expires = now.Add(-2*time.Hour), now.Add(-time.Hour) }),
		"for brokers": change(func(c *auth.Claims) { c.Audience = auth.AudienceBroker }),
	} {
		for _, path := range []string{"/v1/tenants/t1/namespaces", "/v1/tenants/nowhere/namespaces", "/v1/tenants", "/v1/nodes/n1", "/v1/tenants/t1/namespaces/ns/streams/s", "/v1/tenants/nowhere/rbac/policies"} {
			a := r.do("GET", path, token, nil)
			if a.status != 401 {
				t.Errorf("%s: %s: %d %s", name, path, a.status, a.body)
			}
		}
	}
	// A good token of one tenant says nothing about another, there or not.
	for _, path := range []string{"/v1/tenants/ops/namespaces", "/v1/tenants/nowhere/namespaces"} {
		if a := r.do("GET", path, good, nil); a.status != 401 && a.status != 403 {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	for _, prefix := range []string{"bearer ", "Basic ", "", "Bearer"} {
		req, _ := newRequest(t, "GET", r.base+"/v1/tenants/t1/namespaces", nil)
		req.Header.Set("Authorization", prefix+good)
		if a, err := r.send(req); err != nil || a.status != 401 {
			t.Errorf("prefix %q: %d %v", prefix, a.status, err)
		}
	}
	if r.metric(`felix_controlplane_auth_rejected_total{reason="missing_token"}`) == "" {
		t.Error("refusals are not counted")
	}
}

func newRequest(t *testing.T, method, target string, body any) (*http.Request, error) {
	t.Helper()
	var text string
	switch b := body.(type) {
	case nil:
	case string:
		text = b
	default:
		text = marshal(t, b)
	}
	return http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(text))
}

func TestIssuers(t *testing.T) {
	r := newRig(t)
	r.tenant("t1")
	p := idp.Start(t)
	admin := r.admin("t1")
	const base = "/v1/tenants/t1/idp-issuers"
	r.want(400, "validation_error", "POST", base, admin, `{"audiences":["a"]}`)
	r.want(403, "forbidden", "POST", base, r.token("t1", "ns.manage:namespace:t1/*"), issuerOf(p))
	r.ok(204, "POST", base, admin, issuerOf(p))
	stored, err := r.store.Issuers(t.Context(), "t1")
	if err != nil || len(stored) != 1 || stored[0].ClaimMappings.SubjectClaim != "sub" {
		t.Fatalf("%+v %v", stored, err)
	}
	one := base + "/" + url.PathEscape(p.Issuer())
	r.want(403, "forbidden", "DELETE", one, admin, nil) // needs the cluster as well
	both := r.token("t1", "tenant.manage:tenant:t1", "tenant.manage:cluster:*")
	r.want(404, "not_found", "DELETE", base+"/https%3A%2F%2Fnowhere", both, nil)
	r.ok(204, "DELETE", one, both, nil)
	r.want(404, "not_found", "DELETE", one, both, nil)
}

func TestRules(t *testing.T) {
	r := newRig(t)
	r.namespace("t1")
	admin := r.admin("t1")
	const policies, groupings = "/v1/tenants/t1/rbac/policies", "/v1/tenants/t1/rbac/groupings"
	rule := func(subject, object, action string) map[string]string {
		return map[string]string{"subject": subject, "object": object, "action": action}
	}
	for i := range 5 {
		r.ok(204, "POST", policies, admin, rule(fmt.Sprintf("role:r%d", i), "stream:t1/ns/*", "stream.publish"))
	}
	r.want(400, "validation_error", "POST", policies, admin, rule("role:r", "stream:t1/ns", "stream.publish"))
	r.want(400, "validation_error", "POST", policies, admin, rule("role:r", "stream:t1/ns/*", "fly"))
	// The pair that would let the admin of a namespace have the tenant.
	r.want(400, "validation_error", "POST", policies, admin, rule("role:r", "namespace:t1/ns", "tenant.manage"))
	some := r.token("t1", "rbac.view:namespace:t1/other", "rbac.policy.manage:namespace:t1/other")
	r.want(403, "forbidden", "POST", policies, some, rule("role:r", "stream:t1/ns/*", "stream.publish"))
	r.want(403, "forbidden", "POST", policies, admin, rule("role:r", "cluster:*", "node.view"))
	var bare []model.Policy
	if r.ok(200, "GET", policies, admin, nil).into(t, &bare); len(bare) != 5 {
		t.Fatalf("%+v", bare)
	}
	if a := r.ok(200, "GET", policies, some, nil); strings.TrimSpace(string(a.body)) != "[]" {
		t.Fatalf("%s", a.body)
	}
	var part struct {
		Items      []model.Policy
		NextCursor string `json:"next_cursor"`
	}
	if r.ok(200, "GET", policies+"?limit=3", admin, nil).into(t, &part); len(part.Items) != 3 || part.NextCursor == "" {
		t.Fatalf("%+v", part)
	}
	rest := part
	rest.NextCursor = ""
	if r.ok(200, "GET", policies+"?cursor="+part.NextCursor, admin, nil).into(t, &rest); len(rest.Items) != 2 || rest.NextCursor != "" {
		t.Fatalf("%+v", rest)
	}
	r.ok(204, "POST", groupings, admin, `{"user":"u","role":"role:r0"}`)
	r.want(403, "forbidden", "POST", groupings, admin, `{"user":"u","role":"role:none"}`)
	r.want(403, "forbidden", "POST", groupings, r.token("t1", "rbac.policy.manage:tenant:t1"), `{"user":"u","role":"role:r0"}`)
	if a := r.ok(200, "GET", groupings, admin, nil); strings.TrimSpace(string(a.body)) != `[{"user":"u","role":"role:r0"}]` {
		t.Fatalf("%s", a.body)
	}
	r.ok(204, "DELETE", groupings, admin, `{"user":"u","role":"role:r0"}`)
	r.want(404, "not_found", "DELETE", groupings, admin, `{"user":"u","role":"role:r0"}`)
	r.ok(204, "DELETE", policies, admin, rule("role:r0", "stream:t1/ns/*", "stream.publish"))
	r.want(404, "not_found", "DELETE", policies, admin, rule("role:r0", "stream:t1/ns/*", "stream.publish"))
	r.want(403, "forbidden", "GET", policies, r.token("t1", "tenant.manage:tenant:t1"), nil)
}

func TestSigningKeys(t *testing.T) {
	r := newRig(t)
	r.tenant("t1")
	admin := r.admin("t1")
	const base = "/v1/tenants/t1/signing-keys"
	type view struct {
		Current   string
		Verifying []string
	}
	var before, staged, active view
	r.ok(200, "GET", base, admin, nil).into(t, &before)
	if r.ok(201, "POST", base, admin, nil).into(t, &staged); staged.Current != before.Current || len(staged.Verifying) != 2 {
		t.Fatalf("%+v", staged)
	}
	fresh := staged.Verifying[1]
	r.want(404, "not_found", "POST", base+"/nokey/activate", admin, nil)
	if r.ok(200, "POST", base+"/"+fresh+"/activate", admin, nil).into(t, &active); active.Current != fresh {
		t.Fatalf("%+v", active)
	}
	r.want(409, "conflict", "DELETE", base+"/"+fresh, admin, nil)
	r.ok(200, "GET", base, admin, nil) // the key before still verifies
	r.ok(200, "DELETE", base+"/"+before.Current, admin, nil)
	r.want(403, "forbidden", "GET", base, r.token("ops", "tenant.manage:cluster:*"), nil)
}

func TestRevocation(t *testing.T) {
	r := newRig(t, withBootstrap)
	p := idp.Start(t)
	r.bootstrap("t1", p, nil)
	alice := r.exchange("t1", p, "alice")
	var got struct{ Revoked int }
	r.ok(200, "POST", "/v1/tenants/t1/refresh-tokens/revoke", alice.FelixToken, map[string]string{"principal_id": principal(p, "alice")}).into(t, &got)
	if got.Revoked != 1 {
		t.Fatalf("%+v", got)
	}
	r.want(403, "forbidden", "POST", "/v1/tenants/t1/token/refresh", "", map[string]string{"refresh_token": alice.RefreshToken})
	r.want(400, "validation_error", "POST", "/v1/tenants/t1/refresh-tokens/revoke", alice.FelixToken, `{}`)
	r.want(400, "validation_error", "POST", "/v1/tenants/t1/token/exchange", seen.secret(p.Token(idp.Claims{"sub": "alice"})), `{"audience":"felix-kitchen"}`)
}

// The routes that give tokens are bounded by address.
func TestTokenRoutesAreLimited(t *testing.T) {
	r := newRig(t, func(o *controlplane.Options) { o.TokenRate, o.TokenBurst = 0.001, 3 })
	for range 3 {
		r.want(403, "forbidden", "POST", "/v1/tenants/ops/token/refresh", "", `{"refresh_token":"a.b"}`)
	}
	a := r.want(429, "rate_limited", "POST", "/v1/tenants/ops/token/exchange", "x.y.z", nil)
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	r.ok(200, "GET", "/v1/tenants", r.operator(), nil)
}

// The typed client and the API agree on a whole life.
func TestTypedClient(t *testing.T) {
	r := newRig(t)
	r.tenant("t1")
	c, err := apiclient.New(apiclient.Options{URL: r.base})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	as := func(token string) *apiclient.Client { return c.WithToken(tokenSource(token)) }
	ns := model.NamespaceKey{TenantID: "t1", Namespace: "ns"}
	admin, op := as(r.admin("t1")), as(r.operator())
	if _, err := admin.CreateNamespace(ctx, model.Namespace{TenantID: "t1", Namespace: "ns"}); err != nil {
		t.Fatal(err)
	}
	made, err := admin.CreateStream(ctx, ns, apiclient.StreamSpec{
		Stream: "s", Kind: model.KindStream, Shards: 1, Consistency: model.Leader, Delivery: model.AtLeastOnce,
	})
	if err != nil || made.UID == "" {
		t.Fatalf("%+v %v", made, err)
	}
	if _, err := admin.Stream(ctx, model.StreamKey{TenantID: "t1", Namespace: "ns", Stream: "x"}); apiclient.CodeOf(err) != apiclient.CodeNotFound {
		t.Fatal(err)
	}
	if _, err := op.RegisterNode(ctx, apiclient.Registration{NodeID: "n1", AdvertiseAddr: "10.0.0.1:7000", Region: "local"}); err != nil {
		t.Fatal(err)
	}
	if list, err := op.Nodes(ctx, apiclient.NodeFilter{}); err != nil || len(list) != 1 {
		t.Fatalf("%+v %v", list, err)
	}
	if f, err := op.FleetFeatures(ctx); err != nil || len(f.ServingNodes) != 1 {
		t.Fatalf("%+v %v", f, err)
	}
	if snap, err := op.StreamsSnapshot(ctx); err != nil || len(snap.Items) != 1 {
		t.Fatalf("%+v %v", snap, err)
	}
}
