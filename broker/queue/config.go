package queue

import (
	"cmp"
	"log/slog"
	"time"

	"github.com/felixlog/felix/broker/steady"
	"github.com/felixlog/felix/storage"
	"github.com/felixlog/felix/storage/kvlog"
)

// Defaults of a [Config].
const (
	DefaultVisibility     = 30 * time.Second
	DefaultMaxVisibility  = 12 * time.Hour
	DefaultMaxWait        = 30 * time.Second
	DefaultIdleAfter      = 10 * time.Minute
	DefaultMaxAttempts    = 5
	DefaultMaxInFlight    = 10_000
	DefaultMaxGroups      = 10_000
	DefaultCompactionRate = kvlog.DefaultPace
)

// Bounds of one poll (wire 12.2).
const (
	MaxPollRecords = 1000
	// MaxPollBytes of payload end a poll early; one record is given whatever
	// its size.
	MaxPollBytes = 4 << 20
)

// A Clock tells the time and calls back.
type Clock = steady.Source

// Config sizes the groups of one broker. A number of zero or less means its
// default, if nothing else is said.
type Config struct {
	// Storage keeps the groups; without it there are none. It outlives the
	// store.
	Storage *storage.Store
	// Visibility is how long a claim stands where the poll names no time;
	// MaxVisibility, at least that, bounds what polls, extensions and delays
	// may ask for.
	Visibility, MaxVisibility time.Duration
	// MaxWait bounds how long a poll waits.
	MaxWait time.Duration
	// IdleAfter, or twice Visibility if that is longer, is how long a group
	// stays in memory that nobody uses.
	IdleAfter time.Duration
	// MaxAttempts is how often a record is handed out before it is a dead
	// letter.
	MaxAttempts uint32
	// MaxInFlight bounds the unsettled records of a group on a shard.
	MaxInFlight int
	// MaxGroups bounds the groups in memory, each counted once for every shard.
	MaxGroups int
	// CompactionRate bounds what compaction of the groups' logs together reads
	// and writes, in bytes a second; below 0 means no bound.
	CompactionRate int64
	// Logger is nil for silence.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	positive(&c.Visibility, DefaultVisibility)
	positive(&c.MaxVisibility, DefaultMaxVisibility)
	c.MaxVisibility = max(c.MaxVisibility, c.Visibility)
	positive(&c.MaxWait, DefaultMaxWait)
	positive(&c.IdleAfter, DefaultIdleAfter)
	c.IdleAfter = max(c.IdleAfter, 2*c.Visibility)
	positive(&c.MaxAttempts, DefaultMaxAttempts)
	positive(&c.MaxInFlight, DefaultMaxInFlight)
	positive(&c.MaxGroups, DefaultMaxGroups)
	if c.CompactionRate == 0 {
		c.CompactionRate = DefaultCompactionRate
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func positive[T cmp.Ordered](n *T, otherwise T) {
	var zero T
	if *n <= zero {
		*n = otherwise
	}
}
