package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/felixlog/felix/controlplane/store"
)

// attempts bounds how often a transaction is tried that lost against another.
const attempts = 8

// A querier runs statements, in a transaction or not.
type querier interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// read runs fn on a connection. fn reads only, and may run twice: a connection
// that broke while nobody used it is found out by using it.
func (s *Store) read(ctx context.Context, fn func(ctx context.Context, q querier) error) error {
	return s.call(ctx, s.options.CallTimeout, func(ctx context.Context) error {
		return s.fresh(ctx, func(conn *pgxpool.Conn) error { return fn(ctx, conn) })
	})
}

// snapshot runs fn in a transaction that sees one instant (control plane 11).
func (s *Store) snapshot(ctx context.Context, limit time.Duration, fn func(ctx context.Context, q querier) error) error {
	instant := pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}
	return s.call(ctx, limit, func(ctx context.Context) error {
		return s.fresh(ctx, func(conn *pgxpool.Conn) error {
			return pgx.BeginTxFunc(ctx, conn, instant, func(tx pgx.Tx) error { return fn(ctx, tx) })
		})
	})
}

// write runs fn in a transaction and publishes its changes. fn may run several
// times, and takes nothing over from one to the next.
func (s *Store) write(ctx context.Context, fn func(ctx context.Context, w *writer) error) error {
	return s.writeWithin(ctx, s.options.CallTimeout, fn)
}

func (s *Store) writeWithin(ctx context.Context, limit time.Duration, fn func(ctx context.Context, w *writer) error) error {
	return s.call(ctx, limit, func(ctx context.Context) error {
		for attempt := 1; ; attempt++ {
			err := s.transact(ctx, fn)
			if err == nil || attempt == attempts || !again(err) || ctx.Err() != nil {
				return err
			}
		}
	})
}

// call bounds a call in time, and by the end of the store, and says what became of
// it in the store's words.
func (s *Store) call(ctx context.Context, limit time.Duration, fn func(ctx context.Context) error) error {
	if s.closed.Load() {
		return store.ErrClosed
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	defer context.AfterFunc(s.background, cancel)()
	return s.fault(fn(ctx))
}

// fresh runs fn on a connection, and once more on a new one if that was broken.
func (s *Store) fresh(ctx context.Context, fn func(conn *pgxpool.Conn) error) error {
	err := s.with(ctx, fn)
	s.distrust(ctx, err)
	if err != nil && broken(err) && ctx.Err() == nil {
		err = s.with(ctx, fn)
	}
	return err
}

// distrust gives up the connections of the pool when one of them broke or did
// not answer: they go the same way.
func (s *Store) distrust(ctx context.Context, err error) {
	if err != nil && (broken(err) || errors.Is(ctx.Err(), context.DeadlineExceeded)) {
		s.pool.Reset()
	}
}

func (s *Store) with(ctx context.Context, fn func(conn *pgxpool.Conn) error) error {
	waiting, cancel := context.WithTimeout(ctx, s.options.AcquireTimeout)
	defer cancel()
	conn, err := s.pool.Acquire(waiting)
	if err != nil {
		return err
	}
	defer conn.Release()
	return fn(conn)
}

// transact makes one attempt at a write. Until the transaction has begun nothing
// can have happened, so a broken connection is replaced; afterwards it is not.
func (s *Store) transact(ctx context.Context, fn func(ctx context.Context, w *writer) error) error {
	var failed error
	err := s.fresh(ctx, func(conn *pgxpool.Conn) error {
		tx, err := conn.Begin(ctx)
		if err != nil {
			return err
		}
		failed = s.complete(ctx, tx, fn)
		return nil
	})
	if err != nil {
		return err
	}
	s.distrust(ctx, failed)
	return failed
}

// complete runs fn in a transaction that has begun, and commits it.
func (s *Store) complete(ctx context.Context, tx pgx.Tx, fn func(ctx context.Context, w *writer) error) error {
	w := &writer{Tx: tx}
	err := fn(ctx, w)
	if err == nil {
		err = w.publish(ctx)
	}
	if err != nil {
		_ = tx.Rollback(ctx) // if it fails too, the connection is not used again
		return err
	}
	err = tx.Commit(ctx)
	if (w.reassigned || w.changes[assignmentFeed] != nil) && (err == nil || silent(err)) {
		s.watch.wake()
	}
	return err
}
