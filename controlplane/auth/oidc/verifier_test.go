package oidc_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/auth/oidc"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/felixtest/idp"
)

// A clock stands still until it is told to go on.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Unix(1_800_000_000, 0)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newVerifier(t testing.TB, c *clock, change func(*oidc.Options)) *oidc.Verifier {
	t.Helper()
	o := oidc.Options{AllowInsecureHTTP: true, Now: c.Now}
	if change != nil {
		change(&o)
	}
	v, err := oidc.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func ptr(s string) *string { return &s }

func issuerOf(p *idp.Provider) model.IdpIssuer {
	return model.IdpIssuer{Issuer: p.Issuer(), Audiences: []string{p.Audience()}, JWKSURL: ptr(p.JWKSURL())}
}

// kindOf is the kind of a refusal, 0 for none.
func kindOf(t testing.TB, err error) oidc.Kind {
	t.Helper()
	var refused *oidc.Error
	if err == nil {
		return 0
	}
	if !errors.As(err, &refused) {
		t.Fatalf("%v is no refusal", err)
	}
	return refused.Kind
}

func TestAccepts(t *testing.T) {
	c := newClock()
	for _, alg := range []string{"ES256", "RS256", "PS512"} {
		p := idp.Start(t, idp.Options{Algorithm: alg, Now: c.Now})
		v := newVerifier(t, c, func(o *oidc.Options) { o.Algorithms = []string{"ES256", "RS256", "PS512"} })
		for name, change := range map[string]func(*model.IdpIssuer){
			"jwks_url":      func(*model.IdpIssuer) {},
			"discovery_url": func(i *model.IdpIssuer) { i.JWKSURL, i.DiscoveryURL = nil, ptr(p.DiscoveryURL()) },
			"issuer alone":  func(i *model.IdpIssuer) { i.JWKSURL = nil },
		} {
			issuer := issuerOf(p)
			change(&issuer)
			id, err := v.Verify(t.Context(), p.Token(idp.Claims{"sub": "alice"}), []model.IdpIssuer{{Issuer: "https://other.example"}, issuer})
			if err != nil || id.Subject != "alice" || id.Issuer != p.Issuer() || id.Groups != nil {
				t.Errorf("%s by %s: %+v, %v", alg, name, id, err)
			}
		}
	}
}

func TestMapsClaims(t *testing.T) {
	c := newClock()
	p := idp.Start(t, idp.Options{Now: c.Now})
	v := newVerifier(t, c, nil)
	issuer := issuerOf(p)
	issuer.ClaimMappings = model.ClaimMappings{SubjectClaim: "email", GroupsClaim: ptr("roles")}
	for name, test := range map[string]struct {
		roles any
		want  []string
	}{
		"a list":   {[]string{"a", "group:b"}, []string{"a", "group:b"}},
		"a string": {"a", []string{"a"}},
		"nothing":  {nil, nil},
	} {
		id, err := v.Verify(t.Context(), p.Token(idp.Claims{"sub": "x", "email": "a@b", "roles": test.roles}), []model.IdpIssuer{issuer})
		if err != nil || id.Subject != "a@b" || !slices.Equal(id.Groups, test.want) {
			t.Errorf("%s: %+v, %v", name, id, err)
		}
	}
}

