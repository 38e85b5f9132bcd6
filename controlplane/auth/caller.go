package auth

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/felixlog/felix/controlplane/rbac"
	token "github.com/felixlog/felix/internal/auth"
)

// A Caller is who a request comes from. It is immutable.
type Caller struct {
	Tenant   string // of the token
	Subject  string // principal id
	Actor    string // who acts for the subject; usually empty
	Audience string // felix-controlplane, unless tokens for brokers are accepted

	perms []rbac.Permission
}

// May says whether the caller holds the action over the object.
func (c *Caller) May(a rbac.Action, o rbac.Object) bool {
	return slices.ContainsFunc(c.perms, func(p rbac.Permission) bool {
		return p.Action == a && p.Object.Contains(o)
	})
}

// Scopes are the objects over which the caller holds the action.
func (c *Caller) Scopes(a rbac.Action) []rbac.Object {
	var scopes []rbac.Object
	for _, p := range c.perms {
		if p.Action == a {
			scopes = append(scopes, p.Object)
		}
	}
	return scopes
}

// BearerToken takes the token out of an Authorization header: exactly "Bearer "
// and the rest, trimmed; blank counts as none (control plane 2).
func BearerToken(header string) (string, bool) {
	rest, found := strings.CutPrefix(header, "Bearer ")
	rest = strings.TrimSpace(rest)
	return rest, found && rest != ""
}

// Authenticate finds out who calls, by the Authorization header. With a tenant
// the token must be of that tenant; without, it may be of any. Whether a tenant
// exists cannot be told from the answer (control plane 2).
func (s *Service) Authenticate(ctx context.Context, authorization, tenant string) (*Caller, error) {
	raw, found := BearerToken(authorization)
	if !found {
		return nil, s.refuse(ctx, tenant, unauthorized(ReasonMissingToken, "there is no token: send it as Authorization: Bearer TOKEN"))
	}
	own, err := token.TenantOf(raw)
	if err != nil {
		return nil, s.refuse(ctx, tenant, unauthorized(ReasonMalformedToken, "the token is malformed, or not one of ours"))
	}
	claims, err := s.callers.VerifyClaims(ctx, own, raw)
	if err != nil {
		return nil, s.notVerified(ctx, own, err)
	}
	if tenant != "" && own != tenant {
		return nil, s.refuse(ctx, own, forbidden(ReasonTenantMismatch, "the token is of another tenant"))
	}
	return &Caller{
		Tenant: own, Subject: claims.Subject, Actor: claims.Actor, Audience: claims.Audience,
		perms: permissionsOf(own, claims.Permissions),
	}, nil
}

// permissionsOf parses what a token holds. What does not parse or names another
// tenant is skipped, never trusted.
func permissionsOf(tenant string, texts []string) []rbac.Permission {
	perms := make([]rbac.Permission, 0, len(texts))
	for _, text := range texts {
		if p, err := rbac.ParsePermission(text); err == nil && p.Object.Within(tenant) {
			perms = append(perms, p)
		}
	}
	return perms
}

// notVerified turns a token error into an answer. What is said before the
// signature has been checked is the same for every tenant, known or not.
func (s *Service) notVerified(ctx context.Context, tenant string, err error) error {
	var t *token.TokenError
	if !errors.As(err, &t) {
		return err
	}
	switch t.Reason {
	case token.ReasonUnavailable:
		return s.unavailable(ctx, tenant, t.Err)
	case token.ReasonTenantKeys:
		if s.ready(ctx) != nil {
			return s.refuse(ctx, tenant, cannotVerify())
		}
		return s.refuse(ctx, tenant, unauthorized(ReasonInvalidToken, unsigned))
	case token.ReasonMalformed, token.ReasonTenantID:
		return s.refuse(ctx, tenant, unauthorized(ReasonMalformedToken, "the token is malformed, or not one of ours"))
	}
	return s.refuse(ctx, tenant, unauthorized(ReasonInvalidToken, invalidTexts[t.Reason]))
}

const unsigned = "the token is not signed by its tenant"

var invalidTexts = map[token.Reason]string{
	token.ReasonAlgorithm:   unsigned,
	token.ReasonSignature:   unsigned,
	token.ReasonIssuer:      "the token is of another issuer",
	token.ReasonAudience:    "the token is for another audience; exchange one for felix-controlplane",
	token.ReasonExpired:     "the token has expired; refresh it",
	token.ReasonNotYetValid: "the token is not valid yet; check the clocks",
	token.ReasonTenant:      "the token is of another tenant than it says",
}

// Require is nil if the caller may do it. Otherwise it is a [*Refusal], logged
// and counted.
func (s *Service) Require(ctx context.Context, c *Caller, a rbac.Action, o rbac.Object) error {
	if c.May(a, o) {
		return nil
	}
	return s.lacks(ctx, c, "this needs "+a.String()+" over "+clip(o.String()))
}

// requireIn is Require for what only a token of that tenant may do.
func (s *Service) requireIn(ctx context.Context, c *Caller, tenant string, a rbac.Action, o rbac.Object) error {
	if err := s.requireTenant(ctx, c, tenant); err != nil {
		return err
	}
	return s.Require(ctx, c, a, o)
}

func (s *Service) requireTenant(ctx context.Context, c *Caller, tenant string) error {
	if c.Tenant == tenant {
		return nil
	}
	return s.refuse(ctx, c.Tenant, forbidden(ReasonTenantMismatch, "the token is of another tenant"))
}

// requireScope is nil if the caller holds the action over anything.
func (s *Service) requireScope(ctx context.Context, c *Caller, a rbac.Action) ([]rbac.Object, error) {
	scopes := c.Scopes(a)
	if len(scopes) == 0 {
		return nil, s.lacks(ctx, c, "this needs "+a.String())
	}
	return scopes, nil
}

func (s *Service) lacks(ctx context.Context, c *Caller, message string) *Refusal {
	return s.refuse(ctx, c.Tenant, &Refusal{
		Status: http.StatusForbidden, Code: CodeForbidden, Message: message, Reason: ReasonForbidden,
	})
}
