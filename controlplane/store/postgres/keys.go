package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

const signingKeyColumns = `kid, seed, public, status`

// keysOf lists the keys of a tenant in the order of [store.Auth].
const keysOf = `SELECT ` + signingKeyColumns + ` FROM tenant_signing_keys WHERE tenant_id = $1
	ORDER BY array_position(ARRAY['current', 'staged', 'previous'], status), position DESC`

func scanSigningKey(row pgx.CollectableRow) (k model.SigningKey, err error) {
	return k, row.Scan(&k.KID, &k.Seed, &k.Public, &k.Status)
}

// SigningKeys of a tenant, current first; none for a tenant that is unknown.
func (s *Store) SigningKeys(ctx context.Context, tenant string) (keys []model.SigningKey, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) (err error) {
		keys, err = list(ctx, q, scanSigningKey, keysOf, tenant)
		return err
	})
	return keys, err
}

// EnsureSigningKey installs key as current unless the tenant has one.
func (s *Store) EnsureSigningKey(ctx context.Context, tenant string, key model.SigningKey) ([]model.SigningKey, error) {
	return s.changeKeys(ctx, tenant, func(ctx context.Context, w *writer, _ []model.SigningKey) error {
		return w.ensureKey(ctx, tenant, key)
	})
}

// StageSigningKey adds a key that does not sign yet. Conflicts: Exists,
// TooManyKeys.
func (s *Store) StageSigningKey(ctx context.Context, tenant string, key model.SigningKey) ([]model.SigningKey, error) {
	return s.changeKeys(ctx, tenant, func(ctx context.Context, w *writer, keys []model.SigningKey) error {
		return w.addKey(ctx, tenant, keys, key, model.KeyStaged)
	})
}

// ActivateSigningKey makes a key current, and the current one previous.
func (s *Store) ActivateSigningKey(ctx context.Context, tenant, kid string) ([]model.SigningKey, error) {
	return s.changeKeys(ctx, tenant, func(ctx context.Context, w *writer, keys []model.SigningKey) error {
		if findKey(keys, kid) == nil {
			return &store.NotFoundError{What: "signing key"}
		}
		for _, change := range []string{
			`UPDATE tenant_signing_keys SET status = 'previous' WHERE tenant_id = $1 AND status = 'current' AND kid <> $2`,
			`UPDATE tenant_signing_keys SET status = 'current' WHERE tenant_id = $1 AND kid = $2`,
		} {
			if _, err := w.Exec(ctx, change, tenant, kid); err != nil {
				return err
			}
		}
		return nil
	})
}

// RetireSigningKey forgets a key. Conflict: CurrentKey.
func (s *Store) RetireSigningKey(ctx context.Context, tenant, kid string) ([]model.SigningKey, error) {
	return s.changeKeys(ctx, tenant, func(ctx context.Context, w *writer, keys []model.SigningKey) error {
		if key := findKey(keys, kid); key != nil && key.Status == model.KeyCurrent {
			return store.Conflict(store.CurrentKey, "the current signing key cannot be retired: activate another one first")
		}
		return w.mustDelete(ctx, "signing key", `DELETE FROM tenant_signing_keys WHERE tenant_id = $1 AND kid = $2`, tenant, kid)
	})
}

// changeKeys runs a change of a tenant's keys, one at a time, and answers the
// keys after it.
func (s *Store) changeKeys(ctx context.Context, tenant string, fn func(context.Context, *writer, []model.SigningKey) error) (keys []model.SigningKey, err error) {
	err = s.write(ctx, func(ctx context.Context, w *writer) error {
		if err := lockTenant(ctx, w, tenant); err != nil {
			return err
		}
		before, err := list(ctx, w, scanSigningKey, keysOf, tenant)
		if err != nil {
			return err
		}
		if err := fn(ctx, w, before); err != nil {
			return err
		}
		keys, err = list(ctx, w, scanSigningKey, keysOf, tenant)
		return err
	})
	return keys, err
}

func findKey(keys []model.SigningKey, kid string) *model.SigningKey {
	i := slices.IndexFunc(keys, func(k model.SigningKey) bool { return k.KID == kid })
	if i < 0 {
		return nil
	}
	return &keys[i]
}

// ensureKey installs a current key where there is none. The tenant is locked.
func (w *writer) ensureKey(ctx context.Context, tenant string, key model.SigningKey) error {
	keys, err := list(ctx, w, scanSigningKey, keysOf, tenant)
	if err != nil {
		return err
	}
	if len(keys) > 0 && keys[0].Status == model.KeyCurrent {
		return nil
	}
	return w.addKey(ctx, tenant, keys, key, model.KeyCurrent)
}

func (w *writer) addKey(ctx context.Context, tenant string, keys []model.SigningKey, key model.SigningKey, status model.KeyStatus) error {
	if findKey(keys, key.KID) != nil {
		return exists("signing key")
	}
	if len(keys) >= store.MaxSigningKeys {
		return store.Conflict(store.TooManyKeys, "tenant has %d signing keys, the most there may be: retire one first", len(keys))
	}
	_, err := w.Exec(ctx, `
		INSERT INTO tenant_signing_keys (tenant_id, `+signingKeyColumns+`, position)
		SELECT $1, $2, $3, $4, $5, coalesce(max(position), 0) + 1 FROM tenant_signing_keys WHERE tenant_id = $1`,
		tenant, key.KID, some(key.Seed), some(key.Public), status)
	return err
}
