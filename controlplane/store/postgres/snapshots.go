package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/felixlog/felix/controlplane/model"
)

// snapshotOf reads the records and the head of a feed, and its tombstones, at
// one instant.
func snapshotOf[T any](ctx context.Context, s *Store, f *feed, scan pgx.RowToFunc[T], query string) (snap model.Snapshot[T], err error) {
	err = s.snapshot(ctx, s.options.CallTimeout, func(ctx context.Context, q querier) (err error) {
		if snap.NextSeq, err = head(ctx, q, f); err != nil {
			return err
		}
		if snap.Items, err = list(ctx, q, scan, query); err != nil || f.graves == "" {
			return err
		}
		snap.Tombstones, err = tombstones(ctx, q, f.graves, s.limits.ChangesKept)
		return err
	})
	return snap, err
}

// head is the next sequence of a feed.
func head(ctx context.Context, q querier, f *feed) (next uint64, err error) {
	return next, q.QueryRow(ctx, fmt.Sprintf(`SELECT next_seq FROM %s`, f.counter())).Scan(&next)
}

// tombstones are the newest of a kind, oldest first.
func tombstones(ctx context.Context, q querier, kind model.ShardKind, most int) ([]model.Tombstone, error) {
	return list(ctx, q, scanTombstone, `
		SELECT kind, tenant_id, namespace, name, uid, deleted_at_millis FROM (
			SELECT * FROM tombstones WHERE kind = $1 ORDER BY seq DESC LIMIT $2
		) newest ORDER BY seq`, kind, most)
}

func scanTombstone(row pgx.CollectableRow) (t model.Tombstone, err error) {
	return t, row.Scan(&t.Kind, &t.TenantID, &t.Namespace, &t.Name, &t.UID, &t.DeletedAtMillis)
}

const (
	allTenants     = `SELECT ` + tenantColumns + ` FROM tenants ORDER BY tenant_id`
	allNamespaces  = `SELECT ` + namespaceColumns + ` FROM namespaces ORDER BY tenant_id, namespace`
	allStreams     = `SELECT ` + streamColumns + ` FROM streams ORDER BY tenant_id, namespace, stream`
	allCaches      = `SELECT ` + cacheColumns + ` FROM caches ORDER BY tenant_id, namespace, cache`
	allNodes       = `SELECT ` + nodeColumns + ` FROM nodes ORDER BY node_id`
	allAssignments = `SELECT ` + assignmentColumns + ` FROM shard_assignments ORDER BY ` + keyColumns
)

// TenantsSnapshot is all tenants at one instant.
func (s *Store) TenantsSnapshot(ctx context.Context) (model.Snapshot[model.Tenant], error) {
	return snapshotOf(ctx, s, tenantFeed, scanTenant, allTenants)
}

// NamespacesSnapshot is all namespaces at one instant.
func (s *Store) NamespacesSnapshot(ctx context.Context) (model.Snapshot[model.Namespace], error) {
	return snapshotOf(ctx, s, namespaceFeed, scanNamespace, allNamespaces)
}

// StreamsSnapshot is all streams at one instant.
func (s *Store) StreamsSnapshot(ctx context.Context) (model.Snapshot[model.Stream], error) {
	return snapshotOf(ctx, s, streamFeed, scanStream, allStreams)
}

// CachesSnapshot is all caches at one instant.
func (s *Store) CachesSnapshot(ctx context.Context) (model.Snapshot[model.Cache], error) {
	return snapshotOf(ctx, s, cacheFeed, scanCache, allCaches)
}

// NodesSnapshot is all nodes at one instant.
func (s *Store) NodesSnapshot(ctx context.Context) (model.Snapshot[model.Node], error) {
	return snapshotOf(ctx, s, nodeFeed, scanNode, allNodes)
}

// AssignmentsSnapshot is all assignments at one instant.
func (s *Store) AssignmentsSnapshot(ctx context.Context) (model.Snapshot[model.Assignment], error) {
	return snapshotOf(ctx, s, assignmentFeed, scanAssignment, allAssignments)
}
