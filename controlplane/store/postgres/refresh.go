package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/felixlog/felix/controlplane/model"
)

const refreshColumns = `tenant_id, token_id, principal_id, groups, issuer, secret_hash, family_id, audience, actor, narrowing,
	issued_at_secs, expires_at_secs, used, revoked`

func scanRefresh(row pgx.CollectableRow) (t model.RefreshToken, err error) {
	return t, row.Scan(&t.TenantID, &t.TokenID, &t.PrincipalID, &t.Groups, &t.Issuer, &t.SecretHash, &t.FamilyID, &t.Audience,
		&t.Actor, &t.Narrowing, &t.IssuedAtSecs, &t.ExpiresAtSecs, &t.Used, &t.Revoked)
}

// InsertRefreshToken stores one. Conflict: Exists.
func (s *Store) InsertRefreshToken(ctx context.Context, t model.RefreshToken) error {
	return s.withTenant(ctx, t.TenantID, func(ctx context.Context, w *writer) error {
		_, err := w.Exec(ctx, `INSERT INTO refresh_tokens (`+refreshColumns+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`,
			t.TenantID, t.TokenID, t.PrincipalID, some(t.Groups), t.Issuer, t.SecretHash, t.FamilyID, t.Audience,
			t.Actor, t.Narrowing, clamp(t.IssuedAtSecs), clamp(t.ExpiresAtSecs), t.Used, t.Revoked)
		if _, ok := violates(err, codeUnique); ok {
			return exists("refresh token")
		}
		return err
	})
}

// TakeRefreshToken marks a token used and answers it as it was before. Of two
// callers the second waits for the first one's lock and finds it used.
func (s *Store) TakeRefreshToken(ctx context.Context, tenant, tokenID string) (t model.RefreshToken, err error) {
	err = s.withTenant(ctx, tenant, func(ctx context.Context, w *writer) (err error) {
		t, err = one(ctx, w, "refresh token", scanRefresh,
			`SELECT `+refreshColumns+` FROM refresh_tokens WHERE tenant_id = $1 AND token_id = $2 FOR UPDATE`, tenant, tokenID)
		if err != nil || t.Used {
			return err
		}
		_, err = w.Exec(ctx, `UPDATE refresh_tokens SET used = true WHERE tenant_id = $1 AND token_id = $2`, tenant, tokenID)
		return err
	})
	return t, err
}

// RevokeFamily revokes the tokens of a family, and counts those that were not.
func (s *Store) RevokeFamily(ctx context.Context, tenant, familyID string) (revoked int, err error) {
	return s.revoke(ctx, tenant, `family_id = $2`, familyID)
}

// RevokePrincipal revokes the tokens of a principal, and counts those that were
// not.
func (s *Store) RevokePrincipal(ctx context.Context, tenant, principalID string) (revoked int, err error) {
	return s.revoke(ctx, tenant, `principal_id = $2`, principalID)
}

// revoke keeps tokens from being inserted meanwhile, so that none of the family
// appears behind its back.
func (s *Store) revoke(ctx context.Context, tenant, where, of string) (revoked int, err error) {
	err = s.write(ctx, func(ctx context.Context, w *writer) error {
		if err := lockTenant(ctx, w, tenant); err != nil {
			return err
		}
		tag, err := w.Exec(ctx, `UPDATE refresh_tokens SET revoked = true WHERE tenant_id = $1 AND NOT revoked AND `+where, tenant, of)
		revoked = int(tag.RowsAffected())
		return err
	})
	return revoked, err
}

// PurgeRefreshTokens forgets tokens that expired before.
func (s *Store) PurgeRefreshTokens(ctx context.Context, beforeSecs uint64) (purged int, err error) {
	err = s.write(ctx, func(ctx context.Context, w *writer) error {
		tag, err := w.Exec(ctx, `DELETE FROM refresh_tokens WHERE expires_at_secs < $1`, clamp(beforeSecs))
		purged = int(tag.RowsAffected())
		return err
	})
	return purged, err
}
