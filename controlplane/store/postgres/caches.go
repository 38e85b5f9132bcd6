package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/felixlog/felix/controlplane/model"
)

const cacheColumns = `tenant_id, namespace, cache, display_name, shards, replication_factor, consistency, uid`

func scanCache(row pgx.CollectableRow) (c model.Cache, err error) {
	return c, row.Scan(&c.TenantID, &c.Namespace, &c.Cache, &c.DisplayName, &c.Shards, &c.ReplicationFactor, &c.Consistency, &c.UID)
}

func cacheValues(c model.Cache) []any {
	return []any{c.TenantID, c.Namespace, c.Cache, c.DisplayName, c.Shards, c.ReplicationFactor, c.Consistency, c.UID}
}

// Caches of a namespace.
func (s *Store) Caches(ctx context.Context, k model.NamespaceKey) (caches []model.Cache, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) (err error) {
		caches, err = list(ctx, q, scanCache,
			`SELECT `+cacheColumns+` FROM caches WHERE tenant_id = $1 AND namespace = $2 ORDER BY cache`, k.TenantID, k.Namespace)
		if err == nil && len(caches) == 0 {
			_, err = namespace(ctx, q, k, "")
		}
		return err
	})
	return caches, err
}

// Cache is one of them.
func (s *Store) Cache(ctx context.Context, k model.CacheKey) (c model.Cache, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) (err error) {
		c, err = cache(ctx, q, k, "")
		return err
	})
	return c, err
}

// CreateCache creates one in a namespace that is there. Conflict: Exists.
func (s *Store) CreateCache(ctx context.Context, c model.Cache) error {
	k := model.NamespaceKey{TenantID: c.TenantID, Namespace: c.Namespace}
	return s.CreateResources(ctx, k, nil, []model.Cache{c})
}

// PatchCache changes what may change of a cache. It publishes nothing where
// nothing changes.
func (s *Store) PatchCache(ctx context.Context, k model.CacheKey, p model.CachePatch) (c model.Cache, err error) {
	err = s.write(ctx, func(ctx context.Context, w *writer) (err error) {
		if c, err = cache(ctx, w, k, `FOR NO KEY UPDATE`); err != nil {
			return err
		}
		if p.DisplayName == nil || *p.DisplayName == c.DisplayName {
			return nil
		}
		c.DisplayName = *p.DisplayName
		w.change(cacheFeed, model.Updated, c, k.TenantID, k.Namespace, k.Cache)
		_, err = w.Exec(ctx, `UPDATE caches SET display_name = $4, updated_at = now() WHERE tenant_id = $1 AND namespace = $2 AND cache = $3`,
			k.TenantID, k.Namespace, k.Cache, c.DisplayName)
		return err
	})
	return c, err
}

// DeleteCache deletes a cache and its assignments and leaves a tombstone.
func (s *Store) DeleteCache(ctx context.Context, k model.CacheKey) error {
	return s.write(ctx, func(ctx context.Context, w *writer) error {
		if _, err := cache(ctx, w, k, `FOR UPDATE`); err != nil {
			return err
		}
		if err := w.buryCaches(ctx, `tenant_id = $1 AND namespace = $2 AND cache = $3`, k.TenantID, k.Namespace, k.Cache); err != nil {
			return err
		}
		if err := w.unassign(ctx, `tenant_id = $1 AND namespace = $2 AND stream = $3 AND kind = 'cache'`, k.TenantID, k.Namespace, k.Cache); err != nil {
			return err
		}
		_, err := w.Exec(ctx, `DELETE FROM caches WHERE tenant_id = $1 AND namespace = $2 AND cache = $3`, k.TenantID, k.Namespace, k.Cache)
		return err
	})
}

// cache reads one, and locks it as told.
func cache(ctx context.Context, q querier, k model.CacheKey, lock string) (model.Cache, error) {
	return one(ctx, q, "cache", scanCache,
		`SELECT `+cacheColumns+` FROM caches WHERE tenant_id = $1 AND namespace = $2 AND cache = $3 `+lock, k.TenantID, k.Namespace, k.Cache)
}
