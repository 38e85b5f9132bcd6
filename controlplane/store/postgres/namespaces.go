package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

const namespaceColumns = `tenant_id, namespace, display_name`

func scanNamespace(row pgx.CollectableRow) (n model.Namespace, err error) {
	return n, row.Scan(&n.TenantID, &n.Namespace, &n.DisplayName)
}

// Namespaces of a tenant.
func (s *Store) Namespaces(ctx context.Context, tenant string) (namespaces []model.Namespace, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) (err error) {
		namespaces, err = list(ctx, q, scanNamespace,
			`SELECT `+namespaceColumns+` FROM namespaces WHERE tenant_id = $1 ORDER BY namespace`, tenant)
		if err == nil && len(namespaces) == 0 {
			err = tenantIsThere(ctx, q, tenant)
		}
		return err
	})
	return namespaces, err
}

// Namespace is one of them.
func (s *Store) Namespace(ctx context.Context, k model.NamespaceKey) (n model.Namespace, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) (err error) {
		n, err = namespace(ctx, q, k, "")
		return err
	})
	return n, err
}

// CreateNamespace creates one in a tenant that is there. Conflict: Exists.
func (s *Store) CreateNamespace(ctx context.Context, n model.Namespace) error {
	return s.write(ctx, func(ctx context.Context, w *writer) error {
		_, err := w.Exec(ctx, `INSERT INTO namespaces (tenant_id, namespace, display_name) VALUES ($1, $2, $3)`,
			n.TenantID, n.Namespace, n.DisplayName)
		if _, ok := violates(err, codeUnique); ok {
			return exists("namespace")
		}
		if _, ok := violates(err, codeForeignKey); ok {
			return &store.NotFoundError{What: "tenant"}
		}
		if err != nil {
			return err
		}
		w.change(namespaceFeed, model.Created, n, n.TenantID, n.Namespace)
		return nil
	})
}

// DeleteNamespace deletes a namespace and all that is in it.
func (s *Store) DeleteNamespace(ctx context.Context, k model.NamespaceKey) error {
	return s.write(ctx, func(ctx context.Context, w *writer) error {
		if _, err := namespace(ctx, w, k, `FOR UPDATE`); err != nil {
			return err
		}
		if err := w.bury(ctx, `tenant_id = $1 AND namespace = $2`, k.TenantID, k.Namespace); err != nil {
			return err
		}
		w.change(namespaceFeed, model.Deleted, nil, k.TenantID, k.Namespace)
		_, err := w.Exec(ctx, `DELETE FROM namespaces WHERE tenant_id = $1 AND namespace = $2`, k.TenantID, k.Namespace)
		return err
	})
}

// namespace reads one, and locks it as told.
func namespace(ctx context.Context, q querier, k model.NamespaceKey, lock string) (model.Namespace, error) {
	n, err := one(ctx, q, "namespace", scanNamespace,
		`SELECT `+namespaceColumns+` FROM namespaces WHERE tenant_id = $1 AND namespace = $2 `+lock, k.TenantID, k.Namespace)
	if refused(err) {
		if err := tenantIsThere(ctx, q, k.TenantID); err != nil {
			return n, err
		}
	}
	return n, err
}

// tenantIsThere is a NotFoundError if it is not.
func tenantIsThere(ctx context.Context, q querier, id string) error {
	_, err := one(ctx, q, "tenant", scanTenant, `SELECT `+tenantColumns+` FROM tenants WHERE tenant_id = $1`, id)
	return err
}
