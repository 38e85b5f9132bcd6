package postgres

import (
	"context"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/felixlog/felix/controlplane/model"
)

// bury publishes the end of every stream, cache and assignment that a condition
// chooses, before their rows go with what holds them. Nobody can add any:
// what holds them is locked.
func (w *writer) bury(ctx context.Context, where string, args ...any) error {
	if err := w.buryStreams(ctx, where, args...); err != nil {
		return err
	}
	if err := w.buryCaches(ctx, where, args...); err != nil {
		return err
	}
	return w.unassign(ctx, where, args...)
}

// buryStreams locks streams and publishes their deletion.
func (w *writer) buryStreams(ctx context.Context, where string, args ...any) error {
	streams, err := list(ctx, w, scanStream,
		`SELECT `+streamColumns+` FROM streams WHERE `+where+` ORDER BY tenant_id, namespace, stream FOR UPDATE`, args...)
	if err != nil || len(streams) == 0 {
		return err
	}
	now, err := clock(ctx, w)
	if err != nil {
		return err
	}
	for _, t := range streams {
		w.add(streamFeed, change{op: model.Deleted, key: []string{t.TenantID, t.Namespace, t.Stream}, tombstone: &model.Tombstone{
			Kind: model.StreamShard, TenantID: t.TenantID, Namespace: t.Namespace, Name: t.Stream, UID: t.UID, DeletedAtMillis: now,
		}})
	}
	return nil
}

// buryCaches is buryStreams for caches.
func (w *writer) buryCaches(ctx context.Context, where string, args ...any) error {
	caches, err := list(ctx, w, scanCache,
		`SELECT `+cacheColumns+` FROM caches WHERE `+where+` ORDER BY tenant_id, namespace, cache FOR UPDATE`, args...)
	if err != nil || len(caches) == 0 {
		return err
	}
	now, err := clock(ctx, w)
	if err != nil {
		return err
	}
	for _, c := range caches {
		w.add(cacheFeed, change{op: model.Deleted, key: []string{c.TenantID, c.Namespace, c.Cache}, tombstone: &model.Tombstone{
			Kind: model.CacheShard, TenantID: c.TenantID, Namespace: c.Namespace, Name: c.Cache, UID: c.UID, DeletedAtMillis: now,
		}})
	}
	return nil
}

// unassign locks assignments and publishes their end.
func (w *writer) unassign(ctx context.Context, where string, args ...any) error {
	keys, err := list(ctx, w, scanKey,
		`SELECT `+keyColumns+` FROM shard_assignments WHERE `+where+` ORDER BY `+keyColumns+` FOR UPDATE`, args...)
	if err != nil {
		return err
	}
	for _, k := range keys {
		w.change(assignmentFeed, model.Unassigned, nil, keyParts(k)...)
	}
	return nil
}

func clock(ctx context.Context, q querier) (now uint64, err error) {
	return now, q.QueryRow(ctx, `SELECT `+millis).Scan(&now)
}

const keyColumns = `tenant_id, namespace, stream, shard, kind`

func scanKey(row pgx.CollectableRow) (k model.ShardKey, err error) {
	return k, row.Scan(&k.TenantID, &k.Namespace, &k.Stream, &k.Shard, &k.Kind)
}

// keyParts and shardKey turn a key into the columns of the feed and back.
func keyParts(k model.ShardKey) []string {
	return []string{k.TenantID, k.Namespace, k.Stream, strconv.FormatUint(uint64(k.Shard), 10), string(k.Kind)}
}

func shardKey(parts []string) (model.ShardKey, error) {
	shard, err := strconv.ParseUint(parts[3], 10, 32)
	return model.ShardKey{
		TenantID: parts[0], Namespace: parts[1], Stream: parts[2], Shard: uint32(shard), Kind: model.ShardKind(parts[4]),
	}, err
}
