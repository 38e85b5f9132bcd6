package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

const issuerColumns = `issuer, audiences, discovery_url, jwks_url, subject_claim, groups_claim`

const issuersOf = `SELECT ` + issuerColumns + ` FROM idp_issuers WHERE tenant_id = $1 ORDER BY issuer`

func scanIssuer(row pgx.CollectableRow) (i model.IdpIssuer, err error) {
	return i, row.Scan(&i.Issuer, &i.Audiences, &i.DiscoveryURL, &i.JWKSURL, &i.ClaimMappings.SubjectClaim, &i.ClaimMappings.GroupsClaim)
}

// ofTenant lists what belongs to a tenant that is there.
func ofTenant[T any](ctx context.Context, s *Store, tenant string, scan pgx.RowToFunc[T], query string) (all []T, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) (err error) {
		all, err = list(ctx, q, scan, query, tenant)
		if err == nil && len(all) == 0 {
			err = tenantIsThere(ctx, q, tenant)
		}
		return err
	})
	return all, err
}

// withTenant runs a write of what belongs to a tenant: one that is not there is
// a NotFoundError.
func (s *Store) withTenant(ctx context.Context, tenant string, fn func(ctx context.Context, w *writer) error) error {
	return s.write(ctx, func(ctx context.Context, w *writer) error {
		if _, err := one(ctx, w, "tenant", scanTenant, `SELECT `+tenantColumns+` FROM tenants WHERE tenant_id = $1 FOR KEY SHARE`, tenant); err != nil {
			return err
		}
		return fn(ctx, w)
	})
}

// Issuers that a tenant trusts.
func (s *Store) Issuers(ctx context.Context, tenant string) ([]model.IdpIssuer, error) {
	return ofTenant(ctx, s, tenant, scanIssuer, issuersOf)
}

// PutIssuer inserts or replaces one.
func (s *Store) PutIssuer(ctx context.Context, tenant string, i model.IdpIssuer) error {
	return s.withTenant(ctx, tenant, func(ctx context.Context, w *writer) error {
		return w.putIssuer(ctx, tenant, i)
	})
}

func (w *writer) putIssuer(ctx context.Context, tenant string, i model.IdpIssuer) error {
	_, err := w.Exec(ctx, `
		INSERT INTO idp_issuers (tenant_id, `+issuerColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (tenant_id, issuer) DO UPDATE SET
			audiences = excluded.audiences, discovery_url = excluded.discovery_url, jwks_url = excluded.jwks_url,
			subject_claim = excluded.subject_claim, groups_claim = excluded.groups_claim`,
		tenant, i.Issuer, some(i.Audiences), i.DiscoveryURL, i.JWKSURL, i.ClaimMappings.SubjectClaim, i.ClaimMappings.GroupsClaim)
	return err
}

// DeleteIssuer removes one.
func (s *Store) DeleteIssuer(ctx context.Context, tenant, issuer string) error {
	return s.withTenant(ctx, tenant, func(ctx context.Context, w *writer) error {
		return w.mustDelete(ctx, "issuer", `DELETE FROM idp_issuers WHERE tenant_id = $1 AND issuer = $2`, tenant, issuer)
	})
}

// Bootstrapped is whether a tenant was initialised.
func (s *Store) Bootstrapped(ctx context.Context, tenant string) (done bool, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) (err error) {
		done, err = one(ctx, q, "tenant", pgx.RowTo[bool], `SELECT auth_bootstrapped FROM tenants WHERE tenant_id = $1`, tenant)
		return err
	})
	return done, err
}

// BootstrapTenant initialises a tenant, once, and makes it if it is not there
// (control plane 11.2).
func (s *Store) BootstrapTenant(ctx context.Context, t model.Tenant, seed model.AuthSeed) (keys []model.SigningKey, err error) {
	tenant := t.TenantID
	err = s.write(ctx, func(ctx context.Context, w *writer) error {
		if err := store.CheckFirstKey(seed.Key); err != nil {
			return err
		}
		if _, err := w.createTenantUnlessThere(ctx, t); err != nil {
			return err
		}
		done, err := one(ctx, w, "tenant", pgx.RowTo[bool], `SELECT auth_bootstrapped FROM tenants WHERE tenant_id = $1 FOR UPDATE`, tenant)
		if err != nil {
			return err
		}
		if done {
			return store.Conflict(store.Bootstrapped, "tenant has been initialised already")
		}
		if err := w.ensureKey(ctx, tenant, seed.Key); err != nil {
			return err
		}
		for _, i := range seed.Issuers {
			if err := w.putIssuer(ctx, tenant, i); err != nil {
				return err
			}
		}
		if err := w.addPolicies(ctx, tenant, seed.Policies); err != nil {
			return err
		}
		if err := w.addGroupings(ctx, tenant, seed.Groupings); err != nil {
			return err
		}
		if _, err := w.Exec(ctx, `UPDATE tenants SET auth_bootstrapped = true, updated_at = now() WHERE tenant_id = $1`, tenant); err != nil {
			return err
		}
		keys, err = list(ctx, w, scanSigningKey, keysOf, tenant)
		return err
	})
	return keys, err
}
