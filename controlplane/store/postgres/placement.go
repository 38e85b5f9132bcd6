package postgres

import (
	"context"
	"time"

	"github.com/felixlog/felix/controlplane/store"
)

// MovesPaused is whether new moves are stopped.
func (s *Store) MovesPaused(ctx context.Context) (paused bool, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		return q.QueryRow(ctx, `SELECT moves_paused FROM placement_settings WHERE id = 1`).Scan(&paused)
	})
	return paused, err
}

// SetMovesPaused stops new moves, or lets them go on.
func (s *Store) SetMovesPaused(ctx context.Context, paused bool) error {
	return s.alone(ctx, `UPDATE placement_settings SET moves_paused = $1, updated_at = now() WHERE id = 1`, paused)
}

// PlacementToken is what the next write of an assignment has to name.
func (s *Store) PlacementToken(ctx context.Context) (token uint64, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		return q.QueryRow(ctx, `SELECT token FROM placement_lease WHERE id = 1`).Scan(&token)
	})
	return token, err
}

// lockToken reads the token and keeps it as it is to the end of the transaction.
// It is the first lock of all.
func lockToken(ctx context.Context, w *writer) (token uint64, err error) {
	return token, w.QueryRow(ctx, `SELECT token FROM placement_lease WHERE id = 1 FOR UPDATE`).Scan(&token)
}

func (w *writer) advanceToken(ctx context.Context, by int) error {
	_, err := w.Exec(ctx, `UPDATE placement_lease SET token = token + $1 WHERE id = 1`, by)
	return err
}

// AcquireLease takes the lease if it is free, holder's already, or expired by
// the database's clock (control plane 7.8, 11.2). A holder whose own lease expired, and
// that nobody followed, is not another holder: the token stays.
func (s *Store) AcquireLease(ctx context.Context, holder string, ttl time.Duration) (lease store.Lease, err error) {
	err = s.write(ctx, func(ctx context.Context, w *writer) error {
		lease = store.Lease{}
		var before *string
		var free bool
		err := w.QueryRow(ctx, `
			SELECT holder, holder IS NULL OR holder = $1 OR expires_at <= clock_timestamp()
			FROM placement_lease WHERE id = 1 FOR UPDATE`, holder).Scan(&before, &free)
		if err != nil || !free {
			return err
		}
		lease = store.Lease{Held: true, TakenOver: before == nil || *before != holder}
		_, err = w.Exec(ctx, `
			UPDATE placement_lease SET holder = $1, expires_at = clock_timestamp() + $2,
				token = token + CASE WHEN $3 THEN 1 ELSE 0 END
			WHERE id = 1`, holder, ttl, lease.TakenOver)
		return err
	})
	return lease, err
}

// ReleaseLease gives up the lease of holder; that of another is left alone.
func (s *Store) ReleaseLease(ctx context.Context, holder string) error {
	return s.alone(ctx, `UPDATE placement_lease SET holder = NULL, expires_at = NULL WHERE id = 1 AND holder = $1`, holder)
}

// MayPlan is always true: the token makes the writes of all instances safe.
func (s *Store) MayPlan(context.Context) (bool, error) {
	if s.closed.Load() {
		return false, store.ErrClosed
	}
	return true, nil
}
