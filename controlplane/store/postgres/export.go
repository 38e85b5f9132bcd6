package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/felixlog/felix/controlplane/model"
)

// Export reads everything at one instant (control plane 14).
func (s *Store) Export(ctx context.Context) (d *model.Dump, err error) {
	err = s.snapshot(ctx, s.options.TransferTimeout, func(ctx context.Context, q querier) error {
		if _, err := q.Exec(ctx, `SET LOCAL statement_timeout = 0`); err != nil {
			return err
		}
		d = &model.Dump{Version: model.DumpVersion}
		for _, read := range []func(context.Context, querier, *model.Dump) error{
			exportCatalog, exportFleet, s.exportTombstones, exportAuth, exportHeads,
		} {
			if err := read(ctx, q, d); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return d, nil
}

func exportCatalog(ctx context.Context, q querier, d *model.Dump) (err error) {
	if d.Tenants, err = list(ctx, q, scanTenant, allTenants); err != nil {
		return err
	}
	if d.Namespaces, err = list(ctx, q, scanNamespace, allNamespaces); err != nil {
		return err
	}
	if d.Streams, err = list(ctx, q, scanStream, allStreams); err != nil {
		return err
	}
	if d.Caches, err = list(ctx, q, scanCache, allCaches); err != nil {
		return err
	}
	d.Bridges, err = bridges(ctx, q)
	return err
}

func exportFleet(ctx context.Context, q querier, d *model.Dump) (err error) {
	if d.Nodes, err = list(ctx, q, scanNode, allNodes); err != nil {
		return err
	}
	if d.Assignments, err = list(ctx, q, scanAssignment, allAssignments); err != nil {
		return err
	}
	if d.Features, err = enabledFeatures(ctx, q); err != nil {
		return err
	}
	return q.QueryRow(ctx, `
		SELECT moves_paused, token FROM placement_settings, placement_lease`).Scan(&d.MovesPaused, &d.Token)
}

func (s *Store) exportTombstones(ctx context.Context, q querier, d *model.Dump) error {
	d.Tombstones = []model.Tombstone{}
	for _, kind := range []model.ShardKind{model.StreamShard, model.CacheShard} {
		of, err := tombstones(ctx, q, kind, s.limits.ChangesKept)
		if err != nil {
			return err
		}
		d.Tombstones = append(d.Tombstones, of...)
	}
	return nil
}

func exportAuth(ctx context.Context, q querier, d *model.Dump) error {
	var err error
	d.Auth, err = list(ctx, q, func(row pgx.CollectableRow) (a model.TenantAuth, err error) {
		return a, row.Scan(&a.TenantID, &a.Bootstrapped)
	}, `SELECT tenant_id, auth_bootstrapped FROM tenants ORDER BY tenant_id`)
	if err != nil {
		return err
	}
	for i := range d.Auth {
		a := &d.Auth[i]
		if a.Keys, err = list(ctx, q, scanSigningKey, keysOf, a.TenantID); err != nil {
			return err
		}
		if a.Issuers, err = list(ctx, q, scanIssuer, issuersOf, a.TenantID); err != nil {
			return err
		}
		if a.Policies, err = list(ctx, q, scanPolicy, policiesOf, a.TenantID); err != nil {
			return err
		}
		if a.Groupings, err = list(ctx, q, scanGrouping, groupingsOf, a.TenantID); err != nil {
			return err
		}
	}
	return nil
}

func exportHeads(ctx context.Context, q querier, d *model.Dump) (err error) {
	for f, to := range headsOf(&d.NextSeq) {
		if *to, err = head(ctx, q, f); err != nil {
			return err
		}
	}
	return nil
}

// headsOf are the places of the feeds' heads.
func headsOf(h *model.FeedHeads) map[*feed]*uint64 {
	return map[*feed]*uint64{
		tenantFeed: &h.Tenants, namespaceFeed: &h.Namespaces, streamFeed: &h.Streams,
		cacheFeed: &h.Caches, nodeFeed: &h.Nodes, assignmentFeed: &h.Assignments,
	}
}
