package oidc

import (
	"context"
	"strings"

	"github.com/go-jose/go-jose/v4"

	"github.com/felixlog/felix/controlplane/model"
)

// maxToken bounds an upstream token in bytes.
const maxToken = 64 << 10

// A Verifier checks tokens of any issuers. It is safe for concurrent use and
// needs no closing.
type Verifier struct {
	o           Options
	algorithms  []jose.SignatureAlgorithm
	discoveries cache[discovery]
	keySets     cache[keySet]
}

// An Identity is what a token proves.
type Identity struct {
	Issuer  string
	Subject string
	Groups  []string // as the issuer names them
}

// New fetches nothing yet.
func New(o Options) (*Verifier, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	v := &Verifier{o: o}
	for _, alg := range o.Algorithms {
		v.algorithms = append(v.algorithms, jose.SignatureAlgorithm(alg))
	}
	f := newFetcher(&v.o)
	v.discoveries = cache[discovery]{
		fetch: f.fetch, parse: parseDiscovery, now: o.Now, entries: make(map[string]*entry[discovery]),
	}
	v.keySets = cache[keySet]{
		fetch: f.fetch, parse: parseKeySet, now: o.Now, entries: make(map[string]*entry[keySet]),
	}
	return v, nil
}

// Verify checks a token against the issuers that a tenant trusts, in the order
// of control plane 15.1. A refusal is an [*Error].
func (v *Verifier) Verify(ctx context.Context, token string, issuers []model.IdpIssuer) (Identity, error) {
	if len(token) > maxToken {
		return Identity{}, malformed("the upstream token is too long")
	}
	jws, err := jose.ParseSignedCompact(token, v.algorithms)
	if err != nil {
		return Identity{}, malformed("the upstream token is not a JWT signed with one of " + strings.Join(v.o.Algorithms, ", "))
	}
	header := jws.Signatures[0].Protected
	if header.KeyID == "" {
		return Identity{}, malformed("the upstream token names no key")
	}
	if _, critical := header.ExtraHeaders["crit"]; critical {
		return Identity{}, malformed("the upstream token has extensions that are not known")
	}
	unproved, err := parseClaims(jws.UnsafePayloadWithoutVerification())
	if err != nil {
		return Identity{}, err
	}
	issuer, found := trusted(issuers, unproved.text("iss"))
	if !found {
		return Identity{}, &Error{Issuer, "issuer not allowed"}
	}
	keys, err := v.keys(ctx, issuer, header.KeyID, header.Algorithm)
	if err != nil {
		return Identity{}, err
	}
	for _, key := range keys {
		if payload, err := jws.Verify(key.Key); err == nil {
			proved, err := parseClaims(payload)
			if err != nil {
				return Identity{}, err
			}
			return proved.identity(issuer, v.o.Now())
		}
	}
	return Identity{}, invalid("the signature of the upstream token is not valid")
}

func trusted(issuers []model.IdpIssuer, name string) (model.IdpIssuer, bool) {
	for _, issuer := range issuers {
		if issuer.Issuer == name && name != "" {
			return issuer, true
		}
	}
	return model.IdpIssuer{}, false
}

// keys are those that may have signed. Where there is none, the set is fetched
// once more, if its cool-down allows.
func (v *Verifier) keys(ctx context.Context, issuer model.IdpIssuer, kid, alg string) ([]jose.JSONWebKey, error) {
	address, err := v.keySetAddress(ctx, issuer)
	if err != nil {
		return nil, err
	}
	for _, newer := range []bool{false, true} {
		set, err := v.keySets.get(ctx, address, newer)
		if err != nil {
			return nil, &Error{Keys, "the issuer's keys could not be had: " + err.Error()}
		}
		if found := set.find(kid, alg); len(found) > 0 {
			return found, nil
		}
	}
	return nil, invalid("the upstream token is signed with a key that its issuer does not publish")
}

func (v *Verifier) keySetAddress(ctx context.Context, issuer model.IdpIssuer) (string, error) {
	address := ""
	if issuer.JWKSURL != nil {
		address = *issuer.JWKSURL
	} else {
		d, err := v.discover(ctx, issuer)
		if err != nil {
			return "", err
		}
		if d.Issuer != issuer.Issuer {
			return "", &Error{Keys, "the discovery document is of another issuer"}
		}
		address = d.JWKSURI
	}
	if err := v.o.checkURL(address); err != nil {
		return "", &Error{Keys, "the issuer's keys cannot be fetched: " + err.Error()}
	}
	return address, nil
}

func (v *Verifier) discover(ctx context.Context, issuer model.IdpIssuer) (discovery, error) {
	address := discoveryAddress(issuer)
	if err := v.o.checkURL(address); err != nil {
		return discovery{}, &Error{Keys, "the issuer cannot be discovered: " + err.Error()}
	}
	d, err := v.discoveries.get(ctx, address, false)
	if err != nil {
		return discovery{}, &Error{Keys, "the issuer could not be discovered: " + err.Error()}
	}
	return d, nil
}

func discoveryAddress(issuer model.IdpIssuer) string {
	if issuer.DiscoveryURL != nil {
		return *issuer.DiscoveryURL
	}
	return strings.TrimSuffix(issuer.Issuer, "/") + "/.well-known/openid-configuration"
}
