package auth

// A Reason says why a token was refused, for logs and counters.
type Reason string

// The reasons, in the order in which a token is checked.
const (
	ReasonTenantID    Reason = "tenant_id"        // the tenant id asked for is not one
	ReasonMalformed   Reason = "malformed"        // not a token, or a claim of the wrong kind
	ReasonAlgorithm   Reason = "algorithm"        // signed with anything but Ed25519
	ReasonTenantKeys  Reason = "unknown_tenant"   // the tenant has no keys
	ReasonUnavailable Reason = "keys_unavailable" // the keys could not be had now
	ReasonSignature   Reason = "signature"        // signed by none of the tenant's keys
	ReasonIssuer      Reason = "issuer"
	ReasonAudience    Reason = "audience"
	ReasonExpired     Reason = "expired"
	ReasonNotYetValid Reason = "not_yet_valid"
	ReasonTenant      Reason = "tenant_mismatch" // a token of another tenant
	ReasonPermission  Reason = "permission"      // a permission this broker does not know
)

var reasonTexts = map[Reason]string{
	ReasonTenantID:    "tenant id is not valid",
	ReasonMalformed:   "token is malformed",
	ReasonAlgorithm:   "token is not signed with EdDSA (Ed25519)",
	ReasonTenantKeys:  "tenant is not known",
	ReasonUnavailable: "signing keys of the tenant are not available",
	ReasonSignature:   "token is not signed by a key of the tenant",
	ReasonIssuer:      "token issuer is not " + tokenIssuer,
	ReasonAudience:    "token audience is not " + AudienceBroker,
	ReasonExpired:     "token has expired",
	ReasonNotYetValid: "token is not valid yet",
	ReasonTenant:      "token is for another tenant",
	ReasonPermission:  "token holds a permission that is not known",
}

// A TokenError is a refused token. Neither its text nor what it wraps holds a
// part of the token, except the permission of a [PermissionError].
type TokenError struct {
	Reason Reason
	Err    error // the cause, if there is more to say
}

func (e *TokenError) Error() string {
	text := reasonTexts[e.Reason]
	if e.Err != nil {
		return text + ": " + e.Err.Error()
	}
	return text
}

func (e *TokenError) Unwrap() error { return e.Err }

// Temporary says whether the same token may be accepted a little later.
func (e *TokenError) Temporary() bool {
	return e.Reason == ReasonUnavailable || e.Reason == ReasonNotYetValid
}

func refuse(reason Reason) error { return &TokenError{Reason: reason} }
