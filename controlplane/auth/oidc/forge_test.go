package oidc_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/felixlog/felix/felixtest/idp"
)

func bodyOf(p *idp.Provider, c *clock) []byte {
	body, _ := json.Marshal(idp.Claims{
		"iss": p.Issuer(), "aud": p.Audience(), "sub": "alice", "iat": c.Now().Unix(), "exp": c.Now().Unix() + 60,
	})
	return body
}

func unsigned(t *testing.T, p *idp.Provider, c *clock) string {
	t.Helper()
	head := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none","kid":"` + p.KeyID() + `"}`))
	return head + "." + base64.RawURLEncoding.EncodeToString(bodyOf(p, c)) + "."
}

func sign(t *testing.T, key jose.SigningKey, options *jose.SignerOptions, body []byte) string {
	t.Helper()
	signer, err := jose.NewSigner(key, options)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// hmac is signed with what is public of the provider, as a secret.
func hmac(t *testing.T, p *idp.Provider, c *clock) string {
	secret := []byte(strings.Repeat(p.KeyID(), 4))
	return sign(t, jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: secret, KeyID: p.KeyID()}}, nil, bodyOf(p, c))
}

func strangersKey(t *testing.T, kid string) jose.SigningKey {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: private, KeyID: kid}}
}

// forged carries its own key, which nobody may believe.
func forged(t *testing.T, p *idp.Provider, c *clock) string {
	return sign(t, strangersKey(t, p.KeyID()), &jose.SignerOptions{EmbedJWK: false}, bodyOf(p, c))
}

func critical(t *testing.T, p *idp.Provider, c *clock) string {
	options := (&jose.SignerOptions{}).WithHeader("crit", []string{"exp"}).WithHeader("exp", 1)
	return sign(t, strangersKey(t, p.KeyID()), options, bodyOf(p, c))
}
