package api_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"

	"github.com/felixlog/felix/controlplane"
	"github.com/felixlog/felix/felixtest/idp"
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
