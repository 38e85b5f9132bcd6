package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var embedded embed.FS

// migrationLock is the advisory lock under which one instance migrates: "felix"
// in ASCII.
const migrationLock = 0x66656c6978

// Migrate brings the schema of the database up to date and answers the versions
// before and after. Instances that migrate at once wait for each other. A
// database that is ahead of this program is left as it is (control plane 11.3).
func Migrate(ctx context.Context, url string) (from, to int64, err error) {
	o, err := Options{URL: url}.withDefaults()
	if err != nil {
		return 0, 0, err
	}
	return migrate(ctx, o)
}

func migrate(ctx context.Context, o Options) (from, to int64, err error) {
	config, err := pgx.ParseConfig(o.URL)
	if err != nil {
		return 0, 0, errURL
	}
	config.ConnectTimeout = o.ConnectTimeout
	parameters(config, o.MigrateTimeout)
	ctx, cancel := context.WithTimeout(ctx, o.MigrateTimeout)
	defer cancel()
	if from, to, err = migrateLocked(ctx, config); err != nil {
		return 0, 0, fmt.Errorf("postgres: migrate the schema of %s: %w", Redact(o.URL), newScrubber(o.URL).clean(err))
	}
	return from, to, nil
}

// migrateLocked holds the lock on a session of its own, which ends with it.
func migrateLocked(ctx context.Context, config *pgx.ConnConfig) (from, to int64, err error) {
	session, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return 0, 0, err
	}
	defer func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = session.Close(ending) // the lock goes with the session
	}()
	if _, err := session.Exec(ctx, `SELECT pg_advisory_lock($1)`, int64(migrationLock)); err != nil {
		return 0, 0, fmt.Errorf("wait for other instances: %w", err)
	}
	db := stdlib.OpenDB(*config)
	defer db.Close()
	return apply(ctx, db)
}

// apply runs what is missing.
func apply(ctx context.Context, db *sql.DB) (from, to int64, err error) {
	p, err := provider(db)
	if err != nil {
		return 0, 0, err
	}
	if from, err = p.GetDBVersion(ctx); err != nil {
		return 0, 0, err
	}
	if _, err := p.Up(ctx); err != nil {
		return 0, 0, err
	}
	to, err = p.GetDBVersion(ctx)
	return from, to, err
}

func provider(db *sql.DB) (*goose.Provider, error) {
	files, err := fs.Sub(embedded, "migrations")
	if err != nil {
		return nil, err
	}
	return goose.NewProvider(goose.DialectPostgres, db, files, goose.WithDisableGlobalRegistry(true))
}

// newestVersion is the version of the schema that this program makes.
func newestVersion() (int64, error) {
	p, err := provider(&sql.DB{}) // never asked
	if err != nil {
		return 0, fmt.Errorf("postgres: embedded migrations: %w", err)
	}
	sources := p.ListSources()
	if len(sources) == 0 {
		return 0, errors.New("postgres: no migrations are embedded")
	}
	return sources[len(sources)-1].Version, nil
}
