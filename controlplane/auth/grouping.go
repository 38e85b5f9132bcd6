package auth

import (
	"context"
	"slices"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/rbac"
)

// Groupings are the role links whose role has a rule that the caller may see.
// Those of roles without any rule are shown to who may see the whole tenant.
func (s *Service) Groupings(ctx context.Context, c *Caller, tenant string) ([]model.Grouping, error) {
	if err := s.requireTenant(ctx, c, tenant); err != nil {
		return nil, err
	}
	scopes, err := s.requireScope(ctx, c, rbac.RBACView)
	if err != nil {
		return nil, err
	}
	policies, err := s.store.Policies(ctx, tenant)
	if err != nil {
		return nil, err
	}
	groupings, err := s.store.Groupings(ctx, tenant)
	if err != nil {
		return nil, err
	}
	visible := make(map[string]bool, len(policies))
	for _, p := range policies {
		visible[p.Subject] = visible[p.Subject] || inScopes(tenant, scopes, p.Object)
	}
	whole := contained(scopes, rbac.Tenant(tenant))
	return slices.DeleteFunc(groupings, func(g model.Grouping) bool {
		seen, hasRules := visible[g.Role]
		return !seen && (hasRules || !whole)
	}), nil
}

// AddGrouping gives a user a role. All that the role brings, by roles of its own
// too, must be inside the caller's rbac.assignment.manage scopes, and there must
// be something: who gave away an empty role could not know what it will hold
// (control plane 16.5).
func (s *Service) AddGrouping(ctx context.Context, c *Caller, tenant string, g model.Grouping) error {
	groupings, empty, err := s.manageGrouping(ctx, c, tenant, g)
	if err != nil {
		return err
	}
	if empty {
		return s.lacks(ctx, c, "the role has no policies; write them first")
	}
	if len(groupings) >= maxRules && !slices.Contains(groupings, g) {
		return tooManyRules("groupings")
	}
	return s.store.AddGrouping(ctx, tenant, g)
}

// RemoveGrouping takes a role back, under the conditions of AddGrouping. A role
// without policies needs the scope of the whole tenant.
func (s *Service) RemoveGrouping(ctx context.Context, c *Caller, tenant string, g model.Grouping) error {
	_, empty, err := s.manageGrouping(ctx, c, tenant, g)
	if err != nil {
		return err
	}
	if empty {
		if err := s.Require(ctx, c, rbac.RBACAssignmentManage, rbac.Tenant(tenant)); err != nil {
			return err
		}
	}
	return s.store.RemoveGrouping(ctx, tenant, g)
}

// manageGrouping checks the caller against what the role brings, and says
// whether that is nothing.
func (s *Service) manageGrouping(ctx context.Context, c *Caller, tenant string, g model.Grouping) ([]model.Grouping, bool, error) {
	if err := s.requireTenant(ctx, c, tenant); err != nil {
		return nil, false, err
	}
	scopes, err := s.requireScope(ctx, c, rbac.RBACAssignmentManage)
	if err != nil {
		return nil, false, err
	}
	if checkSubject(g.User) != nil || checkSubject(g.Role) != nil {
		return nil, false, s.lacks(ctx, c, "user or role is blank, too long or holds control characters")
	}
	if err := s.catchUp(ctx, tenant); err != nil {
		return nil, false, err
	}
	policies, err := s.store.Policies(ctx, tenant)
	if err != nil {
		return nil, false, err
	}
	groupings, err := s.store.Groupings(ctx, tenant)
	if err != nil {
		return nil, false, err
	}
	brings := rbac.Effective(tenant, policies, groupings, []string{g.Role})
	for _, p := range brings {
		if !contained(scopes, p.Object) {
			return nil, false, s.lacks(ctx, c, "the role holds "+clip(p.String())+
				", which needs "+rbac.RBACAssignmentManage.String()+" over its object")
		}
	}
	return groupings, len(brings) == 0, nil
}
