package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// retain removes old changes and tombstones until ctx ends. An overrun is not
// caught up with.
func (s *Store) retain(ctx context.Context) {
	timer := time.NewTimer(s.options.RetentionPeriod)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if err := s.Prune(ctx); err != nil && ctx.Err() == nil {
			s.options.Logger.Warn("old changes could not be removed; the next round tries again", "error", err)
		}
		timer.Reset(s.options.RetentionPeriod)
	}
}

// Prune removes the changes of all feeds, and the tombstones of both kinds, but
// the newest [store.Limits.ChangesKept] of each. The store does it by itself
// every RetentionPeriod.
func (s *Store) Prune(ctx context.Context) error {
	kept := s.limits.ChangesKept
	for _, f := range feeds {
		query := fmt.Sprintf(`DELETE FROM %s WHERE seq < (SELECT next_seq FROM %s) - $1`, f.table(), f.counter())
		if err := s.alone(ctx, query, kept); err != nil {
			return err
		}
		if f.graves == "" {
			continue
		}
		err := s.alone(ctx, `
			DELETE FROM tombstones WHERE kind = $1 AND seq < (
				SELECT seq FROM tombstones WHERE kind = $1 ORDER BY seq DESC OFFSET $2 LIMIT 1
			)`, f.graves, kept-1)
		if err != nil {
			return err
		}
	}
	return nil
}

// alone runs one statement that is a transaction by itself, and may be repeated.
func (s *Store) alone(ctx context.Context, query string, args ...any) error {
	return s.call(ctx, s.options.CallTimeout, func(ctx context.Context) error {
		return s.fresh(ctx, func(conn *pgxpool.Conn) error {
			_, err := conn.Exec(ctx, query, args...)
			return err
		})
	})
}
