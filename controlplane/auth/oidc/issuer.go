package oidc

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/felixlog/felix/controlplane/model"
)

// The bounds of an issuer's settings.
const (
	maxAudiences = 64
	maxText      = 512 // bytes of an audience or a claim's name
)

const notGood = "blank, longer than 512 bytes or with control characters"

func good(text string) bool {
	return strings.TrimSpace(text) != "" && len(text) <= maxText && !strings.ContainsFunc(text, unicode.IsControl)
}

// CheckIssuer says why an issuer cannot be trusted as it is written down, nil
// if it can. Nothing is fetched.
//
// An issuer holds no '#' and no '|': both join it with a name, to that of a
// group and to what a principal's id is made of, and one issuer could
// otherwise speak for the principals of another.
func (v *Verifier) CheckIssuer(i model.IdpIssuer) error {
	switch {
	case strings.TrimSpace(i.Issuer) == "":
		return errors.New("issuer is blank")
	case len(i.Issuer) > maxURL:
		return fmt.Errorf("issuer has more than %d bytes", maxURL)
	case strings.ContainsAny(i.Issuer, "#|"):
		return errors.New("issuer holds a # or a |")
	case strings.ContainsFunc(i.Issuer, func(r rune) bool { return unicode.IsControl(r) || unicode.IsSpace(r) }):
		return errors.New("issuer holds a blank or a control character")
	case len(i.Audiences) == 0:
		return errors.New("audiences is empty: name at least one that tokens must be for")
	case len(i.Audiences) > maxAudiences:
		return fmt.Errorf("audiences has %d entries, at most %d are allowed", len(i.Audiences), maxAudiences)
	}
	for _, audience := range i.Audiences {
		if !good(audience) {
			return fmt.Errorf("audiences holds one that is %s", notGood)
		}
	}
	if c := i.ClaimMappings.SubjectClaim; c != "" && !good(c) {
		return fmt.Errorf("subject_claim is %s", notGood)
	}
	if c := i.ClaimMappings.GroupsClaim; c != nil && !good(*c) {
		return fmt.Errorf("groups_claim is %s; leave it out for no groups", notGood)
	}
	if i.JWKSURL != nil {
		if err := v.o.checkURL(*i.JWKSURL); err != nil {
			return fmt.Errorf("jwks_url: %w", err)
		}
	}
	if i.DiscoveryURL != nil {
		if err := v.o.checkURL(*i.DiscoveryURL); err != nil {
			return fmt.Errorf("discovery_url: %w", err)
		}
	}
	if i.JWKSURL == nil && i.DiscoveryURL == nil {
		if err := v.o.checkURL(discoveryAddress(i)); err != nil {
			return fmt.Errorf("issuer is where the provider is discovered, as there is no discovery_url and no jwks_url: %w", err)
		}
	}
	return nil
}
