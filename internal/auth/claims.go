package auth

import (
	"encoding/json"
	"errors"
	"math"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// tokenIssuer is the fixed issuer of a token (wire 17.1).
const tokenIssuer = "felix-auth"

// The audiences of tokens. They are apart so that a broker, which sees the
// tokens of its clients, has nothing that the control plane would take.
const (
	AudienceBroker       = "felix-broker"
	AudienceControlPlane = "felix-controlplane"
)

// claims is the body of a token. The audience is a single string on purpose:
// a list, which a token for several services would carry, does not parse.
type claims struct {
	Issuer    string   `json:"iss"`
	Audience  string   `json:"aud"`
	Subject   string   `json:"sub"`
	Tenant    string   `json:"tid"`
	IssuedAt  seconds  `json:"iat,omitempty"`
	NotBefore seconds  `json:"nbf,omitempty"`
	Expires   *seconds `json:"exp"`
	ID        string   `json:"jti,omitempty"`
	Perms     []string `json:"perms"`
	Actor     *party   `json:"act,omitempty"`     // who acts for the subject
	MayAct    *party   `json:"may_act,omitempty"` // who may have itself made the actor
}

// A party is somebody named in a token (RFC 8693 4.1).
type party struct {
	Subject string `json:"sub"`
}

func partyOf(subject string) *party {
	if subject == "" {
		return nil
	}
	return &party{subject}
}

func (p *party) subject() string {
	if p == nil {
		return ""
	}
	return p.Subject
}

// seconds is a time as a token writes it: Unix seconds, perhaps with a
// fraction, which is cut off.
type seconds int64

// maxSeconds is the last second of the year 9999, beyond which a time can not
// be written in the usual formats.
const maxSeconds = 253402300799

var errSeconds = errors.New("not a time in Unix seconds")

func (s *seconds) UnmarshalJSON(b []byte) error {
	var f float64
	if err := json.Unmarshal(b, &f); err != nil {
		return errSeconds
	}
	if f < 0 || f > maxSeconds {
		return errSeconds
	}
	*s = seconds(math.Floor(f))
	return nil
}

func (s seconds) time() time.Time { return time.Unix(int64(s), 0) }

// The jwt package wants these of a claims type. Its own validation is off (the
// verifier checks in the order and with the reasons of this package), so they
// only report what is there.

func (c *claims) GetExpirationTime() (*jwt.NumericDate, error) {
	if c.Expires == nil {
		return nil, nil
	}
	return jwt.NewNumericDate(c.Expires.time()), nil
}

func (c *claims) GetIssuedAt() (*jwt.NumericDate, error) {
	return jwt.NewNumericDate(c.IssuedAt.time()), nil
}

func (c *claims) GetNotBefore() (*jwt.NumericDate, error) {
	return jwt.NewNumericDate(c.NotBefore.time()), nil
}

func (c *claims) GetIssuer() (string, error)  { return c.Issuer, nil }
func (c *claims) GetSubject() (string, error) { return c.Subject, nil }

func (c *claims) GetAudience() (jwt.ClaimStrings, error) {
	return jwt.ClaimStrings{c.Audience}, nil
}
