package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

const reportColumns = keyColumns + `, generation, caught_up, offsets, reported_at_millis, drained, leader_offset`

func scanReport(row pgx.CollectableRow) (r model.ReplicaReport, err error) {
	return r, row.Scan(&r.TenantID, &r.Namespace, &r.Stream, &r.Shard, &r.Kind, &r.Generation, &r.CaughtUp, &r.Offsets,
		&r.ReportedAtMillis, &r.Drained, &r.LeaderOffset)
}

// Reports are all there are.
func (s *Store) Reports(ctx context.Context) (all []model.ReplicaReport, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) (err error) {
		all, err = list(ctx, q, scanReport, `SELECT `+reportColumns+` FROM replica_reports ORDER BY `+keyColumns)
		return err
	})
	return all, err
}

// RecordReports judges what a leader reports against assignments that it keeps
// locked, and stores what it accepts (control plane 6.5).
func (s *Store) RecordReports(ctx context.Context, sender string, reports []model.ReplicaReport) (outcomes []model.ReportOutcome, err error) {
	outcomes = make([]model.ReportOutcome, len(reports))
	if len(reports) == 0 {
		return outcomes, nil
	}
	var keys keyLists
	for _, r := range reports {
		keys.add(r.ShardKey)
	}
	err = s.write(ctx, func(ctx context.Context, w *writer) error {
		assignments, err := list(ctx, w, scanAssignment,
			`SELECT `+assignmentColumns+` FROM shard_assignments WHERE `+inKeys+` ORDER BY `+keyColumns+` FOR SHARE`, keys.values()...)
		if err != nil {
			return err
		}
		current := make(map[model.ShardKey]*model.Assignment, len(assignments))
		for i := range assignments {
			current[assignments[i].ShardKey] = &assignments[i]
		}
		accepted := make(map[model.ShardKey]model.ReplicaReport, len(reports)) // the last of each shard
		for i, r := range reports {
			if outcomes[i] = store.JudgeReport(sender, &r, current[r.ShardKey]); outcomes[i] == model.ReportAccepted {
				accepted[r.ShardKey] = r
			}
		}
		return w.storeReports(ctx, accepted)
	})
	return outcomes, err
}

// storeReports replaces the reports of shards whose assignments are locked.
func (w *writer) storeReports(ctx context.Context, accepted map[model.ShardKey]model.ReplicaReport) error {
	keys := make([]model.ShardKey, 0, len(accepted))
	for k := range accepted {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, model.ShardKey.Compare)
	rows := make([][]any, 0, len(keys))
	for _, k := range keys {
		r := accepted[k]
		offsets := r.Offsets
		if offsets == nil {
			offsets = map[string]uint64{}
		}
		caughtUp := some(slices.Compact(slices.Sorted(slices.Values(r.CaughtUp))))
		rows = append(rows, append(keyValues(k), r.Generation, caughtUp, offsets, r.Drained, r.LeaderOffset))
	}
	return w.insertAll(ctx, `
		INSERT INTO replica_reports (`+keyColumns+`, generation, caught_up, offsets, drained, leader_offset, reported_at_millis)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, `+millis+`)
		ON CONFLICT (`+keyColumns+`) DO UPDATE SET
			generation = excluded.generation, caught_up = excluded.caught_up, offsets = excluded.offsets,
			drained = excluded.drained, leader_offset = excluded.leader_offset, reported_at_millis = excluded.reported_at_millis
		WHERE excluded.generation >= replica_reports.generation`, rows)
}
