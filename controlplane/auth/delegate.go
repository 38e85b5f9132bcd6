package auth

import (
	"context"
	"errors"
	"slices"

	"github.com/felixlog/felix/controlplane/rbac"
	token "github.com/felixlog/felix/internal/auth"
)

// The names of RFC 8693.
const (
	grantExchange = "urn:ietf:params:oauth:grant-type:token-exchange"
	typeJWT       = "urn:ietf:params:oauth:token-type:jwt"
)

// Delegate makes a token with which a gateway acts for a user at brokers
// (control plane 15.8): no wider and no longer than the user's own, which must
// name the gateway.
func (s *Service) Delegate(ctx context.Context, c *Caller, r DelegateRequest) (*DelegateResponse, error) {
	if c.Audience != token.AudienceControlPlane || c.Actor != "" {
		return nil, s.lacks(ctx, c, "delegation needs a token for "+token.AudienceControlPlane+" that is not itself delegated")
	}
	if err := s.Require(ctx, c, rbac.TokenDelegate, rbac.Tenant(c.Tenant)); err != nil {
		return nil, err
	}
	switch {
	case r.GrantType != grantExchange:
		return nil, invalid("grant_type must be %s", grantExchange)
	case r.SubjectTokenType != "" && r.SubjectTokenType != typeJWT:
		return nil, invalid("subject_token_type must be %s", typeJWT)
	case r.SubjectToken == "":
		return nil, invalid("subject_token is empty")
	case len(r.Permissions) > maxResources:
		return nil, invalid("at most %d permissions are allowed", maxResources)
	}
	user, err := s.clients.VerifyClaims(ctx, c.Tenant, r.SubjectToken)
	if err != nil {
		var t *token.TokenError
		if errors.As(err, &t) && t.Reason == token.ReasonUnavailable {
			return nil, s.unavailable(ctx, c.Tenant, t.Err)
		}
		return nil, invalid("subject_token is not a valid token for %s of this tenant", token.AudienceBroker)
	}
	switch {
	case user.Actor != "":
		return nil, s.lacks(ctx, c, "the subject_token is itself delegated")
	case user.MayAct != c.Subject && (user.MayAct != "" || !s.unbound):
		return nil, s.lacks(ctx, c, "the subject_token does not name the caller as may_act; exchange it with an actor_token")
	}
	return s.delegated(ctx, c, user, r.Permissions)
}

func (s *Service) delegated(ctx context.Context, c *Caller, user *token.Claims, wanted []string) (*DelegateResponse, error) {
	perms := permissionsOf(c.Tenant, user.Permissions)
	if wanted != nil {
		perms = cut(perms, wanted)
	}
	if len(perms) == 0 {
		return nil, s.lacks(ctx, c, "no permissions")
	}
	now := s.now()
	expires := now.Add(s.accessTTL)
	if user.Expires.Before(expires) {
		expires = user.Expires
	}
	if !expires.After(now) {
		return nil, invalid("subject_token has expired")
	}
	signed, err := s.mint(ctx, token.Claims{
		Tenant: c.Tenant, Subject: user.Subject, Actor: c.Subject, Audience: token.AudienceBroker,
		Permissions: texts(perms), IssuedAt: now, Expires: expires,
	})
	if err != nil {
		return nil, err
	}
	s.observer.Delegated()
	return &DelegateResponse{
		AccessToken: signed, IssuedTokenType: typeJWT, TokenType: "Bearer",
		ExpiresIn: uint64(expires.Unix() - now.Unix()),
	}, nil
}

// cut narrows permissions to those wanted. One that does not parse matches
// nothing.
func cut(perms []rbac.Permission, wanted []string) []rbac.Permission {
	kept := []rbac.Permission{}
	for _, text := range wanted {
		if p, err := rbac.ParsePermission(text); err == nil {
			kept = append(kept, rbac.Narrow(perms, []rbac.Action{p.Action}, []rbac.Object{p.Object})...)
		}
	}
	return slices.Compact(slices.SortedFunc(slices.Values(kept), rbac.Permission.Compare))
}
