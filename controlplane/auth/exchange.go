package auth

import (
	"context"
	"errors"

	"github.com/felixlog/felix/controlplane/auth/oidc"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/rbac"
	token "github.com/felixlog/felix/internal/auth"
)

// The bounds of what an exchange may ask for.
const (
	maxRequested = 64
	maxResources = 1000
)

const noTenant = "tenant not allowed"

// A session is what tokens are made from, at the exchange and at each refresh.
type session struct {
	tenant    string
	principal string
	groups    []string // issuer-scoped
	issuer    string   // that vouched for principal and groups
	audience  string
	actor     string // who may act for the principal
	narrowing *model.Narrowing
	family    string
}

// GroupSubject is the subject under which an issuer's group appears in rules.
// It names the issuer, so that a group of one says nothing of a group of the
// same name of another (control plane 15.2).
func GroupSubject(issuer, group string) string { return "group:" + issuer + "#" + group }

// Exchange takes a token of one of the tenant's identity providers for tokens of
// ours (control plane 15.3). upstreamToken is what was in the Authorization
// header; empty if there was none. It goes by the issuers and rules that there
// are when it is asked, at whichever instance they were changed.
func (s *Service) Exchange(ctx context.Context, tenant, upstreamToken string, r ExchangeRequest) (*TokenResponse, error) {
	if upstreamToken == "" {
		return nil, s.refuse(ctx, tenant, unauthorized(ReasonMissingToken,
			"there is no token of your identity provider: send it as Authorization: Bearer TOKEN"))
	}
	audience, err := checkAudience(r.Audience)
	if err != nil {
		return nil, err
	}
	if len(r.Requested) > maxRequested || len(r.Resources) > maxResources {
		return nil, invalid("at most %d requested actions and %d resources are allowed", maxRequested, maxResources)
	}
	if err := s.catchUp(ctx, tenant); err != nil {
		return nil, err
	}
	identity, err := s.identify(ctx, tenant, upstreamToken)
	if err != nil {
		return nil, err
	}
	in := session{
		tenant: tenant, principal: token.PrincipalID(identity.Issuer, identity.Subject), issuer: identity.Issuer,
		audience: audience, narrowing: narrowingOf(r),
	}
	for _, group := range identity.Groups {
		in.groups = append(in.groups, GroupSubject(identity.Issuer, group))
	}
	if in.actor, err = s.gateway(ctx, tenant, audience, r.ActorToken); err != nil {
		return nil, err
	}
	perms, err := s.permissions(ctx, in)
	if err != nil {
		return nil, s.tenantGone(ctx, tenant, err)
	}
	if len(perms) == 0 {
		return nil, s.refuse(ctx, tenant, forbidden(ReasonForbidden, "no permissions"))
	}
	if in.family, err = s.randomHex(16); err != nil {
		return nil, err
	}
	answer, err := s.issue(ctx, in, perms)
	if err != nil {
		return nil, s.tenantGone(ctx, tenant, err)
	}
	s.observer.RefreshIssued("exchange")
	return answer, nil
}

// identify checks the upstream token against the issuers of the tenant.
func (s *Service) identify(ctx context.Context, tenant, upstreamToken string) (oidc.Identity, error) {
	if !token.ValidTenant(tenant) {
		return oidc.Identity{}, s.unknownTenant(ctx, tenant)
	}
	issuers, err := s.store.Issuers(ctx, tenant)
	if err != nil {
		return oidc.Identity{}, s.tenantGone(ctx, tenant, err)
	}
	if len(issuers) == 0 {
		return oidc.Identity{}, s.unknownTenant(ctx, tenant)
	}
	identity, err := s.upstream.Verify(ctx, upstreamToken, issuers)
	var refused *oidc.Error
	switch {
	case err == nil:
		return identity, nil
	case !errors.As(err, &refused):
		return oidc.Identity{}, err
	case refused.Kind == oidc.Issuer:
		return oidc.Identity{}, s.refuse(ctx, tenant, forbidden(ReasonForbidden, refused.Message))
	case refused.Kind == oidc.Malformed:
		return oidc.Identity{}, s.refuse(ctx, tenant, unauthorized(ReasonMalformedToken, refused.Message))
	}
	return oidc.Identity{}, s.refuse(ctx, tenant, unauthorized(ReasonInvalidToken, refused.Message))
}

// unknownTenant answers for a tenant that is not there or trusts nobody; which
// of the two is not for strangers.
func (s *Service) unknownTenant(ctx context.Context, tenant string) error {
	if s.ready(ctx) != nil {
		return s.refuse(ctx, tenant, cannotVerify())
	}
	return s.refuse(ctx, tenant, forbidden(ReasonForbidden, noTenant))
}

