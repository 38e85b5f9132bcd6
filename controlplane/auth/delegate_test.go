package auth_test

import (
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/auth"
	token "github.com/felixlog/felix/internal/auth"
)

func TestDelegate(t *testing.T) {
	w := newWorld(t, nil)
	w.boot("@bob stream.publish stream:t1/n/*", "@bob cache.read cache:t1/n/c", "@gw token.delegate tenant:t1", "@gw2 token.delegate tenant:t1",
		"@carol stream.publish stream:t1/n/s")
	gwToken := w.exchange("gw", auth.ExchangeRequest{Audience: control}).FelixToken
	gw, gw2, carol := w.caller("gw"), w.caller("gw2"), w.caller("carol")
	bound := w.exchange("bob", auth.ExchangeRequest{ActorToken: gwToken})
	unbound := w.exchange("bob", auth.ExchangeRequest{})
	request := func(subject string, perms ...string) auth.DelegateRequest {
		return auth.DelegateRequest{
			GrantType: "urn:ietf:params:oauth:grant-type:token-exchange", SubjectToken: subject,
			SubjectTokenType: "urn:ietf:params:oauth:token-type:jwt", Permissions: perms,
		}
	}
	w.clock.Advance(10 * time.Minute)
	answer, err := w.Delegate(t.Context(), gw, request(bound.FelixToken))
	w.must(err)
	w.said.secret(answer.AccessToken)
	user, got := w.claims(bound.FelixToken, broker), w.claims(answer.AccessToken, broker)
	if got.Subject != user.Subject || got.Actor != gw.Subject || got.MayAct != "" || !got.Expires.Equal(user.Expires) ||
		!same(got.Permissions, user.Permissions) || answer.ExpiresIn != 300 || answer.TokenType != "Bearer" ||
		answer.IssuedTokenType != "urn:ietf:params:oauth:token-type:jwt" {
		t.Errorf("%+v", got)
	}
	if user.MayAct != gw.Subject {
		t.Error("the exchange did not name the gateway")
	}
	narrow, err := w.Delegate(t.Context(), gw, request(bound.FelixToken, "stream.publish:stream:t1/n/s", "cache.write:cache:t1/n/c", "bad", "stream.publish:tenant:t1"))
	w.must(err)
	w.said.secret(narrow.AccessToken)
	if perms := w.claims(narrow.AccessToken, broker).Permissions; !same(perms, []string{"stream.publish:stream:t1/n/s"}) {
		t.Errorf("%v", perms)
	}
	// The gateway stays named over refreshes.
	again, err := w.Refresh(t.Context(), tenant, auth.RefreshRequest{RefreshToken: bound.RefreshToken})
	w.must(err)
	w.said.secret(again.FelixToken, again.RefreshToken)
	if _, err := w.Delegate(t.Context(), gw, request(again.FelixToken)); err != nil {
		t.Error(err)
	}
	if got := w.counted("delegated"); got != 3 {
		t.Errorf("%d counted, want 3", got)
	}
	bad := func(change func(*auth.DelegateRequest)) auth.DelegateRequest {
		r := request(bound.FelixToken)
		change(&r)
		return r
	}
	for name, test := range map[string]struct {
		caller  *auth.Caller
		request auth.DelegateRequest
		status  int
		code    string
	}{
		"without token.delegate": {carol, request(bound.FelixToken), 403, "forbidden"},
		"of another gateway":     {gw2, request(bound.FelixToken), 403, "forbidden"},
		"of no gateway":          {gw, request(unbound.FelixToken), 403, "forbidden"},
		"delegated already":      {gw, request(answer.AccessToken), 403, "forbidden"},
		"nothing left":           {gw, request(bound.FelixToken, "cache.write:cache:t1/n/c"), 403, "forbidden"},
		"for the control plane":  {gw, request(gwToken), 400, "validation_error"},
		"no token":               {gw, bad(func(r *auth.DelegateRequest) { r.SubjectToken = "" }), 400, "validation_error"},
		"not a token":            {gw, bad(func(r *auth.DelegateRequest) { r.SubjectToken = "x" }), 400, "validation_error"},
		"grant type":             {gw, bad(func(r *auth.DelegateRequest) { r.GrantType = "password" }), 400, "validation_error"},
		"token type":             {gw, bad(func(r *auth.DelegateRequest) { r.SubjectTokenType = "saml" }), 400, "validation_error"},
		"too many":               {gw, bad(func(r *auth.DelegateRequest) { r.Permissions = make([]string, 1001) }), 400, "validation_error"},
	} {
		t.Run(name, func(t *testing.T) {
			w.refused(second(w.Delegate(t.Context(), test.caller, test.request)), test.status, test.code)
		})
	}
	// An actor token has to be a gateway's own.
	for name, actor := range map[string]string{
		"no gateway":     w.exchange("carol", auth.ExchangeRequest{Audience: control}).FelixToken,
		"broker's token": w.exchange("gw", auth.ExchangeRequest{}).FelixToken,
		"delegated":      w.mint(token.Claims{Audience: control, Actor: "x", Permissions: []string{"token.delegate:tenant:t1"}}),
	} {
		t.Run(name, func(t *testing.T) {
			w.refused(second(w.Exchange(t.Context(), tenant, w.upstream("bob"), auth.ExchangeRequest{ActorToken: actor})), 403, "forbidden")
		})
	}
	w.clock.Advance(5*time.Minute + 3*time.Second)
	w.refused(second(w.Delegate(t.Context(), gw, request(bound.FelixToken))), 400, "validation_error")
	w.options.DelegateUnboundTokens = true
	lax := w.another()
	fresh := w.exchange("bob", auth.ExchangeRequest{})
	if _, err := lax.Delegate(t.Context(), gw, request(fresh.FelixToken)); err != nil {
		t.Errorf("unbound, allowed: %v", err)
	}
	bound = w.exchange("bob", auth.ExchangeRequest{ActorToken: w.exchange("gw", auth.ExchangeRequest{Audience: control}).FelixToken})
	w.refused(second(lax.Delegate(t.Context(), gw2, request(bound.FelixToken))), 403, "forbidden")
}
