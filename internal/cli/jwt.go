package cli

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// tokenBody is what a token says of itself, unverified.
type tokenBody struct {
	Issuer      string   `json:"iss,omitempty"`
	Audience    any      `json:"aud,omitempty"` // a word or a list
	Subject     string   `json:"sub,omitempty"`
	Tenant      string   `json:"tid,omitempty"`
	IssuedAt    float64  `json:"iat,omitempty"`
	Expires     float64  `json:"exp,omitempty"`
	Permissions []string `json:"perms,omitempty"`
}

// tokenHead is the head of a token.
type tokenHead struct {
	Algorithm string `json:"alg"`
	KeyID     string `json:"kid,omitempty"`
}

var errNoJWT = errors.New("not a token: want three parts of base64 with dots between")

// decodeToken reads a token without verifying it.
func decodeToken(token string) (head tokenHead, body tokenBody, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return head, body, errNoJWT
	}
	for i, into := range []any{&head, &body} {
		data, err := base64.RawURLEncoding.DecodeString(parts[i])
		if err != nil || json.Unmarshal(data, into) != nil {
			return head, body, errNoJWT
		}
	}
	return head, body, nil
}

// expiry of a token; the zero time where it does not tell.
func (b *tokenBody) expiry() time.Time {
	if b.Expires <= 0 || b.Expires > 1<<40 {
		return time.Time{}
	}
	return time.Unix(int64(b.Expires), 0)
}

// renewBefore is how long before its expiry a token is renewed.
const renewBefore = time.Minute

func aboutToExpire(token string) bool { return expiresWithin(token, renewBefore) }

func hasExpired(token string) bool { return expiresWithin(token, 0) }

func expiresWithin(token string, d time.Duration) bool {
	_, body, err := decodeToken(token)
	return err == nil && !body.expiry().IsZero() && time.Until(body.expiry()) < d
}
