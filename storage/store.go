package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/felixlog/felix/storage/fs"
	"github.com/felixlog/felix/storage/journal"
	"github.com/felixlog/felix/storage/shardlog"
)

// lockName is the file in the root that the process with the store open holds
// locked.
const lockName = "LOCK"

// The defaults of Config.
const (
	DefaultMaxOpenSealed = 256
	DefaultMaxFlushes    = 32
	DefaultOpenParallel  = 8
)

// Config says where the logs are and how they are kept.
type Config struct {
	// Root is the directory of the store. It is made if it does not exist.
	Root string
	// Log holds the settings of every log. Its Name, Projection, Producers,
	// Clock, Began, Gate, Journal, Descriptors, Metrics, Logger, Admit, AfterRound
	// and OnClosed are set by the store.
	Log shardlog.Options
	// MaxOpenSealed bounds the descriptors of sealed segments, for each space;
	// 0 means 256.
	MaxOpenSealed int
	// MaxFlushes bounds the device flushes that run at once; 0 means 32.
	MaxFlushes int
	// OpenParallel bounds the logs that are being opened at once, beside one
	// more that somebody waits for; 0 means 8.
	OpenParallel int
	// JournalBytes is the size of each of the two files of the commit journal,
	// which logs in on_commit mode share, or 1/32 of the free space where that
	// is less; 0 means 64 MiB, and a negative number none.
	JournalBytes int64
	// SoftFreeBytes is the free space below which appends to streams are
	// refused, so that what frees space and what moves positions still finds
	// some; 0 is no such bound.
	SoftFreeBytes uint64
}

// Deps are what a store takes from its surroundings.
type Deps struct {
	Clock shardlog.Clock
	// Logger is nil for silence.
	Logger *slog.Logger
}

// LogOptions are what one log has of its own.
type LogOptions struct {
	// Retention applies to streams alone; it is ignored where a log is the
	// latest of each key.
	Retention shardlog.Retention
	// Producers keeps the state of idempotent producers.
	Producers bool
	// AfterRound is called by the log after the completions of a round.
	AfterRound func()
	// BaseOffset is where a log that does not exist yet begins.
	BaseOffset uint64
	// UID says which creation of its stream or cache the log is for. A log of
	// another one is refused with an *[IdentityError], one of which nothing says
	// so is adopted. Empty: nobody knows, and nothing is checked.
	UID string
	// Background marks an open that nobody waits for. It leaves room for those
	// that somebody does, and becomes one when somebody asks for the same log.
	Background bool
}

// A Store is the logs under one root. It is safe for concurrent use.
type Store struct {
	fs      fs.FS
	cfg     Config
	clock   shardlog.Clock
	began   time.Time // when the store was opened
	ahead   sync.Once // the warning of records of a time to come
	logger  *slog.Logger
	metrics *shardlog.Metrics
	gate    *shardlog.Gate
	sealed  map[Space]*shardlog.Descriptors
	lock    io.Closer
	space   *freeSpace
	// journal is nil where logs sync their own files.
	journal *journal.Journal

	// Slots to open a log in: every open takes one of opening, one that nobody
	// waits for takes one of background first, which has one less.
	opening, background chan struct{}

	// emptying is held by who deletes what is in the trash; deleting ends when
	// the store closes, which waits for cleaning: who removes logs.
	emptying    sync.Mutex
	deleting    context.Context
	stopDeletes context.CancelFunc
	cleaning    sync.WaitGroup

	mu     sync.Mutex
	slots  map[slotKey]*slot
	closed bool
}

// slotKey names a log of the store.
type slotKey struct {
	space Space
	key   Key
}

// ErrClosed answers a call on a store that was closed.
var ErrClosed = errors.New("storage closed")

// Open opens the store under cfg.Root and locks it for this process: a
// *fs.LockedError says who else has it. What a crash left in the commit journal
// is brought to its logs, or refused with a *journal.DamagedError. No log is
// opened yet.
func Open(f fs.FS, cfg Config, deps Deps) (*Store, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if deps.Clock == nil {
		return nil, errors.New("storage: a clock is required")
	}
	if deps.Logger == nil {
		deps.Logger = slog.New(slog.DiscardHandler)
	}
	if err := makeRoot(f, cfg.Root); err != nil {
		return nil, fmt.Errorf("make storage root: %w", err)
	}
	lock, err := f.Lock(filepath.Join(cfg.Root, lockName))
	if err != nil {
		return nil, fmt.Errorf("lock storage root: %w", err)
	}
	s := &Store{
		fs: f, cfg: cfg, clock: deps.Clock, began: deps.Clock.Now(), logger: deps.Logger, lock: lock,
		metrics:    shardlog.NewMetrics(),
		gate:       shardlog.NewGate(cfg.MaxFlushes),
		sealed:     make(map[Space]*shardlog.Descriptors),
		opening:    make(chan struct{}, cfg.OpenParallel+1),
		background: make(chan struct{}, cfg.OpenParallel),
		slots:      make(map[slotKey]*slot),
	}
	for _, space := range Spaces() {
		s.sealed[space] = shardlog.NewDescriptors(cfg.MaxOpenSealed)
	}
	if err := s.openJournal(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s.deleting, s.stopDeletes = context.WithCancel(context.Background())
	s.cleaning.Go(func() { s.emptyTrash(s.deleting) })
	s.space = watchFreeSpace(f, cfg.Root, cfg.SoftFreeBytes, deps.Clock, deps.Logger)
	return s, nil
}

// makeRoot makes the root and the directory of each space, and makes durable
// what an earlier process may have made and not synced.
func makeRoot(f fs.FS, root string) error {
	if err := fs.MkdirDurable(f, root); err != nil {
		return err
	}
	if err := fs.SyncParents(f, root); err != nil {
		return err
	}
	for _, space := range Spaces() {
		if err := fs.MkdirDurable(f, filepath.Join(root, string(space))); err != nil {
			return err
		}
	}
	return nil
}

func (c Config) withDefaults() (Config, error) {
	if c.MaxOpenSealed == 0 {
		c.MaxOpenSealed = DefaultMaxOpenSealed
	}
	if c.MaxFlushes == 0 {
		c.MaxFlushes = DefaultMaxFlushes
	}
	if c.OpenParallel == 0 {
		c.OpenParallel = DefaultOpenParallel
	}
	switch {
	case c.Root == "":
		return c, errors.New("storage: a root directory is required")
	case c.MaxOpenSealed < 0:
		return c, fmt.Errorf("storage: open sealed segments %d: must be positive", c.MaxOpenSealed)
	case c.MaxFlushes < 0:
		return c, fmt.Errorf("storage: concurrent flushes %d: must be positive", c.MaxFlushes)
	case c.OpenParallel < 0:
		return c, fmt.Errorf("storage: logs opened at once %d: must be positive", c.OpenParallel)
	}
	return c, nil
}

// Root is the directory of the store.
func (s *Store) Root() string { return s.cfg.Root }

// FS is the file system it is on.
func (s *Store) FS() fs.FS { return s.fs }

// Metrics are those of all its logs.
func (s *Store) Metrics() *shardlog.Metrics { return s.metrics }

// checkEvery is how often the free space is looked at.
const checkEvery = time.Second
