package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/felixlog/felix/controlplane/model"
)

const (
	policiesOf  = `SELECT subject, object, action FROM rbac_policies WHERE tenant_id = $1 ORDER BY subject, object, action`
	groupingsOf = `SELECT user_id, role FROM rbac_groupings WHERE tenant_id = $1 ORDER BY user_id, role`
)

func scanPolicy(row pgx.CollectableRow) (p model.Policy, err error) {
	return p, row.Scan(&p.Subject, &p.Object, &p.Action)
}

func scanGrouping(row pgx.CollectableRow) (g model.Grouping, err error) {
	return g, row.Scan(&g.User, &g.Role)
}

// Policies of a tenant.
func (s *Store) Policies(ctx context.Context, tenant string) ([]model.Policy, error) {
	return ofTenant(ctx, s, tenant, scanPolicy, policiesOf)
}

// AddPolicy adds one; one that is there is nothing.
func (s *Store) AddPolicy(ctx context.Context, tenant string, p model.Policy) error {
	return s.withTenant(ctx, tenant, func(ctx context.Context, w *writer) error {
		return w.addPolicies(ctx, tenant, []model.Policy{p})
	})
}

func (w *writer) addPolicies(ctx context.Context, tenant string, policies []model.Policy) error {
	rows := make([][]any, 0, len(policies))
	for _, p := range policies {
		rows = append(rows, []any{tenant, p.Subject, p.Object, p.Action})
	}
	return w.insertAll(ctx, `INSERT INTO rbac_policies (tenant_id, subject, object, action) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`, rows)
}

// RemovePolicy removes one.
func (s *Store) RemovePolicy(ctx context.Context, tenant string, p model.Policy) error {
	return s.withTenant(ctx, tenant, func(ctx context.Context, w *writer) error {
		return w.mustDelete(ctx, "policy", `DELETE FROM rbac_policies WHERE tenant_id = $1 AND subject = $2 AND object = $3 AND action = $4`,
			tenant, p.Subject, p.Object, p.Action)
	})
}

// Groupings of a tenant.
func (s *Store) Groupings(ctx context.Context, tenant string) ([]model.Grouping, error) {
	return ofTenant(ctx, s, tenant, scanGrouping, groupingsOf)
}

// AddGrouping adds one; one that is there is nothing.
func (s *Store) AddGrouping(ctx context.Context, tenant string, g model.Grouping) error {
	return s.withTenant(ctx, tenant, func(ctx context.Context, w *writer) error {
		return w.addGroupings(ctx, tenant, []model.Grouping{g})
	})
}

func (w *writer) addGroupings(ctx context.Context, tenant string, groupings []model.Grouping) error {
	rows := make([][]any, 0, len(groupings))
	for _, g := range groupings {
		rows = append(rows, []any{tenant, g.User, g.Role})
	}
	return w.insertAll(ctx, `INSERT INTO rbac_groupings (tenant_id, user_id, role) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`, rows)
}

// RemoveGrouping removes one.
func (s *Store) RemoveGrouping(ctx context.Context, tenant string, g model.Grouping) error {
	return s.withTenant(ctx, tenant, func(ctx context.Context, w *writer) error {
		return w.mustDelete(ctx, "grouping", `DELETE FROM rbac_groupings WHERE tenant_id = $1 AND user_id = $2 AND role = $3`, tenant, g.User, g.Role)
	})
}
