package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

func enabledFeatures(ctx context.Context, q querier) ([]string, error) {
	return list(ctx, q, pgx.RowTo[string], `SELECT feature FROM fleet_features ORDER BY feature`)
}

// EnabledFeatures of the fleet, sorted.
func (s *Store) EnabledFeatures(ctx context.Context) (features []string, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) (err error) {
		features, err = enabledFeatures(ctx, q)
		return err
	})
	return features, err
}

// EnableFeature enables a feature unless serving nodes lack it, which it
// answers. Its lock keeps nodes from registering meanwhile.
func (s *Store) EnableFeature(ctx context.Context, feature string) (lacking []string, err error) {
	err = s.write(ctx, func(ctx context.Context, w *writer) error {
		lacking = []string{}
		if _, err := w.Exec(ctx, `LOCK TABLE fleet_features IN SHARE ROW EXCLUSIVE MODE`); err != nil {
			return err
		}
		var enabled bool
		if err := w.QueryRow(ctx, `SELECT EXISTS (SELECT FROM fleet_features WHERE feature = $1)`, feature).Scan(&enabled); err != nil || enabled {
			return err
		}
		lacking, err = list(ctx, w, pgx.RowTo[string], `
			SELECT node_id FROM nodes
			WHERE lifecycle IN ('live', 'draining') AND NOT ($1 = ANY (features)) ORDER BY node_id`, feature)
		if err != nil || len(lacking) > 0 {
			return err
		}
		_, err = w.Exec(ctx, `INSERT INTO fleet_features (feature) VALUES ($1)`, feature)
		return err
	})
	return lacking, err
}
