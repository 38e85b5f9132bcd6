package api

import (
	"context"
	"net/http"

	"github.com/felixlog/felix/controlplane/auth"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/rbac"
)

// rbacRoutes are those of control plane 4.9 about rights. Who may write which
// rule is for auth to say (control plane 16.5).
func (s *surface) rbacRoutes() {
	const base = "/v1/tenants/{tenant_id}/rbac/"
	ruleRoutes(s, "policy", "policies", base+"policies", rbac.RBACPolicyManage, rules[model.Policy]{
		list: s.o.Auth.Policies, add: s.o.Auth.AddPolicy, remove: s.o.Auth.RemovePolicy,
		key: func(p model.Policy) string { return joined(p.Subject, p.Object, p.Action) },
	})
	ruleRoutes(s, "grouping", "groupings", base+"groupings", rbac.RBACAssignmentManage, rules[model.Grouping]{
		list: s.o.Auth.Groupings, add: s.o.Auth.AddGrouping, remove: s.o.Auth.RemoveGrouping,
		key: func(g model.Grouping) string { return joined(g.User, g.Role) },
	})
}

// rules are what auth does with one sort of rule.
type rules[R any] struct {
	list        func(ctx context.Context, c *auth.Caller, tenant string) ([]R, error)
	add, remove func(ctx context.Context, c *auth.Caller, tenant string, rule R) error
	key         func(R) string
}

// ruleRoutes lists, adds and removes rules of one sort.
func ruleRoutes[R any](s *surface, one, many, path string, manage rbac.Action, r rules[R]) {
	const tag = "rbac"
	type body struct {
		InTenant
		Body R
	}
	add(s, route{
		id: "list-" + many, method: http.MethodGet, path: path, tag: tag, summary: "List the " + many + " that the caller may see",
		who: pathTenant, allow: somewhere(rbac.RBACView, theTenant), refuses: []int{http.StatusBadRequest, http.StatusNotFound},
	}, func(ctx context.Context, in *struct {
		InTenant
		Paging
	}) (*bareListOut[R], error) {
		all, err := r.list(ctx, callerOf(ctx), in.TenantID)
		if err != nil {
			return nil, err
		}
		return bareListOf(all, in.Paging, r.key)
	})
	write := func(id, method, summary string, do func(context.Context, *auth.Caller, string, R) error) {
		add(s, route{
			id: id + one, method: method, path: path, tag: tag, summary: summary,
			who: pathTenant, allow: somewhere(manage, theTenant), hasBody: true, status: http.StatusNoContent,
			refuses: []int{http.StatusNotFound},
		}, func(ctx context.Context, in *body) (*noBody, error) {
			return nil, do(ctx, callerOf(ctx), in.TenantID, in.Body)
		})
	}
	write("add-", http.MethodPost, "Add a "+one+"; one that is there stays", r.add)
	write("remove-", http.MethodDelete, "Remove a "+one, r.remove)
}
