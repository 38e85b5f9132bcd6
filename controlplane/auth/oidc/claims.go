package oidc

import (
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/felixlog/felix/controlplane/model"
)

// The bounds of what a token may say.
const (
	maxSubject = 1024 // bytes
	maxGroups  = 1000
	maxSecond  = 253402300799 // the last one of the year 9999
)

// Claims are read by their exact names: the usual decoding takes "ISS" for
// "iss".
type claims map[string]json.RawMessage

func parseClaims(payload []byte) (claims, error) {
	var c claims
	if json.Unmarshal(payload, &c) != nil || c == nil {
		return nil, malformed("the upstream token holds no claims")
	}
	return c, nil
}

// text is a claim that is a string, empty if it is not one.
func (c claims) text(name string) string {
	var s string
	if json.Unmarshal(c[name], &s) != nil {
		return ""
	}
	return s
}

// texts is a claim that is a string or a list of them.
func (c claims) texts(name string) ([]string, bool) {
	raw, there := c[name]
	if !there || string(raw) == "null" {
		return nil, true
	}
	var many []string
	if json.Unmarshal(raw, &many) == nil {
		return many, true
	}
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}, true
	}
	return nil, false
}

// seconds is a claim that is a time in Unix seconds.
func (c claims) seconds(name string) (at time.Time, there, good bool) {
	raw, there := c[name]
	if !there {
		return time.Time{}, false, true
	}
	var s *float64
	if json.Unmarshal(raw, &s) != nil || s == nil || *s < 0 || *s > maxSecond {
		return time.Time{}, true, false
	}
	return time.Unix(int64(*s), 0), true, true
}

// identity checks the claims of a token whose signature is good.
func (c claims) identity(issuer model.IdpIssuer, now time.Time) (Identity, error) {
	audiences, good := c.texts("aud")
	if !good || !slices.ContainsFunc(audiences, func(a string) bool { return slices.Contains(issuer.Audiences, a) }) {
		return Identity{}, invalid("the upstream token is for another audience")
	}
	if err := c.checkTimes(now); err != nil {
		return Identity{}, err
	}
	id := Identity{Issuer: issuer.Issuer, Subject: c.text(SubjectClaim(issuer))}
	if id.Subject == "" || len(id.Subject) > maxSubject {
		return Identity{}, invalid("the upstream token has no usable subject")
	}
	if name := issuer.ClaimMappings.GroupsClaim; name != nil {
		if id.Groups, good = c.texts(*name); !good {
			return Identity{}, invalid("the groups of the upstream token are not strings")
		}
		if len(id.Groups) > maxGroups {
			return Identity{}, invalid("the upstream token has too many groups")
		}
		if slices.ContainsFunc(id.Groups, func(g string) bool { return strings.ContainsFunc(g, unicode.IsControl) }) {
			return Identity{}, invalid("a group of the upstream token holds a control character")
		}
	}
	return id, nil
}

func (c claims) checkTimes(now time.Time) error {
	expires, hasExpiry, goodExpiry := c.seconds("exp")
	issued, hasIssue, goodIssue := c.seconds("iat")
	from, _, goodFrom := c.seconds("nbf")
	switch {
	case !goodExpiry || !goodIssue || !goodFrom || !hasExpiry || !hasIssue:
		return invalid("the upstream token does not say from when to when it is valid")
	case now.After(expires.Add(Leeway)):
		return invalid("the upstream token has expired")
	case issued.After(now.Add(Leeway)):
		return invalid("the upstream token was issued in the future; check the clocks")
	case from.After(now.Add(Leeway)):
		return invalid("the upstream token is not valid yet; check the clocks")
	}
	return nil
}

// SubjectClaim is the claim that names a principal of the issuer.
func SubjectClaim(issuer model.IdpIssuer) string {
	if issuer.ClaimMappings.SubjectClaim == "" {
		return "sub"
	}
	return issuer.ClaimMappings.SubjectClaim
}
