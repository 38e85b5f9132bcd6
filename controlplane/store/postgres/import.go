package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// Import replaces everything by a dump, in one transaction beside which nobody
// writes (control plane 14).
//
// A reader at the head of a feed that is imported into an empty store notices
// nothing. Where a store that held something is overwritten, every feed goes
// past both its own head and that of the dump, so that each reader of either
// takes a new snapshot instead of going on over the break. The placement token
// goes past its own value, which fences a planner that read what is gone.
func (s *Store) Import(ctx context.Context, d *model.Dump, overwrite bool) error {
	if err := store.CheckDump(d); err != nil {
		return err
	}
	return s.writeWithin(ctx, s.options.TransferTimeout, func(ctx context.Context, w *writer) error {
		if _, err := w.Exec(ctx, `SET LOCAL statement_timeout = 0`); err != nil {
			return err
		}
		if err := w.lockEverything(ctx); err != nil {
			return err
		}
		held, heads, err := w.held(ctx)
		if err != nil {
			return err
		}
		if held && !overwrite {
			return store.Conflict(store.NotEmpty, "the store holds something, or has held something: import with overwrite to replace it")
		}
		if err := w.clear(ctx); err != nil {
			return err
		}
		if err := w.load(ctx, d); err != nil {
			return contradiction(err)
		}
		w.reassigned = true
		return w.setHeads(ctx, d, held, heads)
	})
}

// imported are the tables that an import replaces, those that refer to others
// last.
var imported = []string{
	"tenants", "namespaces", "streams", "caches", "bridges", "nodes", "fleet_features", "shard_assignments", "replica_reports",
	"idp_issuers", "tenant_signing_keys", "rbac_policies", "rbac_groupings", "refresh_tokens", "tombstones",
	"tenant_changes", "namespace_changes", "stream_changes", "cache_changes", "node_changes", "shard_assignment_changes",
}

// lockEverything waits for all other writes, and lets no new one begin.
func (w *writer) lockEverything(ctx context.Context) error {
	tables := append([]string{"placement_lease", "placement_settings"}, imported...)
	for _, f := range feeds {
		tables = append(tables, f.counter())
	}
	_, err := w.Exec(ctx, `LOCK TABLE `+strings.Join(tables, ", ")+` IN EXCLUSIVE MODE`)
	return err
}

// held says whether the store has ever held anything, and where its feeds are.
func (w *writer) held(ctx context.Context) (held bool, heads model.FeedHeads, err error) {
	for f, to := range headsOf(&heads) {
		if *to, err = head(ctx, w, f); err != nil {
			return false, heads, err
		}
		held = held || *to > 0
	}
	if held {
		return true, heads, nil
	}
	err = w.QueryRow(ctx, `SELECT EXISTS (SELECT FROM fleet_features)`).Scan(&held)
	return held, heads, err
}

// clear empties all tables by deleting: TRUNCATE would be seen by snapshots that
// are under way.
func (w *writer) clear(ctx context.Context) error {
	batch := &pgx.Batch{}
	for _, table := range slices.Backward(imported) {
		batch.Queue(`DELETE FROM ` + table)
	}
	return w.SendBatch(ctx, batch).Close()
}

// setHeads moves the feeds and the token, and pauses moves as the dump says.
func (w *writer) setHeads(ctx context.Context, d *model.Dump, held bool, old model.FeedHeads) error {
	next := d.NextSeq
	batch := &pgx.Batch{}
	before := headsOf(&old)
	for f, to := range headsOf(&next) {
		if held {
			*to = max(*to, *before[f]) + 1
		}
		batch.Queue(`UPDATE `+f.counter()+` SET next_seq = $1`, *to)
	}
	batch.Queue(`UPDATE placement_settings SET moves_paused = $1, updated_at = now()`, d.MovesPaused)
	batch.Queue(`UPDATE placement_lease SET token = greatest(token + 1, $1)`, d.Token)
	return w.SendBatch(ctx, batch).Close()
}

// contradiction says so where a dump does not fit itself.
func contradiction(err error) error {
	for _, code := range []string{codeForeignKey, codeUnique, "23502", "23514"} {
		if constraint, ok := violates(err, code); ok {
			return fmt.Errorf("dump contradicts itself (%s): %w", constraint, err)
		}
	}
	return err
}
