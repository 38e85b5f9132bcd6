package api

import (
	"context"
	"net/http"

	"github.com/felixlog/felix/controlplane/auth"
	"github.com/felixlog/felix/controlplane/model"
)

// BootstrapRequest initialises a tenant (control plane 17).
type BootstrapRequest struct {
	DisplayName            string             `json:"display_name"`
	IdpIssuers             []IdpIssuerRequest `json:"idp_issuers" maxItems:"100"`
	InitialAdminPrincipals []string           `json:"initial_admin_principals" maxItems:"1000"`
	Policies               []model.Policy     `json:"policies" required:"false" maxItems:"1000"`
	Groupings              []model.Grouping   `json:"groupings" required:"false" maxItems:"1000"`
}

func (r BootstrapRequest) request() auth.BootstrapRequest {
	out := auth.BootstrapRequest{
		DisplayName: r.DisplayName, InitialAdminPrincipals: r.InitialAdminPrincipals, Policies: r.Policies, Groupings: r.Groupings,
		IdpIssuers: make([]model.IdpIssuer, 0, len(r.IdpIssuers)),
	}
	for _, i := range r.IdpIssuers {
		out.IdpIssuers = append(out.IdpIssuers, i.issuer())
	}
	return out
}

// DevTokenRequest asks for a token made to measure, for development.
type DevTokenRequest struct {
	Subject     string   `json:"subject" required:"false" nullable:"true" maxLength:"512" doc:"dev where it is absent."`
	Permissions []string `json:"permissions" maxItems:"1000" doc:"action:object, within the tenant."`
	Audience    string   `json:"audience" required:"false" nullable:"true"`
	TTLSeconds  uint64   `json:"ttl_seconds" required:"false" nullable:"true" doc:"At most a day; the usual lifetime where it is 0."`
}

// InBootstrap is a path of the bootstrap listener and its secret.
type InBootstrap struct {
	InTenant
	Token string `header:"X-Felix-Bootstrap-Token"`
}

// bootstrapRoutes are those of control plane 4.10.
func (s *surface) bootstrapRoutes() {
	const tag, base = "bootstrap", "/internal/bootstrap/tenants/{tenant_id}"
	refuses := []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusConflict}
	add(s, route{
		id: "initialize-tenant", method: http.MethodPost, path: base + "/initialize", tag: tag, summary: "Give a tenant its first rights, once",
		limited: true, hasBody: true, maxBody: maxBody, refuses: refuses,
	}, func(ctx context.Context, in *struct {
		InBootstrap
		Body BootstrapRequest
	}) (*struct{ Body auth.BootstrapResponse }, error) {
		r, err := s.o.Auth.Bootstrap(ctx, in.TenantID, in.Token, in.Body.request())
		if err != nil {
			return nil, err
		}
		s.tenants.kick()
		return &struct{ Body auth.BootstrapResponse }{*r}, nil
	})
	add(s, route{
		id: "dev-token", method: http.MethodPost, path: base + "/dev-token", tag: tag, summary: "Get a token without an identity provider, for development",
		limited: true, hasBody: true, refuses: refuses,
	}, func(ctx context.Context, in *struct {
		InBootstrap
		Body DevTokenRequest
	}) (*tokenOut, error) {
		t, err := s.o.Auth.DevToken(ctx, in.TenantID, in.Token, auth.DevTokenRequest(in.Body))
		return tokenAnswer(t, err)
	})
}
