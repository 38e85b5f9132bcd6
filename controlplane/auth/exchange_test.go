package auth_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/auth"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/felixtest/idp"
	token "github.com/felixlog/felix/internal/auth"
)

func TestExchange(t *testing.T) {
	w := newWorld(t, nil)
	w.boot("@bob stream.publish stream:t1/n/s", "@bob cache.read cache:t1/n/c/user*", "@bob group.consume group:t1/n/s/g",
		"@bob token.delegate tenant:t1")
	answer := w.exchange("bob", auth.ExchangeRequest{})
	if answer.ExpiresIn != 900 || answer.RefreshExpiresIn != 2592000 || answer.TokenType != "Bearer" {
		t.Errorf("%d, %d, %s", answer.ExpiresIn, answer.RefreshExpiresIn, answer.TokenType)
	}
	id, secret, found := strings.Cut(answer.RefreshToken, ".")
	if !found || len(id) != 64 || len(secret) != 64 {
		t.Error("the refresh token is not two times 32 bytes in hex")
	}
	c := w.claims(answer.FelixToken, broker)
	want := []string{"cache.read:cache:t1/n/c/user*", "group.consume:group:t1/n/s/g", "stream.publish:stream:t1/n/s", "token.delegate:tenant:t1"}
	if c.Subject != w.principal("bob") || c.Tenant != tenant || !same(c.Permissions, want) || c.Actor != "" || c.MayAct != "" ||
		!c.IssuedAt.Equal(w.clock.Now()) || c.Expires.Sub(c.IssuedAt) != 15*time.Minute {
		t.Errorf("%+v", c)
	}
	// A broker takes it as it is.
	p, err := token.NewVerifier(w.published(), w.clock.Now).Verify(t.Context(), tenant, answer.FelixToken)
	if err != nil || !p.Grants.CanPublish("n", "s") || p.Grants.CanPublish("n", "x") || !p.Grants.CanReadCache("n", "c", "user7") {
		t.Errorf("at a broker: %v", err)
	}
	if _, err := token.NewVerifier(w.published(), w.clock.Now).Verify(t.Context(), tenant,
		w.exchange("bob", auth.ExchangeRequest{Audience: control}).FelixToken); err == nil {
		t.Error("a broker takes a token for the control plane")
	}
	if w.counted("issued exchange") != 2 {
		t.Error("not counted")
	}
}

func TestExchangeRefuses(t *testing.T) {
	w := newWorld(t, nil)
	w.boot("@bob stream.publish stream:t1/n/s")
	w.must(w.store.CreateTenant(t.Context(), model.Tenant{TenantID: "keyless"}))
	bob := w.upstream("bob")
	for name, test := range map[string]struct {
		tenant, upstream string
		request          auth.ExchangeRequest
		status           int
		code             string
	}{
		"no token":            {tenant, "", auth.ExchangeRequest{}, 401, "unauthorized"},
		"audience":            {tenant, bob, auth.ExchangeRequest{Audience: "felix"}, 400, "validation_error"},
		"unknown tenant":      {"t9", bob, auth.ExchangeRequest{}, 403, "forbidden"},
		"impossible tenant":   {"a\x00b", bob, auth.ExchangeRequest{}, 403, "forbidden"},
		"no issuers":          {"keyless", bob, auth.ExchangeRequest{}, 403, "forbidden"},
		"no JWT":              {tenant, "hello", auth.ExchangeRequest{}, 401, "unauthorized"},
		"issuer":              {tenant, w.idp.Token(idp.Claims{"sub": "bob", "iss": "https://evil.example"}), auth.ExchangeRequest{}, 403, "forbidden"},
		"upstream audience":   {tenant, w.idp.Token(idp.Claims{"sub": "bob", "aud": "other"}), auth.ExchangeRequest{}, 401, "unauthorized"},
		"upstream expired":    {tenant, w.idp.Token(idp.Claims{"sub": "bob", "exp": 1000}), auth.ExchangeRequest{}, 401, "unauthorized"},
		"upstream key":        {tenant, w.idp.TokenWithKeyID("x", idp.Claims{"sub": "bob"}), auth.ExchangeRequest{}, 401, "unauthorized"},
		"no permissions":      {tenant, w.upstream("nobody"), auth.ExchangeRequest{}, 403, "forbidden"},
		"nothing requested":   {tenant, bob, auth.ExchangeRequest{Requested: []string{}}, 403, "forbidden"},
		"unparsable request":  {tenant, bob, auth.ExchangeRequest{Requested: []string{"stream.*"}}, 403, "forbidden"},
		"unparsable resource": {tenant, bob, auth.ExchangeRequest{Resources: []string{"stream:t1/n"}}, 403, "forbidden"},
		"another resource":    {tenant, bob, auth.ExchangeRequest{Resources: []string{"stream:t1/n/x"}}, 403, "forbidden"},
		"too many resources":  {tenant, bob, auth.ExchangeRequest{Resources: make([]string, 1001)}, 400, "validation_error"},
		"too many actions":    {tenant, bob, auth.ExchangeRequest{Requested: make([]string, 65)}, 400, "validation_error"},
		"actor for the API":   {tenant, bob, auth.ExchangeRequest{Audience: control, ActorToken: "x"}, 400, "validation_error"},
		"actor that is none":  {tenant, bob, auth.ExchangeRequest{ActorToken: "x"}, 403, "forbidden"},
	} {
		t.Run(name, func(t *testing.T) {
			w.said.secret(test.upstream)
			_, err := w.Exchange(t.Context(), test.tenant, test.upstream, test.request)
			w.refused(err, test.status, test.code)
		})
	}
	unknown, empty := second(w.Exchange(t.Context(), "t9", bob, auth.ExchangeRequest{})), second(w.Exchange(t.Context(), "keyless", bob, auth.ExchangeRequest{}))
	if unknown.Error() != empty.Error() {
		t.Errorf("%q and %q tell a tenant that exists", unknown, empty)
	}
}

