package auth

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestAudiencesAreApart: neither side takes what was made for the other.
func TestAudiencesAreApart(t *testing.T) {
	private := newKey(t)
	signer := NewSigner("k", private)
	source := NewStaticKeys()
	if err := source.Set("acme", []Key{signer.Key()}); err != nil {
		t.Fatal(err)
	}
	now := func() time.Time { return epoch }
	mint := func(audience string) string {
		token, err := signer.Mint(Claims{
			Tenant: "acme", Subject: "someone", Audience: audience, IssuedAt: epoch, Expires: epoch.Add(time.Minute),
			Permissions: []string{"rbac.view:tenant:acme"}, Actor: "gateway", MayAct: "other", ID: "7",
		})
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	verifiers := map[string]*Verifier{
		AudienceBroker:       NewVerifier(source, now),
		AudienceControlPlane: NewVerifierFor(source, now, 5*time.Second, AudienceControlPlane),
	}
	both := NewVerifierFor(source, now, 0, AudienceBroker, AudienceControlPlane)
	for made := range verifiers {
		for taker, v := range verifiers {
			c, err := v.VerifyClaims(t.Context(), "acme", mint(made))
			if made != taker {
				var refused *TokenError
				if !errors.As(err, &refused) || refused.Reason != ReasonAudience {
					t.Errorf("a token for %s at %s: %v", made, taker, err)
				}
				continue
			}
			if err != nil || c.Subject != "someone" || c.Audience != made || c.Actor != "gateway" || c.MayAct != "other" ||
				c.ID != "7" || len(c.Permissions) != 1 || !c.Expires.Equal(epoch.Add(time.Minute)) || !c.IssuedAt.Equal(epoch) {
				t.Errorf("%+v, %v", c, err)
			}
		}
		if _, err := both.VerifyClaims(t.Context(), "acme", mint(made)); err != nil {
			t.Errorf("both: %v", err)
		}
	}
	if c, err := verifiers[AudienceBroker].VerifyClaims(t.Context(), "acme", mint("")); err != nil || c.Audience != AudienceBroker {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestLeewayIsTheVerifiers(t *testing.T) {
	private := newKey(t)
	signer := NewSigner("k", private)
	source := NewStaticKeys()
	if err := source.Set("acme", []Key{signer.Key()}); err != nil {
		t.Fatal(err)
	}
	token, err := signer.Mint(Claims{Tenant: "acme", Subject: "s", IssuedAt: epoch, Expires: epoch})
	if err != nil {
		t.Fatal(err)
	}
	for after, good := range map[time.Duration]bool{5 * time.Second: true, 6 * time.Second: false} {
		v := NewVerifierFor(source, func() time.Time { return epoch.Add(after) }, 5*time.Second, AudienceBroker)
		if _, err := v.Verify(t.Context(), "acme", token); (err == nil) != good {
			t.Errorf("%v after the expiry: %v", after, err)
		}
	}
}

// A finder records which keys it was asked for.
type finder struct {
	*StaticKeys
	wanted []string
}

func (f *finder) KeysFor(ctx context.Context, tenant, kid string) ([]Key, error) {
	f.wanted = append(f.wanted, kid)
	return f.Keys(ctx, tenant)
}

func TestVerifierTellsTheFinder(t *testing.T) {
	private := newKey(t)
	signer := NewSigner("k1", private)
	f := &finder{StaticKeys: NewStaticKeys()}
	if err := f.Set("acme", []Key{signer.Key()}); err != nil {
		t.Fatal(err)
	}
	v := NewVerifier(f, func() time.Time { return epoch })
	for _, header := range []object{{"alg": "EdDSA", "kid": "k1"}, {"alg": "EdDSA"}, {"alg": "EdDSA", "kid": "k2"}} {
		if _, err := v.Verify(t.Context(), "acme", signRaw(t, private, header, validBody())); err != nil {
			t.Errorf("%v: %v", header, err)
		}
	}
	if len(f.wanted) != 2 || f.wanted[0] != "k1" || f.wanted[1] != "k2" {
		t.Errorf("asked for %v", f.wanted)
	}
}

func TestTenantOf(t *testing.T) {
	private := newKey(t)
	sign := func(body object) string { return signRaw(t, private, object{"alg": "EdDSA"}, body) }
	if got, err := TenantOf(sign(validBody())); err != nil || got != "acme" {
		t.Errorf("%q, %v", got, err)
	}
	for name, token := range map[string]string{
		"empty": "", "not a JWT": "hello", "no tenant": sign(with(validBody(), object{"tid": ""})),
		"tenant is a number": sign(with(validBody(), object{"tid": 1})), "tenant is no name": sign(with(validBody(), object{"tid": ".."})),
		"too long": sign(with(validBody(), object{"x": string(make([]byte, maxTokenLength))})),
	} {
		var refused *TokenError
		if got, err := TenantOf(token); got != "" || !errors.As(err, &refused) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
