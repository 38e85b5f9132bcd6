package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

const tenantColumns = `tenant_id, display_name`

func scanTenant(row pgx.CollectableRow) (t model.Tenant, err error) {
	return t, row.Scan(&t.TenantID, &t.DisplayName)
}

// list reads records. It is never nil.
func list[T any](ctx context.Context, q querier, scan pgx.RowToFunc[T], query string, args ...any) ([]T, error) {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	return pgx.AppendRows([]T{}, rows, scan)
}

// one reads a record that has to be there; what says what it is if it is not.
func one[T any](ctx context.Context, q querier, what string, scan pgx.RowToFunc[T], query string, args ...any) (T, error) {
	rows, err := q.Query(ctx, query, args...)
	if err != nil {
		var none T
		return none, err
	}
	record, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		err = &store.NotFoundError{What: what}
	}
	return record, err
}

// Tenants are all there are.
func (s *Store) Tenants(ctx context.Context) (tenants []model.Tenant, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) (err error) {
		tenants, err = list(ctx, q, scanTenant, allTenants)
		return err
	})
	return tenants, err
}

// Tenant is one of them.
func (s *Store) Tenant(ctx context.Context, id string) (t model.Tenant, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) (err error) {
		t, err = one(ctx, q, "tenant", scanTenant, `SELECT `+tenantColumns+` FROM tenants WHERE tenant_id = $1`, id)
		return err
	})
	return t, err
}

// CreateTenant creates one. Conflict: Exists.
func (s *Store) CreateTenant(ctx context.Context, t model.Tenant) error {
	return s.write(ctx, func(ctx context.Context, w *writer) error { return w.createTenant(ctx, t) })
}

// CreateTenantWithKey creates one and its first key. Conflict: Exists.
func (s *Store) CreateTenantWithKey(ctx context.Context, t model.Tenant, key model.SigningKey) error {
	return s.write(ctx, func(ctx context.Context, w *writer) error {
		if err := w.createTenant(ctx, t); err != nil {
			return err
		}
		if err := store.CheckFirstKey(key); err != nil {
			return err
		}
		return w.addKey(ctx, t.TenantID, nil, key, model.KeyCurrent)
	})
}

func (w *writer) createTenant(ctx context.Context, t model.Tenant) error {
	made, err := w.createTenantUnlessThere(ctx, t)
	if err == nil && !made {
		err = exists("tenant")
	}
	return err
}

// createTenantUnlessThere waits for whoever makes the same one at the time.
func (w *writer) createTenantUnlessThere(ctx context.Context, t model.Tenant) (made bool, err error) {
	tag, err := w.Exec(ctx, `INSERT INTO tenants (tenant_id, display_name) VALUES ($1, $2) ON CONFLICT DO NOTHING`, t.TenantID, t.DisplayName)
	if err != nil || tag.RowsAffected() == 0 {
		return false, err
	}
	w.change(tenantFeed, model.Created, t, t.TenantID)
	return true, nil
}

// DeleteTenant deletes a tenant and all that is in it (control plane 4.2).
func (s *Store) DeleteTenant(ctx context.Context, id string) error {
	return s.write(ctx, func(ctx context.Context, w *writer) error {
		if err := lockTenant(ctx, w, id); err != nil {
			return err
		}
		namespaces, err := list(ctx, w, scanNamespace,
			`SELECT `+namespaceColumns+` FROM namespaces WHERE tenant_id = $1 ORDER BY namespace FOR UPDATE`, id)
		if err != nil {
			return err
		}
		if err := w.bury(ctx, `tenant_id = $1`, id); err != nil {
			return err
		}
		for _, n := range namespaces {
			w.change(namespaceFeed, model.Deleted, nil, n.TenantID, n.Namespace)
		}
		w.change(tenantFeed, model.Deleted, nil, id)
		_, err = w.Exec(ctx, `DELETE FROM tenants WHERE tenant_id = $1`, id)
		return err
	})
}

// lockTenant keeps everybody else from changing what belongs to a tenant.
func lockTenant(ctx context.Context, w *writer, id string) error {
	_, err := one(ctx, w, "tenant", scanTenant, `SELECT `+tenantColumns+` FROM tenants WHERE tenant_id = $1 FOR UPDATE`, id)
	return err
}

func exists(what string) error {
	return store.Conflict(store.Exists, "%s already exists", what)
}
