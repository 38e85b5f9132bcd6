package postgres

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/felixlog/felix/controlplane/store"
)

var _ store.Store = (*Store)(nil)

// A Store is the metadata of a cluster in a Postgres database.
type Store struct {
	options Options
	limits  store.Limits
	pool    *pgxpool.Pool
	secrets scrubber
	watch   watch
	newest  int64 // version of the schema that this program knows

	closed     atomic.Bool
	background context.Context // ends with the store
	closing    context.CancelFunc
	closeOnce  sync.Once
	wait       sync.WaitGroup
}

// Open connects, brings the schema up to date, and starts the removal of old
// changes, which ends with Close. ctx bounds Open only.
func Open(ctx context.Context, o Options) (*Store, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	config, err := parse(o)
	if err != nil {
		return nil, err
	}
	from, to, err := migrate(ctx, o)
	if err != nil {
		return nil, err
	}
	if from != to {
		o.Logger.Info("migrated the schema", "from", from, "to", to, "database", Redact(o.URL))
	}
	newest, err := newestVersion()
	if err != nil {
		return nil, err
	}
	background, cancel := context.WithCancel(context.Background())
	pool, err := pgxpool.NewWithConfig(background, config)
	if err != nil {
		cancel()
		return nil, fmt.Errorf("postgres: open pool: %w", newScrubber(o.URL).clean(err))
	}
	s := &Store{
		options: o, limits: o.Limits, pool: pool, secrets: newScrubber(o.URL), newest: newest,
		background: background, closing: cancel,
	}
	s.wait.Go(func() { s.retain(background) })
	return s, nil
}

// Close ends the store; calls in flight fail. It waits for the connections to
// close, for up to 15 s where the database is silent.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		s.closed.Store(true)
		s.closing()
		s.wait.Wait()
		s.pool.Close()
	})
	return nil
}

// Durable is true: the database keeps what it committed.
func (s *Store) Durable() bool { return true }

// Name is "postgres".
func (s *Store) Name() string { return "postgres" }

// millis is the store's clock in SQL: never now(), which stands still within a
// transaction (control plane 11.2).
const millis = `(extract(epoch FROM clock_timestamp()) * 1000)::bigint`

// NowMillis is the database's clock.
func (s *Store) NowMillis(ctx context.Context) (now uint64, err error) {
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		return q.QueryRow(ctx, `SELECT `+millis).Scan(&now)
	})
	return now, err
}
