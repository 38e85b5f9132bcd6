package postgres

import (
	"context"
	"reflect"

	"github.com/jackc/pgx/v5"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

const streamColumns = `tenant_id, namespace, stream, kind, shards, replication_factor, retention_max_age_seconds,
	retention_max_size_bytes, consistency, delivery, durable, region, routing, uid`

func scanStream(row pgx.CollectableRow) (t model.Stream, err error) {
	return t, row.Scan(&t.TenantID, &t.Namespace, &t.Stream, &t.Kind, &t.Shards, &t.ReplicationFactor, &t.Retention.MaxAgeSeconds,
		&t.Retention.MaxSizeBytes, &t.Consistency, &t.Delivery, &t.Durable, &t.Region, &t.Routing, &t.UID)
}

func streamValues(t model.Stream) []any {
	return []any{t.TenantID, t.Namespace, t.Stream, t.Kind, t.Shards, t.ReplicationFactor, t.Retention.MaxAgeSeconds,
		t.Retention.MaxSizeBytes, t.Consistency, t.Delivery, t.Durable, t.Region, t.Routing, t.UID}
}

// Streams of a namespace.
func (s *Store) Streams(ctx context.Context, k model.NamespaceKey) (streams []model.Stream, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) (err error) {
		streams, err = list(ctx, q, scanStream,
			`SELECT `+streamColumns+` FROM streams WHERE tenant_id = $1 AND namespace = $2 ORDER BY stream`, k.TenantID, k.Namespace)
		if err == nil && len(streams) == 0 {
			_, err = namespace(ctx, q, k, "")
		}
		return err
	})
	return streams, err
}

// Stream is one of them.
func (s *Store) Stream(ctx context.Context, k model.StreamKey) (t model.Stream, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) (err error) {
		t, err = stream(ctx, q, k, "")
		return err
	})
	return t, err
}

// CreateStream creates one in a namespace that is there. Conflict: Exists.
func (s *Store) CreateStream(ctx context.Context, t model.Stream) error {
	k := model.NamespaceKey{TenantID: t.TenantID, Namespace: t.Namespace}
	return s.CreateResources(ctx, k, []model.Stream{t}, nil)
}

// PatchStream changes what may change of a stream. It publishes nothing where
// nothing changes.
func (s *Store) PatchStream(ctx context.Context, k model.StreamKey, p model.StreamPatch) (t model.Stream, err error) {
	err = s.write(ctx, func(ctx context.Context, w *writer) error {
		old, err := stream(ctx, w, k, `FOR NO KEY UPDATE`)
		if err != nil {
			return err
		}
		t = store.PatchedStream(old, p)
		if reflect.DeepEqual(t, old) {
			return nil
		}
		w.change(streamFeed, model.Updated, t, k.TenantID, k.Namespace, k.Stream)
		_, err = w.Exec(ctx, `
			UPDATE streams SET retention_max_age_seconds = $4, retention_max_size_bytes = $5, consistency = $6,
				delivery = $7, durable = $8, updated_at = now()
			WHERE tenant_id = $1 AND namespace = $2 AND stream = $3`,
			k.TenantID, k.Namespace, k.Stream, t.Retention.MaxAgeSeconds, t.Retention.MaxSizeBytes, t.Consistency, t.Delivery, t.Durable)
		return err
	})
	return t, err
}

// DeleteStream deletes a stream and its assignments and leaves a tombstone.
func (s *Store) DeleteStream(ctx context.Context, k model.StreamKey) error {
	return s.write(ctx, func(ctx context.Context, w *writer) error {
		if _, err := stream(ctx, w, k, `FOR UPDATE`); err != nil {
			return err
		}
		if err := w.buryStreams(ctx, `tenant_id = $1 AND namespace = $2 AND stream = $3`, k.TenantID, k.Namespace, k.Stream); err != nil {
			return err
		}
		if err := w.unassign(ctx, `tenant_id = $1 AND namespace = $2 AND stream = $3 AND kind = 'stream'`, k.TenantID, k.Namespace, k.Stream); err != nil {
			return err
		}
		_, err := w.Exec(ctx, `DELETE FROM streams WHERE tenant_id = $1 AND namespace = $2 AND stream = $3`, k.TenantID, k.Namespace, k.Stream)
		return err
	})
}

// stream reads one, and locks it as told.
func stream(ctx context.Context, q querier, k model.StreamKey, lock string) (model.Stream, error) {
	return one(ctx, q, "stream", scanStream,
		`SELECT `+streamColumns+` FROM streams WHERE tenant_id = $1 AND namespace = $2 AND stream = $3 `+lock, k.TenantID, k.Namespace, k.Stream)
}
