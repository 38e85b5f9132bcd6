package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Leeway is how long after its expiry a token is still accepted, and how long
// the rights of a stream that presented it last (wire 17.1).
const Leeway = 60 * time.Second

// A Principal is whom a verified token speaks for. It is immutable.
type Principal struct {
	Tenant  string
	Subject string    // the token's sub, a principal id
	Expires time.Time // as written in the token, without leeway
	Grants  *Grants
}

// Deadline is when the rights end: the token's expiry and the leeway.
func (p *Principal) Deadline() time.Time { return p.Expires.Add(Leeway) }

// PrincipalID derives a token's subject from the upstream identity: the
// lower-case hex SHA-256 of "issuer|subject" (wire 17.1).
func PrincipalID(issuer, subject string) string {
	sum := sha256.Sum256([]byte(issuer + "|" + subject))
	return hex.EncodeToString(sum[:])
}