func TestExchangeNarrows(t *testing.T) {
	w := newWorld(t, nil)
	w.boot("@bob ns.manage namespace:t1/n", "@bob rbac.view tenant:t1")
	for name, test := range map[string]struct {
		request auth.ExchangeRequest
		want    []string
	}{
		"actions":           {auth.ExchangeRequest{Requested: []string{"cache.read", "ns.manage", "tenant.manage"}}, []string{"cache.read:cache:t1/n/*", "ns.manage:namespace:t1/n"}},
		"one stream":        {auth.ExchangeRequest{Resources: []string{"stream:t1/n/s"}}, []string{"rbac.view:stream:t1/n/s", "stream.manage:stream:t1/n/s", "stream.publish:stream:t1/n/s", "stream.subscribe:stream:t1/n/s"}},
		"a key":             {auth.ExchangeRequest{Resources: []string{"cache:t1/n/c/k"}}, []string{"cache.read:cache:t1/n/c/k", "cache.write:cache:t1/n/c/k"}},
		"both":              {auth.ExchangeRequest{Requested: []string{"stream.publish"}, Resources: []string{"stream:t1/n/s", "bad", "stream:t1/m/s"}}, []string{"stream.publish:stream:t1/n/s"}},
		"wider is no wider": {auth.ExchangeRequest{Requested: []string{"stream.publish"}, Resources: []string{"tenant:t1"}}, []string{"stream.publish:stream:t1/n/*"}},
		"the cluster":       {auth.ExchangeRequest{Resources: []string{"cluster:*", "stream:t1/n/s"}, Requested: []string{"stream.subscribe"}}, []string{"stream.subscribe:stream:t1/n/s"}},
	} {
		t.Run(name, func(t *testing.T) {
			answer := w.exchange("bob", test.request)
			if got := w.claims(answer.FelixToken, broker).Permissions; !same(got, test.want) {
				t.Errorf("%v\nwant %v", got, test.want)
			}
			// A refresh keeps to it.
			again, err := w.Refresh(t.Context(), tenant, auth.RefreshRequest{RefreshToken: answer.RefreshToken})
			w.must(err)
			if got := w.claims(again.FelixToken, broker).Permissions; !same(got, test.want) {
				t.Errorf("refreshed: %v\nwant %v", got, test.want)
			}
		})
	}
}

// TestGroupsAreScoped: a group of one issuer says nothing of a group of the
// same name of another.
func TestGroupsAreScoped(t *testing.T) {
	w := newWorld(t, nil)
	w.boot("role:staff stream.publish stream:t1/n/s")
	w.must(w.store.AddGrouping(t.Context(), tenant, model.Grouping{User: auth.GroupSubject(w.idp.Issuer(), "staff"), Role: "role:staff"}))
	answer, err := w.Exchange(t.Context(), tenant, w.upstream("bob", "x", "staff"), auth.ExchangeRequest{})
	w.must(err)
	if got := w.claims(answer.FelixToken, broker).Permissions; !same(got, []string{"stream.publish:stream:t1/n/s"}) {
		t.Errorf("%v", got)
	}
	other := idp.Start(t, idp.Options{Now: w.clock.Now})
	jwks, groups := other.JWKSURL(), "groups"
	w.must(w.store.PutIssuer(t.Context(), tenant, model.IdpIssuer{
		Issuer: other.Issuer(), Audiences: []string{other.Audience()}, JWKSURL: &jwks, ClaimMappings: model.ClaimMappings{GroupsClaim: &groups}}))
	for _, group := range []string{"staff", "role:staff", w.idp.Issuer() + "#staff", "group:" + w.idp.Issuer() + "#staff"} {
		_, err := w.Exchange(t.Context(), tenant, other.Token(idp.Claims{"sub": "bob", "groups": group}), auth.ExchangeRequest{})
		w.refused(err, 403, "forbidden")
	}
}

// TestExchangeTooWide: a token that no broker could be sent is not made.
func TestExchangeTooWide(t *testing.T) {
	w := newWorld(t, nil)
	var rules []string
	for i := range 400 {
		rules = append(rules, "@bob stream.publish stream:t1/n/"+strings.Repeat("x", 200)+string(rune('a'+i%26))+strings.Repeat("y", i/26))
	}
	w.boot(rules...)
	_, err := w.Exchange(t.Context(), tenant, w.upstream("bob"), auth.ExchangeRequest{})
	if r := w.refused(err, 400, "validation_error"); !strings.Contains(r.Message, "resources") {
		t.Error(r.Message)
	}
	few := w.exchange("bob", auth.ExchangeRequest{Resources: []string{strings.Fields(rules[0])[2]}})
	if got := w.claims(few.FelixToken, broker).Permissions; len(got) != 1 {
		t.Errorf("%d permissions", len(got))
	}
}

func TestPermissionsAreSorted(t *testing.T) {
	w := newWorld(t, nil)
	w.boot()
	got := w.claims(w.exchange("alice", auth.ExchangeRequest{}).FelixToken, broker).Permissions
	if !slices.IsSorted(got) || len(got) != 11 {
		t.Errorf("%d: %v", len(got), got)
	}
}
