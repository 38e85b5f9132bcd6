package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/felixlog/felix/controlplane/model"
)

const assignmentColumns = keyColumns + `, leader, replicas, generation, state, successor, joining, move_started_at_millis, move_reason, routing`

func scanAssignment(row pgx.CollectableRow) (a model.Assignment, err error) {
	return a, row.Scan(&a.TenantID, &a.Namespace, &a.Stream, &a.Shard, &a.Kind, &a.Leader, &a.Replicas, &a.Generation,
		&a.State, &a.Successor, &a.Joining, &a.MoveStartedAtMillis, &a.MoveReason, &a.Routing)
}

func assignmentValues(a model.Assignment) []any {
	return []any{a.TenantID, a.Namespace, a.Stream, a.Shard, a.Kind, a.Leader, some(a.Replicas), a.Generation,
		a.State, a.Successor, a.Joining, a.MoveStartedAtMillis, a.MoveReason, a.Routing}
}

// ofKey chooses the row of a key.
const ofKey = `tenant_id = $1 AND namespace = $2 AND stream = $3 AND shard = $4 AND kind = $5`

func keyValues(k model.ShardKey) []any {
	return []any{k.TenantID, k.Namespace, k.Stream, k.Shard, k.Kind}
}

// Assignments are all there are.
func (s *Store) Assignments(ctx context.Context) (all []model.Assignment, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) (err error) {
		all, err = list(ctx, q, scanAssignment, allAssignments)
		return err
	})
	return all, err
}

// AssignmentsOf a node: those it leads or follows.
func (s *Store) AssignmentsOf(ctx context.Context, node string) (of []model.Assignment, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) (err error) {
		of, err = list(ctx, q, scanAssignment, `
			SELECT `+assignmentColumns+` FROM shard_assignments
			WHERE leader = $1 OR $1 = ANY (replicas) ORDER BY `+keyColumns, node)
		return err
	})
	return of, err
}

// Assignment is one of them.
func (s *Store) Assignment(ctx context.Context, k model.ShardKey) (a model.Assignment, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) (err error) {
		a, err = one(ctx, q, "assignment", scanAssignment,
			`SELECT `+assignmentColumns+` FROM shard_assignments WHERE `+ofKey, keyValues(k)...)
		return err
	})
	return a, err
}

// DeleteAssignment deletes one, with its report.
func (s *Store) DeleteAssignment(ctx context.Context, k model.ShardKey) error {
	return s.write(ctx, func(ctx context.Context, w *writer) error {
		w.change(assignmentFeed, model.Unassigned, nil, keyParts(k)...)
		return w.mustDelete(ctx, "assignment", `DELETE FROM shard_assignments WHERE `+ofKey, keyValues(k)...)
	})
}
