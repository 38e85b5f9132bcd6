package postgres

import (
	"context"
	"reflect"

	"github.com/jackc/pgx/v5"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

const nodeColumns = `node_id, advertise_addr, client_addr, kafka_addr, region, zone, labels, capacity_max_shards,
	capacity_weight, features, lifecycle, last_heartbeat_at_millis, registered_at_millis, incarnation`

func scanNode(row pgx.CollectableRow) (n model.Node, err error) {
	err = row.Scan(&n.NodeID, &n.Spec.AdvertiseAddr, &n.Spec.ClientAddr, &n.Spec.KafkaAddr, &n.Spec.Region, &n.Spec.Zone,
		&n.Spec.Labels, &n.Spec.Capacity.MaxShards, &n.Spec.Capacity.Weight, &n.Spec.Features, &n.Status.Lifecycle,
		&n.Status.LastHeartbeatAtMillis, &n.Status.RegisteredAtMillis, &n.Status.Incarnation)
	if len(n.Spec.Features) == 0 {
		n.Spec.Features = nil
	}
	return n, err
}

// specValues are the columns of a spec, after node_id.
func specValues(id string, s model.NodeSpec) []any {
	return []any{id, s.AdvertiseAddr, s.ClientAddr, s.KafkaAddr, s.Region, s.Zone, labelled(s.Labels),
		s.Capacity.MaxShards, s.Capacity.Weight, some(s.Features)}
}

func labelled(labels map[string]string) map[string]string {
	if labels == nil {
		return map[string]string{}
	}
	return labels
}

// some is the list, or an empty one: NULL is no list.
func some[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// Nodes are all there are.
func (s *Store) Nodes(ctx context.Context) (nodes []model.Node, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) (err error) {
		nodes, err = list(ctx, q, scanNode, allNodes)
		return err
	})
	return nodes, err
}

// Node is one of them.
func (s *Store) Node(ctx context.Context, id string) (n model.Node, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) (err error) {
		n, err = node(ctx, q, id, "")
		return err
	})
	return n, err
}

// node reads one, and locks it as told.
func node(ctx context.Context, q querier, id, lock string) (model.Node, error) {
	return one(ctx, q, "node", scanNode, `SELECT `+nodeColumns+` FROM nodes WHERE node_id = $1 `+lock, id)
}

// RegisterNode makes the node live (control plane 6.1). Conflicts: AddressTaken,
// LacksFeature. A node that comes back advances the placement token: a pass that
// took it for gone must not go on to give its shards away.
func (s *Store) RegisterNode(ctx context.Context, id string, spec model.NodeSpec) (n model.Node, err error) {
	err = s.write(ctx, func(ctx context.Context, w *writer) (err error) {
		if _, err := lockToken(ctx, w); err != nil {
			return err
		}
		// No feature is enabled meanwhile.
		if _, err := w.Exec(ctx, `LOCK TABLE fleet_features IN SHARE MODE`); err != nil {
			return err
		}
		enabled, err := enabledFeatures(ctx, w)
		if err != nil {
			return err
		}
		if err := store.CheckFeatures(enabled, spec.Features); err != nil {
			return err
		}
		revived, err := w.isGone(ctx, id)
		if err != nil {
			return err
		}
		n, err = one(ctx, w, "node", scanNode, `
			INSERT INTO nodes (`+nodeColumns+`)
			VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 'live', `+millis+`, `+millis+`, 0)
			ON CONFLICT (node_id) DO UPDATE SET
				advertise_addr = excluded.advertise_addr, client_addr = excluded.client_addr, kafka_addr = excluded.kafka_addr,
				region = excluded.region, zone = excluded.zone, labels = excluded.labels,
				capacity_max_shards = excluded.capacity_max_shards, capacity_weight = excluded.capacity_weight,
				features = excluded.features, lifecycle = 'live', incarnation = nodes.incarnation + 1,
				last_heartbeat_at_millis = greatest(nodes.last_heartbeat_at_millis, `+millis+`), updated_at = now()
			RETURNING `+nodeColumns, specValues(id, spec)...)
		if _, taken := violates(err, codeUnique); taken {
			return store.Conflict(store.AddressTaken, "address %s is advertised by another node", spec.AdvertiseAddr)
		}
		if err != nil {
			return err
		}
		w.change(nodeFeed, model.Registered, n, id)
		if revived {
			err = w.advanceToken(ctx, 1)
		}
		return err
	})
	return n, err
}

// PatchNode changes what an operator may change. It publishes nothing where
// nothing changes.
func (s *Store) PatchNode(ctx context.Context, id string, p model.NodePatch) (n model.Node, err error) {
	err = s.write(ctx, func(ctx context.Context, w *writer) error {
		old, err := node(ctx, w, id, `FOR NO KEY UPDATE`)
		if err != nil {
			return err
		}
		if n, err = store.PatchedNode(old, p); err != nil {
			return err
		}
		if reflect.DeepEqual(n, old) {
			return nil
		}
		w.change(nodeFeed, model.Updated, n, id)
		_, err = w.Exec(ctx, `
			UPDATE nodes SET region = $2, labels = $3, capacity_max_shards = $4, capacity_weight = $5, lifecycle = $6, updated_at = now()
			WHERE node_id = $1`,
			id, n.Spec.Region, n.Spec.Labels, n.Spec.Capacity.MaxShards, n.Spec.Capacity.Weight, n.Status.Lifecycle)
		return err
	})
	return n, err
}

// DeleteNode forgets a node that neither serves nor is named by an assignment,
// else InUse.
func (s *Store) DeleteNode(ctx context.Context, id string) error {
	return s.write(ctx, func(ctx context.Context, w *writer) error {
		n, err := node(ctx, w, id, `FOR UPDATE`)
		if err != nil {
			return err
		}
		var assignments int
		// Writers of assignments lock the nodes they name: none is under way.
		if err := w.QueryRow(ctx, `SELECT count(*) FROM shard_assignments WHERE leader = $1 OR $1 = ANY (replicas)`, id).Scan(&assignments); err != nil {
			return err
		}
		if err := store.CheckDeletion(n, assignments); err != nil {
			return err
		}
		w.change(nodeFeed, model.Deregistered, nil, id)
		_, err = w.Exec(ctx, `DELETE FROM nodes WHERE node_id = $1`, id)
		return err
	})
}

// isGone says whether a node is known and was taken for down or left.
func (w *writer) isGone(ctx context.Context, id string) (bool, error) {
	n, err := node(ctx, w, id, `FOR UPDATE`)
	if refused(err) {
		return false, nil
	}
	return err == nil && !n.Status.Lifecycle.Serving(), err
}
