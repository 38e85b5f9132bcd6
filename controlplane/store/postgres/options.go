package postgres

import (
	"errors"
	"log/slog"
	"time"

	"github.com/felixlog/felix/controlplane/store"
)

// The defaults of [Options] (control plane 11, 21).
const (
	DefaultMaxConns        = 10
	DefaultConnectTimeout  = 5 * time.Second
	DefaultAcquireTimeout  = 5 * time.Second
	DefaultCallTimeout     = 10 * time.Second
	DefaultTransferTimeout = 5 * time.Minute
	DefaultMigrateTimeout  = 2 * time.Minute
	DefaultRetentionPeriod = time.Minute
)

// Options of a store. What is zero has its default.
type Options struct {
	// URL of the database: postgres://user:password@host:port/database.
	URL string
	// MaxConns bounds the connections of this instance; 0 means 10.
	MaxConns int
	// ConnectTimeout bounds the making of one connection; 0 means 5 s.
	ConnectTimeout time.Duration
	// AcquireTimeout bounds the wait for a free connection; 0 means 5 s.
	AcquireTimeout time.Duration
	// CallTimeout bounds every call but Export and Import; 0 means 10 s.
	CallTimeout time.Duration
	// TransferTimeout bounds Export and Import; 0 means 5 min.
	TransferTimeout time.Duration
	// MigrateTimeout bounds the wait for other instances that migrate, and the
	// migration; 0 means 2 min.
	MigrateTimeout time.Duration
	// RetentionPeriod is the time between two removals of old changes; 0 means
	// 60 s.
	RetentionPeriod time.Duration
	// Limits bound the feeds.
	Limits store.Limits
	// Logger hears of migrations and of what fails in the background; nil drops
	// it.
	Logger *slog.Logger
}

func (o Options) withDefaults() (Options, error) {
	if o.URL == "" {
		return o, errors.New("postgres: no URL given; set FELIX_CONTROLPLANE_POSTGRES_URL to postgres://user:password@host:port/database")
	}
	if o.MaxConns < 0 || o.MaxConns > 10_000 {
		return o, errors.New("postgres: the number of connections must be between 1 and 10000")
	}
	if o.MaxConns == 0 {
		o.MaxConns = DefaultMaxConns
	}
	for _, d := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{
		{&o.ConnectTimeout, DefaultConnectTimeout},
		{&o.AcquireTimeout, DefaultAcquireTimeout},
		{&o.CallTimeout, DefaultCallTimeout},
		{&o.TransferTimeout, DefaultTransferTimeout},
		{&o.MigrateTimeout, DefaultMigrateTimeout},
		{&o.RetentionPeriod, DefaultRetentionPeriod},
	} {
		if *d.value < 0 {
			return o, errors.New("postgres: a timeout or period is negative")
		}
		if *d.value == 0 {
			*d.value = d.fallback
		}
	}
	o.Limits = o.Limits.WithDefaults()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o, nil
}