func TestRefuses(t *testing.T) {
	c := newClock()
	p := idp.Start(t, idp.Options{Now: c.Now})
	issuer := issuerOf(p)
	issuer.ClaimMappings.GroupsClaim = ptr("groups")
	now := c.Now().Unix()
	with := func(claims idp.Claims) string {
		if _, set := claims["sub"]; !set {
			claims["sub"] = "alice"
		}
		return p.Token(claims)
	}
	good := with(idp.Claims{})
	for name, test := range map[string]struct {
		token string
		want  oidc.Kind
	}{
		"good":                    {good, 0},
		"empty":                   {"", oidc.Malformed},
		"not a JWT":               {"hello", oidc.Malformed},
		"two parts":               {"a.b", oidc.Malformed},
		"too long":                {good + strings.Repeat("A", 64<<10), oidc.Malformed},
		"no signature":            {unsigned(t, p, c), oidc.Malformed},
		"HMAC":                    {hmac(t, p, c), oidc.Malformed},
		"no key id":               {p.TokenWithKeyID("", idp.Claims{"sub": "alice"}), oidc.Malformed},
		"critical":                {critical(t, p, c), oidc.Malformed},
		"issuer":                  {with(idp.Claims{"iss": "https://evil.example"}), oidc.Issuer},
		"no issuer":               {with(idp.Claims{"iss": nil}), oidc.Issuer},
		"issuer with a slash":     {with(idp.Claims{"iss": p.Issuer() + "/"}), oidc.Issuer},
		"issuer by another name":  {with(idp.Claims{"iss": nil, "ISS": p.Issuer()}), oidc.Issuer},
		"unknown key":             {p.TokenWithKeyID("other", idp.Claims{"sub": "alice"}), oidc.Invalid},
		"signature":               {forged(t, p, c), oidc.Invalid},
		"audience":                {with(idp.Claims{"aud": "other"}), oidc.Invalid},
		"no audience":             {with(idp.Claims{"aud": nil}), oidc.Invalid},
		"audience of numbers":     {with(idp.Claims{"aud": []any{1, p.Audience()}}), oidc.Invalid},
		"one audience of two":     {with(idp.Claims{"aud": []string{"other", p.Audience()}}), 0},
		"expired":                 {with(idp.Claims{"exp": now - 61}), oidc.Invalid},
		"expired within the skew": {with(idp.Claims{"exp": now - 60}), 0},
		"no expiry":               {with(idp.Claims{"exp": nil}), oidc.Invalid},
		"expiry is text":          {with(idp.Claims{"exp": "tomorrow"}), oidc.Invalid},
		"expiry without end":      {with(idp.Claims{"exp": 1e300}), oidc.Invalid},
		"issued in the future":    {with(idp.Claims{"iat": now + 61}), oidc.Invalid},
		"issued within the skew":  {with(idp.Claims{"iat": now + 60}), 0},
		"no issue":                {with(idp.Claims{"iat": nil}), oidc.Invalid},
		"not yet":                 {with(idp.Claims{"nbf": now + 61}), oidc.Invalid},
		"not yet, in the skew":    {with(idp.Claims{"nbf": now + 60}), 0},
		"nbf is text":             {with(idp.Claims{"nbf": "x"}), oidc.Invalid},
		"no subject":              {with(idp.Claims{"sub": ""}), oidc.Invalid},
		"subject is a number":     {with(idp.Claims{"sub": 7}), oidc.Invalid},
		"long subject":            {with(idp.Claims{"sub": strings.Repeat("x", 1025)}), oidc.Invalid},
		"groups are numbers":      {with(idp.Claims{"groups": []int{1}}), oidc.Invalid},
		"too many groups":         {with(idp.Claims{"groups": make([]string, 1001)}), oidc.Invalid},
		"control in a group":      {with(idp.Claims{"groups": []string{"a\x00"}}), oidc.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newVerifier(t, c, nil).Verify(t.Context(), test.token, []model.IdpIssuer{issuer})
			if got := kindOf(t, err); got != test.want {
				t.Errorf("%v, want kind %d", err, test.want)
			}
			if err != nil && test.token != "" && strings.Contains(err.Error(), test.token) {
				t.Error("the error holds the token")
			}
		})
	}
	t.Run("algorithm that is not allowed", func(t *testing.T) {
		v := newVerifier(t, c, func(o *oidc.Options) { o.Algorithms = []string{"RS256"} })
		_, err := v.Verify(t.Context(), good, []model.IdpIssuer{issuer})
		if kindOf(t, err) != oidc.Malformed {
			t.Errorf("%v", err)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	for name, o := range map[string]oidc.Options{
		"no clock":     {},
		"no algorithm": {Now: time.Now, Algorithms: []string{}},
		"HMAC":         {Now: time.Now, Algorithms: []string{"HS256"}},
		"none":         {Now: time.Now, Algorithms: []string{"ES256", "none"}},
	} {
		if _, err := oidc.New(o); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func FuzzVerify(f *testing.F) {
	c := newClock()
	p, err := idp.New(idp.Options{Now: c.Now})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(p.Close)
	v, err := oidc.New(oidc.Options{AllowInsecureHTTP: true, Now: c.Now})
	if err != nil {
		f.Fatal(err)
	}
	good := p.Token(idp.Claims{"sub": "alice", "groups": []string{"a"}})
	f.Add(good)
	f.Add(p.Token(idp.Claims{"sub": 1}))
	f.Add("e30.e30.")
	f.Add(strings.Replace(good, ".", ". ", 1))
	issuer := issuerOf(p)
	issuer.ClaimMappings.GroupsClaim = ptr("groups")
	f.Fuzz(func(t *testing.T, token string) {
		id, err := v.Verify(context.Background(), token, []model.IdpIssuer{issuer})
		if err == nil && (id.Issuer != p.Issuer() || id.Subject != "alice") {
			t.Fatalf("%q proves %+v", token, id)
		}
		if err != nil {
			kindOf(t, err)
		}
	})
}
