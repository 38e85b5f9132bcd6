package auth

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"github.com/felixlog/felix/controlplane/auth/oidc"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/rbac"
)

// maxIssuers bounds how many identity providers a tenant trusts.
const maxIssuers = 64

// PutIssuer trusts an identity provider, or changes how. Who can change where an
// issuer's keys come from, which claim names its principals, or which of its
// tokens are taken, can speak for all its principals, so that of an issuer that
// is there already only audiences may be taken away without
// tenant.manage:cluster:* (control plane 16.5).
func (s *Service) PutIssuer(ctx context.Context, c *Caller, tenant string, i model.IdpIssuer) error {
	if err := s.requireIn(ctx, c, tenant, rbac.TenantManage, rbac.Tenant(tenant)); err != nil {
		return err
	}
	if err := s.upstream.CheckIssuer(i); err != nil {
		return invalid("%v", err)
	}
	if err := s.catchUp(ctx, tenant); err != nil {
		return err
	}
	issuers, err := s.store.Issuers(ctx, tenant)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(issuers, func(other model.IdpIssuer) bool { return other.Issuer == i.Issuer })
	switch {
	case at >= 0 && widens(issuers[at], i):
		if err := s.Require(ctx, c, rbac.TenantManage, rbac.Cluster()); err != nil {
			return err
		}
	case at < 0 && len(issuers) >= maxIssuers:
		return &Refusal{
			Status: http.StatusConflict, Code: CodeConflict,
			Message: fmt.Sprintf("the tenant has %d issuers, which is the most", maxIssuers),
		}
	}
	return s.store.PutIssuer(ctx, tenant, i)
}

// widens says whether a change could let anybody in who was not.
func widens(old, changed model.IdpIssuer) bool {
	return !same(old.JWKSURL, changed.JWKSURL) || !same(old.DiscoveryURL, changed.DiscoveryURL) ||
		oidc.SubjectClaim(old) != oidc.SubjectClaim(changed) ||
		!same(old.ClaimMappings.GroupsClaim, changed.ClaimMappings.GroupsClaim) ||
		slices.ContainsFunc(changed.Audiences, func(a string) bool { return !slices.Contains(old.Audiences, a) })
}

func same(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// DeleteIssuer trusts an identity provider no more, which ends the sessions of
// its principals at their next refresh. Their rules stay, and would be those of
// whoever brings the issuer back, so that it needs tenant.manage:cluster:* too.
func (s *Service) DeleteIssuer(ctx context.Context, c *Caller, tenant, issuer string) error {
	if err := s.requireIn(ctx, c, tenant, rbac.TenantManage, rbac.Tenant(tenant)); err != nil {
		return err
	}
	if err := s.Require(ctx, c, rbac.TenantManage, rbac.Cluster()); err != nil {
		return err
	}
	if checkText(issuer, maxSubject) != nil {
		return notFound("issuer not found")
	}
	return s.store.DeleteIssuer(ctx, tenant, issuer)
}

// RevokeRefreshTokens ends the sessions of a principal, once their access tokens
// run out, and says how many tokens that took.
func (s *Service) RevokeRefreshTokens(ctx context.Context, c *Caller, tenant, principal string) (int, error) {
	if err := s.requireIn(ctx, c, tenant, rbac.TenantManage, rbac.Tenant(tenant)); err != nil {
		return 0, err
	}
	if err := checkSubject(principal); err != nil {
		return 0, invalid("principal_id %v", err)
	}
	n, err := s.store.RevokePrincipal(ctx, tenant, principal)
	if err != nil {
		return 0, err
	}
	s.observer.RefreshRevoked(n)
	return n, nil
}
