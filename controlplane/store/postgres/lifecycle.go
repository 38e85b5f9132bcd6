package postgres

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// SetLifecycle moves a node; changed is false where it was there already.
func (s *Store) SetLifecycle(ctx context.Context, id string, to model.Lifecycle) (n model.Node, changed bool, err error) {
	err = s.write(ctx, func(ctx context.Context, w *writer) (err error) {
		changed = false
		if n, err = node(ctx, w, id, `FOR NO KEY UPDATE`); err != nil {
			return err
		}
		from := n.Status.Lifecycle
		if err := store.CheckLifecycle(from, to); err != nil || from == to {
			return err
		}
		n.Status.Lifecycle, changed = to, true
		w.change(nodeFeed, model.Updated, n, id)
		return w.setLifecycle(ctx, to, id)
	})
	return n, changed, err
}

func (w *writer) setLifecycle(ctx context.Context, to model.Lifecycle, ids ...string) error {
	_, err := w.Exec(ctx, `UPDATE nodes SET lifecycle = $2, updated_at = now() WHERE node_id = ANY ($1)`, ids, to)
	return err
}

// Heartbeat records one in a single statement, which is a transaction by itself
// (control plane 6.2, 11.2). Only where it hits nothing a second one finds out
// why.
func (s *Store) Heartbeat(ctx context.Context, id string, incarnation uint64) (n model.Node, err error) {
	err = s.call(ctx, s.options.CallTimeout, func(ctx context.Context) error {
		return s.fresh(ctx, func(conn *pgxpool.Conn) (err error) {
			for range attempts {
				n, err = one(ctx, conn, "node", scanNode, `
					UPDATE nodes SET last_heartbeat_at_millis = greatest(last_heartbeat_at_millis, `+millis+`)
					WHERE node_id = $1 AND incarnation <= $2 RETURNING `+nodeColumns, id, clamp(incarnation))
				if !refused(err) {
					return err
				}
				found, err := node(ctx, conn, id, "")
				if err != nil {
					return err
				}
				if err := store.CheckIncarnation(incarnation, found.Status.Incarnation); err != nil {
					return err
				}
			}
			return err // it came and went, again and again
		})
	})
	return n, err
}

// ExpireStale marks down the nodes that were silent. A second sweep at the same
// time waits for the first one's locks and then finds them down.
func (s *Store) ExpireStale(ctx context.Context, beforeMillis uint64) (expired []model.Expired, err error) {
	err = s.write(ctx, func(ctx context.Context, w *writer) error {
		expired = []model.Expired{}
		stale, err := list(ctx, w, scanNode, `
			SELECT `+nodeColumns+` FROM nodes
			WHERE lifecycle IN ('live', 'draining') AND last_heartbeat_at_millis < $1
			ORDER BY node_id FOR NO KEY UPDATE`, clamp(beforeMillis))
		if err != nil || len(stale) == 0 {
			return err
		}
		ids := make([]string, 0, len(stale))
		for _, n := range stale {
			from := n.Status.Lifecycle
			n.Status.Lifecycle = model.Down
			expired = append(expired, model.Expired{Node: n, From: from})
			ids = append(ids, n.NodeID)
			w.change(nodeFeed, model.Updated, n, n.NodeID)
		}
		return w.setLifecycle(ctx, model.Down, ids...)
	})
	return expired, err
}
