package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

func scanBridge(row pgx.CollectableRow) (b model.Bridge, err error) {
	return b, row.Scan(&b.Source, &b.Destination)
}

func bridges(ctx context.Context, q querier) ([]model.Bridge, error) {
	return list(ctx, q, scanBridge, `SELECT source, destination FROM bridges ORDER BY source, destination`)
}

// Bridges are all there are.
func (s *Store) Bridges(ctx context.Context) (all []model.Bridge, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) (err error) {
		all, err = bridges(ctx, q)
		return err
	})
	return all, err
}

// PutBridge adds one; one that is there is nothing.
func (s *Store) PutBridge(ctx context.Context, b model.Bridge) error {
	return s.alone(ctx, `INSERT INTO bridges (source, destination) VALUES ($1, $2) ON CONFLICT DO NOTHING`, b.Source, b.Destination)
}

// DeleteBridge removes one.
func (s *Store) DeleteBridge(ctx context.Context, b model.Bridge) error {
	return s.write(ctx, func(ctx context.Context, w *writer) error {
		return w.mustDelete(ctx, "bridge", `DELETE FROM bridges WHERE source = $1 AND destination = $2`, b.Source, b.Destination)
	})
}

// mustDelete deletes a row that has to be there.
func (w *writer) mustDelete(ctx context.Context, what, query string, args ...any) error {
	tag, err := w.Exec(ctx, query, args...)
	if err == nil && tag.RowsAffected() == 0 {
		return &store.NotFoundError{What: what}
	}
	return err
}
