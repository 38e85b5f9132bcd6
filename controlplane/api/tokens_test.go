package api_test

import (
	"testing"

	"github.com/felixlog/felix/controlplane"
	"github.com/felixlog/felix/felixtest/idp"
)

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
