package auth

import (
	"crypto/ed25519"
	"fmt"
	"io"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// NoExpiry returns the expiry of a token that is meant never to end: the last
// second of the year 9999. A verifier demands an expiry, so there is one. It
// suits development only; real tokens live for minutes.
func NoExpiry() time.Time { return time.Unix(maxSeconds, 0) }

// Claims are what a token says.
type Claims struct {
	Tenant      string
	Subject     string
	Permissions []string  // "action:object", see [CompileGrants]
	IssuedAt    time.Time // whole seconds count
	Expires     time.Time // whole seconds count; see [NoExpiry]
	ID          string    // optional
	Audience    string    // AudienceBroker where it is empty
	Actor       string    // who acts for the subject; optional
	MayAct      string    // who may have itself made the actor; optional
}

// A Signer mints tokens of one tenant key.
type Signer struct {
	kid     string
	private ed25519.PrivateKey
}

// GenerateKey makes an Ed25519 key from randomness, which is crypto/rand's
// reader outside of tests.
func GenerateKey(randomness io.Reader) (ed25519.PrivateKey, error) {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(randomness, seed); err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// NewSigner signs with private under the key id kid; an empty kid is the key's
// [Thumbprint].
func NewSigner(kid string, private ed25519.PrivateKey) *Signer {
	if kid == "" {
		kid = Thumbprint(private.Public().(ed25519.PublicKey))
	}
	return &Signer{kid: kid, private: private}
}

// Key is what verifies the signer's tokens.
func (s *Signer) Key() Key {
	return Key{ID: s.kid, Public: s.private.Public().(ed25519.PublicKey)}
}

// Mint signs a token. It fails on a permission that a broker would
// refuse, an invalid tenant, an empty subject or an expiry before the issue.
func (s *Signer) Mint(c Claims) (string, error) {
	if !ValidTenant(c.Tenant) {
		return "", refuse(ReasonTenantID)
	}
	if c.Subject == "" {
		return "", fmt.Errorf("mint token: subject is empty")
	}
	if c.Expires.Before(c.IssuedAt) {
		return "", fmt.Errorf("mint token: expires at %s, before it is issued at %s",
			c.Expires.UTC().Format(time.RFC3339), c.IssuedAt.UTC().Format(time.RFC3339))
	}
	if _, err := CompileGrants(c.Tenant, c.Permissions); err != nil {
		return "", fmt.Errorf("mint token: %w", err)
	}
	expires := seconds(min(c.Expires.Unix(), maxSeconds))
	audience := c.Audience
	if audience == "" {
		audience = AudienceBroker
	}
	perms := c.Permissions
	if perms == nil {
		perms = []string{}
	}
	token := jwt.NewWithClaims(jwt.SigningMethodEdDSA, &claims{
		Issuer:   tokenIssuer,
		Audience: audience,
		Subject:  c.Subject,
		Tenant:   c.Tenant,
		IssuedAt: seconds(max(c.IssuedAt.Unix(), 0)),
		Expires:  &expires,
		ID:       c.ID,
		Perms:    perms,
		Actor:    partyOf(c.Actor),
		MayAct:   partyOf(c.MayAct),
	})
	token.Header["kid"] = s.kid
	signed, err := token.SignedString(s.private)
	if err != nil {
		return "", fmt.Errorf("mint token: %w", err)
	}
	return signed, nil
}
