package auth_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/felixlog/felix/controlplane/auth"
	token "github.com/felixlog/felix/internal/auth"
)

// isRefusal fails unless err is nil or an answer.
func isRefusal(t *testing.T, err error) {
	t.Helper()
	var refused *auth.Refusal
	if err != nil && !errors.As(err, &refused) {
		t.Fatalf("%v is no refusal", err)
	}
}

func FuzzAuthenticate(f *testing.F) {
	w := newWorld(f, nil)
	w.boot()
	good := w.mint(token.Claims{Audience: control, Permissions: []string{"rbac.view:tenant:t1"}})
	f.Add("Bearer "+good, tenant)
	f.Add("Bearer "+w.mint(token.Claims{Audience: broker}), "")
	f.Add("Bearer "+w.mint(token.Claims{Audience: control, Permissions: []string{"tenant.manage:namespace:t1/n", "rbac.view:*"}}), "t2")
	f.Add("Bearer e30.e30.e30", "")
	f.Add("", "")
	f.Fuzz(func(t *testing.T, header, tenant string) {
		c, err := w.Authenticate(t.Context(), header, tenant)
		isRefusal(t, err)
		if err == nil && (c.Tenant != "t1" || c.Subject != "somebody" || c.Audience != control) {
			t.Fatalf("%q is %+v", header, c)
		}
	})
}

func FuzzExchange(f *testing.F) {
	w := newWorld(f, nil)
	w.boot()
	good := w.upstream("alice", "a", "b")
	alice := w.principal("alice")
	published := w.published()
	f.Add(tenant, good, `{}`)
	f.Add(tenant, good, `{"requested":["stream.publish"],"resources":["stream:t1/n/s"]}`)
	f.Add(tenant, good, `{"requested":[],"audience":"felix-controlplane","actor_token":"`+good+`"}`)
	f.Add("t2", "e30.e30.", `{"audience":1}`)
	f.Add(tenant, strings.Replace(good, ".", "..", 1), `null`)
	f.Fuzz(func(t *testing.T, tenant, upstream, body string) {
		var r auth.ExchangeRequest
		if json.Unmarshal([]byte(body), &r) != nil {
			return
		}
		answer, err := w.Exchange(t.Context(), tenant, upstream, r)
		isRefusal(t, err)
		if err != nil {
			return
		}
		audience := r.Audience
		if audience == "" {
			audience = broker
		}
		c, err := token.NewVerifierFor(published, w.clock.Now, 0, audience).VerifyClaims(t.Context(), "t1", answer.FelixToken)
		if err != nil || c.Subject != alice || c.MayAct != "" || len(c.Permissions) == 0 {
			t.Fatalf("%+v, %v", c, err)
		}
	})
}

func FuzzRefresh(f *testing.F) {
	w := newWorld(f, nil)
	w.boot()
	good := w.exchange("alice", auth.ExchangeRequest{}).RefreshToken
	id, secret, _ := strings.Cut(good, ".")
	f.Add(tenant, id+"."+strings.Repeat("0", 64), "")
	f.Add(tenant, secret+"."+id, broker)
	f.Add("t2", good, control)
	f.Add(tenant, id, "x")
	f.Add("", ".", "")
	f.Fuzz(func(t *testing.T, tenant, text, audience string) {
		if text == good {
			return
		}
		_, err := w.Refresh(t.Context(), tenant, auth.RefreshRequest{RefreshToken: text, Audience: audience})
		isRefusal(t, err)
		if err == nil {
			t.Fatalf("%q was taken", text)
		}
	})
}

func FuzzBootstrap(f *testing.F) {
	w := newWorld(f, nil)
	w.boot()
	for _, seed := range []string{
		`{}`, `null`, `{"display_name":"x","initial_admin_principals":["p"],"idp_issuers":[{"issuer":"https://a.example","audiences":["x"]}]}`,
		`{"display_name":"x","initial_admin_principals":["p"],"policies":[{"subject":"a","object":"cluster:*","action":"node.view"}]}`,
		`{"display_name":"x","initial_admin_principals":["p"],"groupings":[{"user":"a","role":"b"}]}`,
		`{"display_name":"x","initial_admin_principals":[""],"policies":[{}],"groupings":[{}],"idp_issuers":[{}]}`,
	} {
		f.Add(tenant, bootSecret, seed)
		f.Add("t2", "guess", seed)
	}
	f.Fuzz(func(t *testing.T, tenant, secret, body string) {
		var r auth.BootstrapRequest
		if json.Unmarshal([]byte(body), &r) != nil {
			return
		}
		_, err := w.Bootstrap(t.Context(), tenant, secret, r)
		isRefusal(t, err)
		if err == nil && (secret != bootSecret && secret != oldSecret || tenant == "t1") {
			t.Fatalf("%q with %q was initialised", tenant, secret)
		}
	})
}
