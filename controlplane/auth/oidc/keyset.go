package oidc

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"
)

// The bounds of a key set. A long RSA key makes every check of a signature
// slow, a short one worthless.
const (
	maxKeys    = 100
	minRSABits = 2048
	maxRSABits = 8192
)

// A keySet is the keys of a provider that can sign tokens.
type keySet []jose.JSONWebKey

// parseKeySet keeps what it can use. A key of a kind it does not know is no
// reason to refuse the others; a set without any usable one is, since the
// provider is more likely broken than keyless.
func parseKeySet(body []byte) (keySet, error) {
	var document struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if json.Unmarshal(body, &document) != nil {
		return nil, errors.New("the provider's key set is not a JWKS")
	}
	if len(document.Keys) > maxKeys {
		return nil, fmt.Errorf("the provider's key set has %d keys, at most %d are allowed", len(document.Keys), maxKeys)
	}
	var set keySet
	for _, raw := range document.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(raw, &key) == nil && usable(&key) {
			set = append(set, key)
		}
	}
	if len(set) == 0 {
		return nil, errors.New("the provider's key set has no key that can sign tokens")
	}
	return set, nil
}

func usable(key *jose.JSONWebKey) bool {
	if key.KeyID == "" || key.Use != "" && key.Use != "sig" {
		return false
	}
	switch public := key.Key.(type) {
	case *ecdsa.PublicKey:
		return public.Curve == elliptic.P256()
	case *rsa.PublicKey:
		bits := public.N.BitLen()
		return bits >= minRSABits && bits <= maxRSABits
	}
	return false
}

// find lists the keys of that id that fit the algorithm. Two keys may share an
// id; then either may have signed.
func (s keySet) find(kid, alg string) []jose.JSONWebKey {
	var found []jose.JSONWebKey
	for _, key := range s {
		if key.KeyID != kid || key.Algorithm != "" && key.Algorithm != alg {
			continue
		}
		_, isRSA := key.Key.(*rsa.PublicKey)
		if isRSA != (alg == "ES256") {
			found = append(found, key)
		}
	}
	return found
}

// A discovery is what counts of a provider's document.
type discovery struct {
	Issuer  string `json:"issuer"`
	JWKSURI string `json:"jwks_uri"`
}

func parseDiscovery(body []byte) (discovery, error) {
	var d discovery
	if json.Unmarshal(body, &d) != nil || d.Issuer == "" || d.JWKSURI == "" {
		return discovery{}, errors.New("the provider's discovery document has no issuer or no jwks_uri")
	}
	return d, nil
}
