package api

import (
	"context"
	"net/http"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/rbac"
)

// IdpIssuerRequest is an identity provider that a tenant trusts (control plane
// 4.9).
type IdpIssuerRequest struct {
	Issuer        string                `json:"issuer" minLength:"1" maxLength:"2048"`
	Audiences     []string              `json:"audiences" maxItems:"100"`
	DiscoveryURL  *string               `json:"discovery_url" required:"false" maxLength:"2048"`
	JWKSURL       *string               `json:"jwks_url" required:"false" maxLength:"2048"`
	ClaimMappings *ClaimMappingsRequest `json:"claim_mappings" required:"false"`
}

// ClaimMappingsRequest names the claims that say who a token is for.
type ClaimMappingsRequest struct {
	SubjectClaim string  `json:"subject_claim" required:"false" maxLength:"256" doc:"sub where it is absent."`
	GroupsClaim  *string `json:"groups_claim" required:"false" maxLength:"256" doc:"Absent, tokens bring no groups."`
}

func (r IdpIssuerRequest) issuer() model.IdpIssuer {
	i := model.IdpIssuer{
		Issuer: r.Issuer, Audiences: r.Audiences, DiscoveryURL: r.DiscoveryURL, JWKSURL: r.JWKSURL,
		ClaimMappings: model.ClaimMappings{SubjectClaim: "sub"},
	}
	if m := r.ClaimMappings; m != nil {
		i.ClaimMappings.GroupsClaim = m.GroupsClaim
		if m.SubjectClaim != "" {
			i.ClaimMappings.SubjectClaim = m.SubjectClaim
		}
	}
	return i
}

// issuerRoutes are those of control plane 4.9 about identity providers.
func (s *surface) issuerRoutes() {
	const tag, base = "identity", "/v1/tenants/{tenant_id}/idp-issuers"
	allow := over(rbac.TenantManage, theTenant)
	add(s, route{
		id: "put-idp-issuer", method: http.MethodPost, path: base, tag: tag, summary: "Trust an identity provider, or change how",
		about: "Changing the keys of one that is trusted needs tenant.manage over the cluster: who holds its keys holds all its principals.",
		who:   pathTenant, allow: allow, hasBody: true, refuses: []int{http.StatusNotFound}, status: http.StatusNoContent,
	}, func(ctx context.Context, in *struct {
		InTenant
		Body IdpIssuerRequest
	}) (*noBody, error) {
		return nil, s.o.Auth.PutIssuer(ctx, callerOf(ctx), in.TenantID, in.Body.issuer())
	})
	add(s, route{
		id: "delete-idp-issuer", method: http.MethodDelete, path: base + "/{issuer}", tag: tag, summary: "Trust an identity provider no longer",
		about: "The issuer is percent-encoded in one segment of the path.",
		who:   pathTenant, allow: allow, refuses: []int{http.StatusNotFound}, status: http.StatusNoContent,
	}, func(ctx context.Context, in *struct {
		InTenant
		Issuer string `path:"issuer"`
	}) (*noBody, error) {
		return nil, s.o.Auth.DeleteIssuer(ctx, callerOf(ctx), in.TenantID, in.Issuer)
	})
}