// tenantGone gives the store's "not found" that answer, and leaves other errors
// as they are.
func (s *Service) tenantGone(ctx context.Context, tenant string, err error) error {
	if isMissing(err) {
		return s.unknownTenant(ctx, tenant)
	}
	return err
}

// gateway is the principal of an actor token: one for the control plane, of the
// same tenant, that may delegate and acts for itself. It will be let act for
// the user at brokers (control plane 15.8).
func (s *Service) gateway(ctx context.Context, tenant, audience, actorToken string) (string, error) {
	if actorToken == "" {
		return "", nil
	}
	if audience != token.AudienceBroker {
		return "", invalid("actor_token goes with the audience %s only", token.AudienceBroker)
	}
	claims, err := s.gateways.VerifyClaims(ctx, tenant, actorToken)
	if err != nil {
		var t *token.TokenError
		if errors.As(err, &t) && t.Reason == token.ReasonUnavailable {
			return "", s.unavailable(ctx, tenant, t.Err)
		}
		return "", s.refuse(ctx, tenant, forbidden(ReasonForbidden, "the actor_token is not a valid token for "+token.AudienceControlPlane))
	}
	caller := Caller{Tenant: tenant, perms: permissionsOf(tenant, claims.Permissions)}
	if claims.Actor != "" || !caller.May(rbac.TokenDelegate, rbac.Tenant(tenant)) {
		return "", s.refuse(ctx, tenant, forbidden(ReasonForbidden, "the actor_token does not hold token.delegate over the tenant"))
	}
	return claims.Subject, nil
}

// narrowingOf is what is kept of hints: those that parse. One that does not
// matches nothing, and must not turn into "everything".
func narrowingOf(r ExchangeRequest) *model.Narrowing {
	if r.Requested == nil && r.Resources == nil {
		return nil
	}
	n := &model.Narrowing{}
	if r.Requested != nil {
		n.Actions = []string{}
	}
	for _, text := range r.Requested {
		if _, known := rbac.ParseAction(text); known {
			n.Actions = append(n.Actions, text)
		}
	}
	if r.Resources != nil {
		n.Resources = []string{}
	}
	for _, text := range r.Resources {
		if _, err := rbac.ParseObject(text); err == nil {
			n.Resources = append(n.Resources, text)
		}
	}
	return n
}

// permissions are what the principal may do now, cut down to what was asked for.
func (s *Service) permissions(ctx context.Context, in session) ([]rbac.Permission, error) {
	policies, err := s.store.Policies(ctx, in.tenant)
	if err != nil {
		return nil, err
	}
	groupings, err := s.store.Groupings(ctx, in.tenant)
	if err != nil {
		return nil, err
	}
	subjects := append([]string{in.principal}, in.groups...)
	perms := rbac.Effective(in.tenant, policies, groupings, subjects)
	if in.narrowing == nil {
		return perms, nil
	}
	actions, objects := parseNarrowing(in.narrowing)
	return rbac.Narrow(perms, actions, objects), nil
}

func parseNarrowing(n *model.Narrowing) (actions []rbac.Action, objects []rbac.Object) {
	if n.Actions != nil {
		actions = make([]rbac.Action, 0, len(n.Actions))
	}
	for _, text := range n.Actions {
		if action, known := rbac.ParseAction(text); known {
			actions = append(actions, action)
		}
	}
	if n.Resources != nil {
		objects = make([]rbac.Object, 0, len(n.Resources))
	}
	for _, text := range n.Resources {
		if object, err := rbac.ParseObject(text); err == nil {
			objects = append(objects, object)
		}
	}
	return actions, objects
}

// issue makes the two tokens of an answer, and stores what is kept of the
// second.
func (s *Service) issue(ctx context.Context, in session, perms []rbac.Permission) (*TokenResponse, error) {
	now := s.now()
	access, err := s.mint(ctx, token.Claims{
		Tenant: in.tenant, Subject: in.principal, Audience: in.audience, MayAct: in.actor,
		Permissions: texts(perms), IssuedAt: now, Expires: now.Add(s.accessTTL),
	})
	if err != nil {
		return nil, err
	}
	refresh, record, err := s.newRefreshToken(in, now)
	if err != nil {
		return nil, err
	}
	if err := s.store.InsertRefreshToken(ctx, record); err != nil {
		return nil, err
	}
	return &TokenResponse{
		FelixToken: access, ExpiresIn: wholeSeconds(s.accessTTL), TokenType: "Bearer",
		RefreshToken: refresh, RefreshExpiresIn: wholeSeconds(s.refreshTTL),
	}, nil
}
