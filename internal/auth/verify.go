package auth

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// maxTokenLength bounds a token in bytes; an auth frame is no longer by
// default (wire 2.5).
const maxTokenLength = 64 << 10

// A Verifier checks tokens. It is safe for concurrent use.
type Verifier struct {
	source    KeySource
	now       func() time.Time
	leeway    time.Duration
	audiences []string
	parser    *jwt.Parser
}

// NewVerifier checks tokens for brokers against the keys of source, at the time
// that now tells.
func NewVerifier(source KeySource, now func() time.Time) *Verifier {
	return NewVerifierFor(source, now, Leeway, AudienceBroker)
}

// NewVerifierFor checks tokens for any of the audiences, with that leeway of
// clocks.
func NewVerifierFor(source KeySource, now func() time.Time, leeway time.Duration, audiences ...string) *Verifier {
	return &Verifier{
		source:    source,
		now:       now,
		leeway:    leeway,
		audiences: audiences,
		parser: jwt.NewParser(
			jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}),
			jwt.WithStrictDecoding(),
			jwt.WithoutClaimsValidation(),
		),
	}
}

// Verify checks token for tenant, the tenant the client asked for: form,
// algorithm, signature, issuer, audience, expiry with [Leeway], tenant and
// permissions, in this order (wire 17). A refusal is a [*TokenError]; so is a
// failure to have the tenant's keys within ctx.
func (v *Verifier) Verify(ctx context.Context, tenant, token string) (*Principal, error) {
	c, err := v.verified(ctx, tenant, token)
	if err != nil {
		return nil, err
	}
	grants, err := CompileGrants(tenant, c.Perms)
	if err != nil {
		return nil, &TokenError{Reason: ReasonPermission, Err: err}
	}
	return &Principal{Tenant: tenant, Subject: c.Subject, Expires: c.Expires.time(), Grants: grants}, nil
}

// VerifyClaims is [Verifier.Verify] for those who read permissions by
// themselves: it answers with what the token says and compiles nothing.
func (v *Verifier) VerifyClaims(ctx context.Context, tenant, token string) (*Claims, error) {
	c, err := v.verified(ctx, tenant, token)
	if err != nil {
		return nil, err
	}
	return &Claims{
		Tenant: tenant, Subject: c.Subject, Permissions: c.Perms, ID: c.ID, Audience: c.Audience,
		IssuedAt: c.IssuedAt.time(), Expires: c.Expires.time(),
		Actor: c.Actor.subject(), MayAct: c.MayAct.subject(),
	}, nil
}

// TenantOf reads the tenant that a token says it is of, and believes nothing
// else of it. The error is a [*TokenError].
func TenantOf(token string) (string, error) {
	var c claims
	if len(token) > maxTokenLength {
		return "", refuse(ReasonMalformed)
	}
	if _, _, err := jwt.NewParser(jwt.WithStrictDecoding()).ParseUnverified(token, &c); err != nil {
		return "", refuse(ReasonMalformed)
	}
	if !ValidTenant(c.Tenant) {
		return "", refuse(ReasonTenantID)
	}
	return c.Tenant, nil
}

// verified checks all of a token but its permissions.
func (v *Verifier) verified(ctx context.Context, tenant, token string) (*claims, error) {
	if !ValidTenant(tenant) {
		return nil, refuse(ReasonTenantID)
	}
	if len(token) > maxTokenLength {
		return nil, refuse(ReasonMalformed)
	}
	var c claims
	_, err := v.parser.ParseWithClaims(token, &c, func(t *jwt.Token) (any, error) {
		return v.candidates(ctx, tenant, t)
	})
	if err != nil {
		return nil, reasonOf(err)
	}
	if err := v.check(&c, tenant); err != nil {
		return nil, err
	}
	return &c, nil
}

// candidates lists the keys to try: those of the token's kid, then the rest.
func (v *Verifier) candidates(ctx context.Context, tenant string, t *jwt.Token) (any, error) {
	if _, critical := t.Header["crit"]; critical {
		return nil, refuse(ReasonMalformed) // an extension we must not ignore (RFC 7515 4.1.11)
	}
	kid, named := t.Header["kid"].(string)
	keys, err := v.keys(ctx, tenant, kid)
	if errors.Is(err, ErrUnknownTenant) || err == nil && len(keys) == 0 {
		return nil, refuse(ReasonTenantKeys)
	}
	if err != nil {
		return nil, &TokenError{Reason: ReasonUnavailable, Err: err}
	}
	set := jwt.VerificationKeySet{Keys: make([]jwt.VerificationKey, 0, len(keys))}
	for _, first := range []bool{true, false} {
		for _, key := range keys {
			if (named && key.ID == kid) == first {
				set.Keys = append(set.Keys, key.Public)
			}
		}
	}
	return set, nil
}

// keys are those of the tenant; a source that may be behind is told which one
// is wanted.
func (v *Verifier) keys(ctx context.Context, tenant, kid string) ([]Key, error) {
	if finder, may := v.source.(KeyFinder); may && kid != "" {
		return finder.KeysFor(ctx, tenant, kid)
	}
	return v.source.Keys(ctx, tenant)
}

// reasonOf turns what the jwt package found into a reason. Its text is
// dropped: it may quote the token.
func reasonOf(err error) error {
	var own *TokenError
	switch {
	case errors.As(err, &own):
		return own
	case errors.Is(err, jwt.ErrEd25519Verification):
		return refuse(ReasonSignature)
	case errors.Is(err, jwt.ErrTokenSignatureInvalid), errors.Is(err, jwt.ErrTokenUnverifiable):
		return refuse(ReasonAlgorithm)
	default:
		return refuse(ReasonMalformed)
	}
}

func (v *Verifier) check(c *claims, tenant string) error {
	now := v.now()
	switch {
	case c.Issuer != tokenIssuer:
		return refuse(ReasonIssuer)
	case !slices.Contains(v.audiences, c.Audience):
		return refuse(ReasonAudience)
	case c.Expires == nil:
		return refuse(ReasonMalformed)
	case now.After(c.Expires.time().Add(v.leeway)):
		return refuse(ReasonExpired)
	case now.Before(c.NotBefore.time().Add(-v.leeway)):
		return refuse(ReasonNotYetValid)
	case c.Tenant != tenant:
		return refuse(ReasonTenant)
	case c.Subject == "":
		return refuse(ReasonMalformed)
	}
	return nil
}
