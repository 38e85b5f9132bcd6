package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/felixlog/felix/controlplane/store"
)

// CatchUp has nothing to wait for: every read is one of the database.
func (s *Store) CatchUp(context.Context) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	return nil
}

// Health says why the store cannot serve: the database does not answer within
// ctx, is a standby, or has an older schema than this program (control plane
// 11.3, 23). A newer schema is fine.
func (s *Store) Health(ctx context.Context) error {
	var version int64
	var standby bool
	err := s.read(ctx, func(ctx context.Context, q querier) error {
		return q.QueryRow(ctx, `
			SELECT coalesce(max(version_id), 0), pg_is_in_recovery()
			FROM goose_db_version WHERE is_applied`).Scan(&version, &standby)
	})
	switch {
	case err != nil:
		return err
	case standby:
		return errors.New("the database is a standby and takes no writes; point the URL at the primary")
	case version < s.newest:
		return fmt.Errorf("the schema has version %d and this program needs %d; restart an instance of this release to migrate it", version, s.newest)
	}
	return nil
}
