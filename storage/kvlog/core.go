package kvlog

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/felixlog/felix/storage/shardlog"
)

// A core is what caches and counters share: the index over the log, the view
// of what is staged, and compaction.
//
// Two locks. stage orders appends: who holds it judges against the staged view
// and appends, so that the order of judgements is the order in the log. mu
// guards memory only and is taken inside stage and, alone, by readers and
// completions. Completions never take stage: in the modes without a sync the
// log calls them from within the append.
type core struct {
	log  Log
	kind kind
	opt  Options

	stage sync.Mutex
	next  uint64 // offset behind the newest append; stage

	mu     sync.RWMutex
	index  *index
	staged map[string]*op // the newest append of each key that is not committed yet
	last   *op            // the newest append of all, nil once it is committed
	broken error          // why the index cannot be trusted, or ErrClosed

	applied atomic.Uint64 // records below are in the index
	flight  atomic.Int64  // appends not committed yet

	compactor compactor
}

// A kind is the meaning of the records of one log.
type kind interface {
	code() byte // in the key index
	// fold returns what the record at offset makes of its key, and the change
	// a watcher sees, if it is one. x tells what the key held before. Replay
	// may show it records that a snapshot of the index holds already; shown all
	// that follow too, the outcome is the same.
	fold(rec []byte, offset uint64, at shardlog.Location, x *index) (folded, error)
	// load prepares a batch of entries to carry forward, without locks.
	load(ctx context.Context, batch []carried) error
	// carry makes the copy of one entry; false when it must not be copied now.
	// stage is held.
	carry(o *op, from *carried, v view) bool
	// readsLog says that entries point into segments.
	readsLog() bool
}

// A folded record: the key now holds after.
type folded struct {
	key    []byte
	after  state
	same   bool // nothing changed: the index knew it
	notify bool
	change Change
}

func openCore(log Log, k kind, o Options, bind func(*core)) (*core, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.CompactFactor == 0 {
		o.CompactFactor = DefaultCompactFactor
	}
	c := &core{log: log, kind: k, opt: o, staged: make(map[string]*op)}
	bind(c)
	c.compactor.init()
	if err := c.load(); err != nil {
		return nil, err
	}
	c.maybeCompact()
	return c, nil
}

// load fills an empty index: from the snapshot if it verifies, then from the
// log. stage is held, or nobody knows c yet; nothing is staged.
func (c *core) load() error {
	x, covered := c.loadKeyIndex()
	c.mu.Lock()
	c.index = x
	c.applied.Store(covered)
	c.mu.Unlock()
	return c.replay(c.log.Tail(), nil)
}

// reload is for a log that was cut: what the index knows may be gone.
func (c *core) reload() error {
	halted, err := c.compactor.halt()
	if err != nil {
		return err
	}
	defer halted()
	c.stage.Lock()
	defer c.stage.Unlock()
	c.mu.Lock()
	if c.broken != ErrClosed {
		c.broken = ErrReloading // what is not in the index yet is not absent
	}
	c.mu.Unlock()
	err = c.load()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.broken != ErrClosed {
		c.broken = err
	}
	return err
}

// fail makes every later call answer err.
func (c *core) fail(err error) {
	c.mu.Lock()
	if c.broken == nil {
		c.broken = err
	}
	c.mu.Unlock()
}

func (c *core) close() {
	c.mu.Lock()
	c.broken = ErrClosed
	c.mu.Unlock()
	c.compactor.close()
}

// behind reports records in the log that did not come through a write here: a
// follower's. The order of the loads matters: a write counts in flight from
// before its commit moves the tail until it is applied.
func (c *core) behind() bool {
	tail := c.log.Tail()
	return c.flight.Load() == 0 && c.applied.Load() < tail
}

// catchUp brings the index to the tail if the log moved without it.
func (c *core) catchUp() error {
	if !c.behind() {
		return nil
	}
	c.stage.Lock()
	defer c.stage.Unlock()
	return c.catchUpStaged()
}

// catchUpStaged is catchUp with stage held.
func (c *core) catchUpStaged() error {
	if !c.behind() {
		return nil
	}
	err := c.replay(c.log.Tail(), c.opt.Observer)
	if err != nil {
		c.fail(err)
	}
	return err
}

const (
	replayBytes   = 1 << 20
	replayRecords = 10_000
)

// replay applies the records in [applied, to).
func (c *core) replay(to uint64, observer Observer) error {
	for from := c.applied.Load(); from < to; from = c.applied.Load() {
		page, err := c.log.Read(from, replayBytes, replayRecords)
		if err != nil {
			return err
		}
		err = eachRecord(page, from, to, func(rec []byte, offset uint64, at shardlog.Location) error {
			c.mu.Lock()
			f, err := c.apply("", rec, offset, at)
			c.mu.Unlock()
			if err == nil && f.notify && observer != nil {
				observer.Changed(f.change)
			}
			return err
		})
		next := min(page.Next, to)
		page.Release()
		if err != nil {
			return err
		}
		if next <= from {
			return &CorruptionError{Offset: from, Detail: "the log ends before its tail"}
		}
		c.applied.Store(next)
	}
	return nil
}

// apply folds one record into the index. mu is held. key is the record's key
// if the caller has it as a string, else "".
func (c *core) apply(key string, rec []byte, offset uint64, at shardlog.Location) (folded, error) {
	f, err := c.kind.fold(rec, offset, at, c.index)
	if err != nil {
		return folded{}, &CorruptionError{Offset: offset, Detail: err.Error()}
	}
	if key == "" {
		key = c.index.intern(f.key)
	}
	switch {
	case f.same:
	case f.after.present:
		c.index.set(key, f.after.entry)
	default:
		c.index.remove(key)
	}
	return f, nil
}

// get looks a key up in what is committed.
func (c *core) get(key []byte) (state, error) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.index.get(key), c.broken
}

func (c *core) nowMillis() int64 { return c.opt.Clock.Now().UnixMilli() }

func (c *core) len() int {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.index.len()
}

func (c *core) liveBytes() int64 {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.index.live
}
