package credential

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"
)

// claims are what the broker reads of its own token. It does not check the
// signature: the control plane does.
type claims struct {
	tenant  string
	issued  time.Time // zero where it is not said
	expires time.Time // zero where it is not said
}

// from is the claims of a token that was issued just now, by whatever clock, in
// the time that now is of.
func (c claims) from(now time.Time) claims {
	if !c.issued.IsZero() && c.issued.Before(c.expires) {
		c.issued, c.expires = now, now.Add(c.expires.Sub(c.issued))
	}
	return c
}

// farFuture is beyond the expiry of any token that is meant to end.
const farFuture = 100 * 365 * 24 * time.Hour

// ends says whether the token expires in a time worth the name.
func (c claims) ends(now time.Time) bool {
	return !c.expires.IsZero() && c.expires.Sub(now) < farFuture
}

var errToken = errors.New("the credential is not a Felix token: give one from a token exchange with audience felix-controlplane")

func parse(token string) (claims, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return claims{}, errToken
	}
	body, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return claims{}, errToken
	}
	var c struct {
		Tenant  string  `json:"tid"`
		Issued  float64 `json:"iat"`
		Expires float64 `json:"exp"`
	}
	if json.Unmarshal(body, &c) != nil || c.Tenant == "" {
		return claims{}, errToken
	}
	return claims{tenant: c.Tenant, issued: seconds(c.Issued), expires: seconds(c.Expires)}, nil
}

func seconds(s float64) time.Time {
	if s <= 0 || s > math.MaxInt32*1000.0 {
		return time.Time{}
	}
	return time.Unix(int64(s), 0)
}
