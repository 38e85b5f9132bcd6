package auth

import "github.com/felixlog/felix/controlplane/model"

// The bodies of requests and answers (control plane 4.9, 15, 17).

// An ExchangeRequest is what an exchange may ask for. Lists that are nil cut
// nothing.
type ExchangeRequest struct {
	Requested  []string `json:"requested,omitempty"`   // actions to keep
	Resources  []string `json:"resources,omitempty"`   // objects to narrow to
	Audience   string   `json:"audience,omitempty"`    // felix-broker, where it is empty, or felix-controlplane
	ActorToken string   `json:"actor_token,omitempty"` // of a gateway that may act for the user (15.8)
}

// A RefreshRequest spends a refresh token. An audience must be the one of the
// exchange.
type RefreshRequest struct {
	RefreshToken string `json:"refresh_token"`
	Audience     string `json:"audience,omitempty"`
}

// A TokenResponse holds new tokens. Times are in seconds. It is a secret.
type TokenResponse struct {
	FelixToken       string `json:"felix_token"`
	ExpiresIn        uint64 `json:"expires_in"`
	TokenType        string `json:"token_type"` // "Bearer"
	RefreshToken     string `json:"refresh_token,omitempty"`
	RefreshExpiresIn uint64 `json:"refresh_expires_in,omitempty"`
}

// A DelegateRequest asks for a token with which a gateway acts for a user.
type DelegateRequest struct {
	GrantType        string   `json:"grant_type"`
	SubjectToken     string   `json:"subject_token"`
	SubjectTokenType string   `json:"subject_token_type,omitempty"`
	Permissions      []string `json:"permissions,omitempty"` // action:object to narrow to; nil cuts nothing
}

// A DelegateResponse holds such a token. It is a secret.
type DelegateResponse struct {
	AccessToken     string `json:"access_token"`
	IssuedTokenType string `json:"issued_token_type"`
	TokenType       string `json:"token_type"`
	ExpiresIn       uint64 `json:"expires_in"`
}

// A JWKS is the public keys of a tenant, current first (control plane 15.6).
type JWKS struct {
	Keys []JWK `json:"keys"`
}

// A JWK is one Ed25519 public key.
type JWK struct {
	KeyType   string `json:"kty"`
	KeyID     string `json:"kid"`
	Algorithm string `json:"alg"`
	Use       string `json:"use"`
	Curve     string `json:"crv"`
	X         string `json:"x"` // base64url without padding
}

// A KeyView is the key ids of a tenant (control plane 15.7).
type KeyView struct {
	Current   string   `json:"current"`
	Verifying []string `json:"verifying"` // all that are published, current first
}

// A BootstrapRequest initialises a tenant, once.
type BootstrapRequest struct {
	DisplayName            string            `json:"display_name"`
	IdpIssuers             []model.IdpIssuer `json:"idp_issuers"`
	InitialAdminPrincipals []string          `json:"initial_admin_principals"`
	Policies               []model.Policy    `json:"policies,omitempty"`
	Groupings              []model.Grouping  `json:"groupings,omitempty"`
}

// A BootstrapResponse says what became of it.
type BootstrapResponse struct {
	TenantID string `json:"tenant_id"`
	KID      string `json:"kid"`
	JWKSURL  string `json:"jwks_url"` // a path on the API
	Status   string `json:"status"`   // "initialized"
}

// A DevTokenRequest asks for a token made to measure.
type DevTokenRequest struct {
	Subject     string   `json:"subject,omitempty"` // "dev" where it is empty
	Permissions []string `json:"permissions"`       // action:object, within the tenant
	Audience    string   `json:"audience,omitempty"`
	TTLSeconds  uint64   `json:"ttl_seconds,omitempty"` // the usual lifetime where it is 0, at most a day
}
