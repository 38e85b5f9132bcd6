package apiclient

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/felixlog/felix/controlplane/model"
)

// The audiences of tokens (control plane 15.4).
const (
	AudienceBroker       = "felix-broker"
	AudienceControlPlane = "felix-controlplane"
)

// An ExchangeRequest narrows what an exchange gives; the zero value does not.
type ExchangeRequest struct {
	Requested  []string `json:"requested,omitempty"` // actions
	Resources  []string `json:"resources,omitempty"` // objects
	Audience   string   `json:"audience,omitempty"`  // felix-broker where it is empty
	ActorToken string   `json:"actor_token,omitempty"`
}

// A TokenResponse is a Felix token and what renews it.
type TokenResponse struct {
	FelixToken       string `json:"felix_token"`
	ExpiresIn        int64  `json:"expires_in"` // seconds
	TokenType        string `json:"token_type"`
	RefreshToken     string `json:"refresh_token"`
	RefreshExpiresIn int64  `json:"refresh_expires_in"` // seconds
}

// String hides the tokens.
func (t TokenResponse) String() string { return "token response" }

// GoString hides the tokens.
func (t TokenResponse) GoString() string { return t.String() }

var errNoToken = errors.New("the answer holds no token")

// Exchange gives a Felix token for one of the tenant's identity provider
// (control plane 15.3).
func (c *Client) Exchange(ctx context.Context, tenant, upstream string, r ExchangeRequest) (TokenResponse, error) {
	var got TokenResponse
	err := c.do(ctx, call{
		method: http.MethodPost, path: path("v1", "tenants", tenant, "token", "exchange"), body: r, into: &got,
		open: true, header: http.Header{"Authorization": {"Bearer " + upstream}}, max: 1 << 20,
	})
	if err == nil && got.FelixToken == "" {
		err = errNoToken
	}
	return got, err
}

// Refresh gives new tokens for a refresh token, which is spent by it: a second
// use of one ends the session (control plane 15.5). It is therefore never
// repeated by the client.
func (c *Client) Refresh(ctx context.Context, tenant, refreshToken, audience string) (TokenResponse, error) {
	body := struct {
		RefreshToken string `json:"refresh_token"`
		Audience     string `json:"audience,omitempty"`
	}{refreshToken, audience}
	var got TokenResponse
	err := c.do(ctx, call{
		method: http.MethodPost, path: path("v1", "tenants", tenant, "token", "refresh"), body: body, into: &got, open: true, max: 1 << 20,
	})
	if err == nil && got.FelixToken == "" {
		err = errNoToken
	}
	return got, err
}

// A DelegateRequest asks for a token for a user, to act for it (control plane
// 15.8).
type DelegateRequest struct {
	GrantType        string   `json:"grant_type"`
	SubjectToken     string   `json:"subject_token"`
	SubjectTokenType string   `json:"subject_token_type,omitempty"`
	Permissions      []string `json:"permissions,omitempty"`
}

// A DelegateResponse is the token for it.
type DelegateResponse struct {
	AccessToken     string `json:"access_token"`
	IssuedTokenType string `json:"issued_token_type"`
	TokenType       string `json:"token_type"`
	ExpiresIn       int64  `json:"expires_in"` // seconds
}

// String hides the token.
func (d DelegateResponse) String() string { return "delegated token" }

// GoString hides the token.
func (d DelegateResponse) GoString() string { return d.String() }

// Delegate gives a token with which the caller acts for a user.
func (c *Client) Delegate(ctx context.Context, tenant, subjectToken string, permissions []string) (DelegateResponse, error) {
	body := DelegateRequest{
		GrantType:    "urn:ietf:params:oauth:grant-type:token-exchange",
		SubjectToken: subjectToken, SubjectTokenType: "urn:ietf:params:oauth:token-type:jwt", Permissions: permissions,
	}
	var got DelegateResponse
	err := c.create(ctx, path("v1", "tenants", tenant, "token", "delegate"), body, &got)
	return got, err
}

// JWKS is the set of a tenant's public keys, as JSON (control plane 15.6).
func (c *Client) JWKS(ctx context.Context, tenant string) (json.RawMessage, error) {
	var got json.RawMessage
	err := c.getOpen(ctx, path("v1", "tenants", tenant, ".well-known", "jwks.json"), &got)
	return got, err
}

// A BootstrapRequest is how a tenant begins (control plane 17).
type BootstrapRequest struct {
	DisplayName            string            `json:"display_name"`
	IdpIssuers             []model.IdpIssuer `json:"idp_issuers"`
	InitialAdminPrincipals []string          `json:"initial_admin_principals"`
	Policies               []model.Policy    `json:"policies,omitempty"`
	Groupings              []model.Grouping  `json:"groupings,omitempty"`
}

// A BootstrapResponse says that it has begun.
type BootstrapResponse struct {
	TenantID string `json:"tenant_id"`
	KID      string `json:"kid"`
	JWKSURL  string `json:"jwks_url"`
	Status   string `json:"status"`
}

// bootstrapHeader carries the bootstrap token.
const bootstrapHeader = "X-Felix-Bootstrap-Token"

// Bootstrap initialises a tenant. The client's URL must be that of the
// bootstrap listener.
func (c *Client) Bootstrap(ctx context.Context, tenant, bootstrapToken string, r BootstrapRequest) (BootstrapResponse, error) {
	if r.IdpIssuers == nil {
		r.IdpIssuers = []model.IdpIssuer{}
	}
	if r.InitialAdminPrincipals == nil {
		r.InitialAdminPrincipals = []string{}
	}
	var got BootstrapResponse
	err := c.do(ctx, call{
		method: http.MethodPost, path: path("internal", "bootstrap", "tenants", tenant, "initialize"), body: r, into: &got,
		open: true, header: http.Header{bootstrapHeader: {bootstrapToken}}, max: 1 << 20,
	})
	return got, err
}

// A DevTokenRequest asks for a token without an identity provider, for
// development.
type DevTokenRequest struct {
	Subject     string   `json:"subject"`
	Permissions []string `json:"permissions"`
	Audience    string   `json:"audience,omitempty"`
	TTLSeconds  uint64   `json:"ttl_seconds,omitempty"`
}

// DevToken gives a token on the bootstrap listener, where that is switched on.
func (c *Client) DevToken(ctx context.Context, tenant, bootstrapToken string, r DevTokenRequest) (TokenResponse, error) {
	var got TokenResponse
	err := c.do(ctx, call{
		method: http.MethodPost, path: path("internal", "bootstrap", "tenants", tenant, "dev-token"), body: r, into: &got,
		open: true, header: http.Header{bootstrapHeader: {bootstrapToken}}, max: 1 << 20,
	})
	return got, err
}
