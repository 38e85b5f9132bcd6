package api

import (
	"context"
	"net/http"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/rbac"
)

// InTenant is a path below a tenant.
type InTenant struct {
	TenantID string `path:"tenant_id"`
}

type noBody struct{}

// CreateTenantRequest makes a tenant.
type CreateTenantRequest struct {
	TenantID    string `json:"tenant_id"`
	DisplayName string `json:"display_name"`
}

// tenantRoutes are those of control plane 4.2.
func (s *surface) tenantRoutes() {
	const tag = "tenants"
	add(s, route{
		id: "list-tenants", method: http.MethodGet, path: "/v1/tenants", tag: tag, summary: "List tenants",
		who: anyTenant, allow: inCluster(rbac.TenantManage), refuses: []int{http.StatusBadRequest},
	}, func(ctx context.Context, in *struct{ Paging }) (*listOut[model.Tenant], error) {
		all, err := s.o.Store.Tenants(ctx)
		if err != nil {
			return nil, err
		}
		l, err := pageOf(all, in.Paging, func(t model.Tenant) string { return t.TenantID })
		return &listOut[model.Tenant]{l}, err
	})
	add(s, route{
		id: "create-tenant", method: http.MethodPost, path: "/v1/tenants", tag: tag, summary: "Create a tenant and its signing key",
		who: anyTenant, allow: inCluster(rbac.TenantManage), hasBody: true, status: created, refuses: []int{http.StatusConflict},
	}, func(ctx context.Context, in *struct{ Body CreateTenantRequest }) (*struct{ Body model.Tenant }, error) {
		t := model.Tenant(in.Body)
		if err := s.name("tenant", t.TenantID); err != nil {
			return nil, err
		}
		if err := displayName(t.DisplayName); err != nil {
			return nil, err
		}
		if err := s.o.Auth.CreateTenant(ctx, t); err != nil {
			return nil, existing(err)
		}
		s.tenants.kick()
		return &struct{ Body model.Tenant }{t}, nil
	})
	add(s, route{
		id: "delete-tenant", method: http.MethodDelete, path: "/v1/tenants/{tenant_id}", tag: tag,
		summary: "Delete a tenant, its keys and all that is in it",
		who:     anyTenant, allow: inCluster(rbac.TenantManage), refuses: []int{http.StatusNotFound}, status: http.StatusNoContent,
	}, func(ctx context.Context, in *struct{ InTenant }) (*noBody, error) {
		if err := s.o.Store.DeleteTenant(ctx, in.TenantID); err != nil {
			return nil, err
		}
		s.o.Auth.Forget(in.TenantID)
		s.tenants.kick()
		s.namespaces.kick()
		s.catalogChanged()
		return nil, nil
	})
}

// catalogChanged tells who waits for streams and caches, and has them placed.
func (s *surface) catalogChanged() {
	s.streams.kick()
	s.caches.kick()
	s.o.Planner.Wake()
}
