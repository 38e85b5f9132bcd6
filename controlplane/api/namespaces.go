package api

import (
	"context"
	"net/http"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/rbac"
)

// InNamespace is a path below a namespace.
type InNamespace struct {
	InTenant
	Namespace string `path:"namespace"`
}

func (n InNamespace) key() model.NamespaceKey {
	return model.NamespaceKey{TenantID: n.TenantID, Namespace: n.Namespace}
}

// CreateNamespaceRequest makes a namespace.
type CreateNamespaceRequest struct {
	Namespace   string `json:"namespace"`
	DisplayName string `json:"display_name"`
}

// namespaceRoutes are those of control plane 4.3.
func (s *surface) namespaceRoutes() {
	const tag, base = "namespaces", "/v1/tenants/{tenant_id}/namespaces"
	all := func(path params) rbac.Object { return rbac.Namespace(path("tenant_id"), rbac.Any) }
	add(s, route{
		id: "list-namespaces", method: http.MethodGet, path: base, tag: tag, summary: "List the namespaces the caller manages",
		who: pathTenant, allow: somewhere(rbac.NamespaceManage, all), refuses: []int{http.StatusBadRequest, http.StatusNotFound},
	}, func(ctx context.Context, in *struct {
		InTenant
		Paging
	}) (*listOut[model.Namespace], error) {
		all, err := s.o.Store.Namespaces(ctx, in.TenantID)
		if err != nil {
			return nil, err
		}
		all = visible(callerOf(ctx), rbac.NamespaceManage, all, func(n model.Namespace) rbac.Object {
			return rbac.Namespace(n.TenantID, n.Namespace)
		})
		l, err := pageOf(all, in.Paging, func(n model.Namespace) string { return n.Namespace })
		return &listOut[model.Namespace]{l}, err
	})
	add(s, route{
		id: "create-namespace", method: http.MethodPost, path: base, tag: tag, summary: "Create a namespace",
		who: pathTenant, allow: somewhere(rbac.NamespaceManage, all), hasBody: true, status: created,
		refuses: []int{http.StatusNotFound, http.StatusConflict},
	}, func(ctx context.Context, in *struct {
		InTenant
		Body CreateNamespaceRequest
	}) (*struct{ Body model.Namespace }, error) {
		n := model.Namespace{TenantID: in.TenantID, Namespace: in.Body.Namespace, DisplayName: in.Body.DisplayName}
		if err := check(callerOf(ctx), rbac.NamespaceManage, rbac.Namespace(n.TenantID, n.Namespace)); err != nil {
			return nil, err
		}
		if err := s.name("namespace", n.Namespace); err != nil {
			return nil, err
		}
		if err := displayName(n.DisplayName); err != nil {
			return nil, err
		}
		if err := s.o.Store.CreateNamespace(ctx, n); err != nil {
			return nil, existing(err)
		}
		s.namespaces.kick()
		return &struct{ Body model.Namespace }{n}, nil
	})
	add(s, route{
		id: "delete-namespace", method: http.MethodDelete, path: base + "/{namespace}", tag: tag,
		summary: "Delete a namespace and all that is in it",
		who:     pathTenant, allow: over(rbac.NamespaceManage, theNamespace), refuses: []int{http.StatusNotFound}, status: http.StatusNoContent,
	}, func(ctx context.Context, in *struct{ InNamespace }) (*noBody, error) {
		if err := s.o.Store.DeleteNamespace(ctx, in.key()); err != nil {
			return nil, err
		}
		s.namespaces.kick()
		s.catalogChanged()
		return nil, nil
	})
}
