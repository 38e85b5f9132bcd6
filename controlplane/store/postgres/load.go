package postgres

import (
	"context"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/felixlog/felix/controlplane/model"
)

// load copies the records of a dump into empty tables.
func (w *writer) load(ctx context.Context, d *model.Dump) error {
	for _, load := range []func(context.Context, *model.Dump) error{w.loadCatalog, w.loadFleet, w.loadAuth, w.loadTombstones} {
		if err := load(ctx, d); err != nil {
			return err
		}
	}
	return nil
}

// copyIn writes one row for each record, by COPY.
func copyIn[T any](ctx context.Context, w *writer, table, columns string, records []T, values func(T) []any) error {
	names := strings.FieldsFunc(columns, func(r rune) bool { return strings.ContainsRune(", \n\t", r) })
	_, err := w.CopyFrom(ctx, pgx.Identifier{table}, names, pgx.CopyFromSlice(len(records), func(i int) ([]any, error) {
		return values(records[i]), nil
	}))
	return err
}

func (w *writer) loadCatalog(ctx context.Context, d *model.Dump) error {
	if err := copyIn(ctx, w, "tenants", tenantColumns, d.Tenants, func(t model.Tenant) []any {
		return []any{t.TenantID, t.DisplayName}
	}); err != nil {
		return err
	}
	if err := copyIn(ctx, w, "namespaces", namespaceColumns, d.Namespaces, func(n model.Namespace) []any {
		return []any{n.TenantID, n.Namespace, n.DisplayName}
	}); err != nil {
		return err
	}
	if err := copyIn(ctx, w, "streams", streamColumns, d.Streams, streamValues); err != nil {
		return err
	}
	if err := copyIn(ctx, w, "caches", cacheColumns, d.Caches, cacheValues); err != nil {
		return err
	}
	return copyIn(ctx, w, "bridges", "source, destination", d.Bridges, func(b model.Bridge) []any {
		return []any{b.Source, b.Destination}
	})
}

func (w *writer) loadFleet(ctx context.Context, d *model.Dump) error {
	if err := copyIn(ctx, w, "nodes", nodeColumns, d.Nodes, func(n model.Node) []any {
		return append(specValues(n.NodeID, n.Spec), n.Status.Lifecycle, clamp(n.Status.LastHeartbeatAtMillis),
			clamp(n.Status.RegisteredAtMillis), clamp(n.Status.Incarnation))
	}); err != nil {
		return err
	}
	if err := copyIn(ctx, w, "shard_assignments", assignmentColumns, d.Assignments, assignmentValues); err != nil {
		return err
	}
	return copyIn(ctx, w, "fleet_features", "feature", d.Features, func(f string) []any { return []any{f} })
}

func (w *writer) loadAuth(ctx context.Context, d *model.Dump) error {
	for _, a := range d.Auth {
		if _, err := w.Exec(ctx, `UPDATE tenants SET auth_bootstrapped = $2 WHERE tenant_id = $1`, a.TenantID, a.Bootstrapped); err != nil {
			return err
		}
		position := int64(len(a.Keys)) // newest first, within a status
		if err := copyIn(ctx, w, "tenant_signing_keys", "tenant_id, "+signingKeyColumns+", position", a.Keys, func(k model.SigningKey) []any {
			position--
			return []any{a.TenantID, k.KID, k.Seed, k.Public, k.Status, position}
		}); err != nil {
			return err
		}
		for _, i := range a.Issuers {
			if err := w.putIssuer(ctx, a.TenantID, i); err != nil {
				return err
			}
		}
		if err := w.addPolicies(ctx, a.TenantID, a.Policies); err != nil {
			return err
		}
		if err := w.addGroupings(ctx, a.TenantID, a.Groupings); err != nil {
			return err
		}
	}
	return nil
}

// loadTombstones gives tombstones the sequences before the head of their feed,
// in the order of the dump, so that later ones come after them.
func (w *writer) loadTombstones(ctx context.Context, d *model.Dump) error {
	next := map[model.ShardKind]int64{model.StreamShard: clamp(d.NextSeq.Streams), model.CacheShard: clamp(d.NextSeq.Caches)}
	for _, t := range d.Tombstones {
		next[t.Kind]--
	}
	return copyIn(ctx, w, "tombstones", "kind, seq, tenant_id, namespace, name, uid, deleted_at_millis", d.Tombstones, func(t model.Tombstone) []any {
		seq := next[t.Kind]
		next[t.Kind]++
		return []any{t.Kind, seq, t.TenantID, t.Namespace, t.Name, t.UID, clamp(t.DeletedAtMillis)}
	})
}
