package idp

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/go-jose/go-jose/v4"
)

// rsaBits is the least that verifiers accept.
const rsaBits = 2048

type signingKey struct {
	kid       string
	algorithm jose.SignatureAlgorithm
	private   crypto.Signer
}

func newKey(algorithm string) (*signingKey, error) {
	key := &signingKey{kid: randomHex(8), algorithm: jose.SignatureAlgorithm(algorithm)}
	var err error
	switch {
	case algorithm == "" || algorithm == "ES256":
		key.algorithm = jose.ES256
		key.private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case slices.Contains([]string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}, algorithm):
		key.private, err = rsa.GenerateKey(rand.Reader, rsaBits)
	default:
		return nil, fmt.Errorf("algorithm %q is not one of ES256, RS256, RS384, RS512, PS256, PS384, PS512", algorithm)
	}
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	return key, nil
}

// randomHex is n random bytes in hex. crypto/rand never fails.
func randomHex(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return hex.EncodeToString(b)
}

func (k *signingKey) public() jose.JSONWebKey {
	return jose.JSONWebKey{Key: k.private.Public(), KeyID: k.kid, Algorithm: string(k.algorithm), Use: "sig"}
}

// sign never fails for claims that have a JSON form.
func (k *signingKey) sign(kid string, claims Claims) (string, error) {
	body, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("encode claims: %w", err)
	}
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: k.algorithm, Key: jose.JSONWebKey{Key: k.private, KeyID: kid}},
		(&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	signed, err := signer.Sign(body)
	if err != nil {
		return "", fmt.Errorf("sign token: %w", err)
	}
	return signed.CompactSerialize()
}

// Token signs claims with the current key. iss, aud, iat and exp are filled in
// where they are not given; nil leaves one out. Claims without a JSON form
// panic: they are a fault of the test.
func (p *Provider) Token(claims Claims) string { return p.TokenWithKeyID(p.KeyID(), claims) }

// TokenWithKeyID is Token with another kid in its header; the current key signs.
func (p *Provider) TokenWithKeyID(kid string, claims Claims) string {
	now := p.o.Now()
	all := Claims{"iss": p.issuer, "aud": p.o.Audience, "iat": now.Unix(), "exp": now.Add(p.o.Lifetime).Unix()}
	maps.Copy(all, claims)
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	p.mu.Lock()
	key := p.keys[len(p.keys)-1]
	p.mu.Unlock()
	signed, err := key.sign(kid, all)
	if err != nil {
		panic(err)
	}
	return signed
}

// KeyID is the kid of the key that signs.
func (p *Provider) KeyID() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[len(p.keys)-1].kid
}

// Rotate makes a new key that signs from now on. The old ones stay published.
func (p *Provider) Rotate() (kid string, err error) {
	key, err := newKey(p.o.Algorithm)
	if err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = append(p.keys, key)
	return key.kid, nil
}

// Withdraw publishes the key that signs, and no other.
func (p *Provider) Withdraw() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = p.keys[len(p.keys)-1:]
}
