package api

import (
	"context"
	"errors"
	"net/http"

	"github.com/felixlog/felix/controlplane/auth"
	"github.com/felixlog/felix/controlplane/rbac"
)

// cannotVerifyRetry is when a caller may ask an instance again that was not
// ready to verify him.
const cannotVerifyRetry = unavailableRetry

// authRefusal is the answer to what auth refuses. Auth has logged and counted
// it.
func authRefusal(err error) (*Error, bool) {
	r, ok := errors.AsType[*auth.Refusal](err)
	if !ok {
		return nil, false
	}
	e := &Error{Status: r.Status, Code: r.Code, Message: r.Message}
	if r.Status == http.StatusServiceUnavailable {
		e.RetryAfter = cannotVerifyRetry
	}
	return e, true
}

// ExchangeRequest narrows what an exchange gives (control plane 15.3).
type ExchangeRequest struct {
	Requested  []string `json:"requested" required:"false" maxItems:"1000" doc:"Actions to keep; absent keeps all."`
	Resources  []string `json:"resources" required:"false" maxItems:"1000" doc:"Objects to narrow to; absent narrows nothing."`
	Audience   string   `json:"audience" required:"false" nullable:"true" doc:"felix-broker where it is absent, or felix-controlplane."`
	ActorToken string   `json:"actor_token" required:"false" nullable:"true" doc:"The token of a gateway that may act for the user."`
}

// RefreshRequest spends a refresh token (control plane 15.5).
type RefreshRequest struct {
	RefreshToken string `json:"refresh_token"`
	Audience     string `json:"audience" required:"false" nullable:"true" doc:"That of the exchange."`
}

// DelegateRequest asks for a token with which a gateway acts for a user
// (control plane 15.8).
type DelegateRequest struct {
	GrantType        string   `json:"grant_type"`
	SubjectToken     string   `json:"subject_token"`
	SubjectTokenType string   `json:"subject_token_type" required:"false" nullable:"true"`
	Permissions      []string `json:"permissions" required:"false" maxItems:"1000" doc:"action:object to narrow to; absent narrows nothing."`
}

// RevokeRequest ends the sessions of a principal.
type RevokeRequest struct {
	PrincipalID string `json:"principal_id" minLength:"1" maxLength:"512"`
}

// RevokeResponse counts the refresh tokens that were revoked.
type RevokeResponse struct {
	Revoked int `json:"revoked"`
}

type tokenOut struct{ Body auth.TokenResponse }

// tokenRoutes are those of control plane 4.9 that give and end tokens.
func (s *surface) tokenRoutes() {
	const tag, base = "tokens", "/v1/tenants/{tenant_id}"
	asked := []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden}
	add(s, route{
		id: "exchange-token", method: http.MethodPost, path: base + "/token/exchange", tag: tag,
		summary: "Exchange an identity provider's token for a Felix token",
		about:   "The bearer is the token of one of the tenant's identity providers. The body is optional.",
		limited: true, hasBody: true, refuses: asked,
	}, func(ctx context.Context, in *struct {
		InTenant
		Authorization string `header:"Authorization"`
		Body          *ExchangeRequest
	}) (*tokenOut, error) {
		// A missing or malformed header is an empty token, which Exchange refuses.
		upstream, _ := auth.BearerToken(in.Authorization)
		var r auth.ExchangeRequest
		if in.Body != nil {
			r = auth.ExchangeRequest(*in.Body)
		}
		t, err := s.o.Auth.Exchange(ctx, in.TenantID, upstream, r)
		return tokenAnswer(t, err)
	})
	add(s, route{
		id: "refresh-token", method: http.MethodPost, path: base + "/token/refresh", tag: tag, summary: "Spend a refresh token for new tokens",
		limited: true, hasBody: true, refuses: []int{http.StatusForbidden},
	}, func(ctx context.Context, in *struct {
		InTenant
		Body RefreshRequest
	}) (*tokenOut, error) {
		t, err := s.o.Auth.Refresh(ctx, in.TenantID, auth.RefreshRequest(in.Body))
		return tokenAnswer(t, err)
	})
	add(s, route{
		id: "delegate-token", method: http.MethodPost, path: base + "/token/delegate", tag: tag, summary: "Get a token to act for a user",
		who: pathTenant, allow: over(rbac.TokenDelegate, theTenant), hasBody: true, refuses: asked,
	}, func(ctx context.Context, in *struct {
		InTenant
		Body DelegateRequest
	}) (*struct{ Body auth.DelegateResponse }, error) {
		t, err := s.o.Auth.Delegate(ctx, callerOf(ctx), auth.DelegateRequest(in.Body))
		if err != nil {
			return nil, err
		}
		return &struct{ Body auth.DelegateResponse }{*t}, nil
	})
	add(s, route{
		id: "revoke-refresh-tokens", method: http.MethodPost, path: base + "/refresh-tokens/revoke", tag: tag,
		summary: "End all sessions of a principal", who: pathTenant, allow: over(rbac.TenantManage, theTenant), hasBody: true,
		refuses: []int{http.StatusNotFound},
	}, func(ctx context.Context, in *struct {
		InTenant
		Body RevokeRequest
	}) (*struct{ Body RevokeResponse }, error) {
		n, err := s.o.Auth.RevokeRefreshTokens(ctx, callerOf(ctx), in.TenantID, in.Body.PrincipalID)
		return &struct{ Body RevokeResponse }{RevokeResponse{n}}, err
	})
	add(s, route{
		id: "tenant-jwks", method: http.MethodGet, path: base + "/.well-known/jwks.json", tag: tag, summary: "The public keys of a tenant",
		refuses: []int{http.StatusNotFound},
	}, func(ctx context.Context, in *InTenant) (*struct{ Body auth.JWKS }, error) {
		keys, err := s.o.Auth.JWKS(ctx, in.TenantID)
		return &struct{ Body auth.JWKS }{keys}, err
	})
}

func tokenAnswer(t *auth.TokenResponse, err error) (*tokenOut, error) {
	if err != nil {
		return nil, err
	}
	return &tokenOut{*t}, nil
}
