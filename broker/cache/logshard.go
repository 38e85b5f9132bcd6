package cache

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/felixlog/felix/broker/keyed"
	"github.com/felixlog/felix/storage"
	"github.com/felixlog/felix/storage/kvlog"
	"github.com/felixlog/felix/storage/shardlog"
)

// A logShard is one shard of a cache on the log: the log of its values, that
// of its counters, and the watches of its values.
type logShard struct {
	cache    *Cache
	index    uint32
	hub      hub
	owner    keyed.Owner
	values   keyed.Part[*kvlog.Map]
	counters keyed.Part[*kvlog.Counters]
	// cause is why it ended; gone is closed when it has let go of its logs.
	cause atomic.Pointer[error]
	gone  chan struct{}
	// expiryFailing: the last removals of expired entries were refused.
	expiryFailing atomic.Bool
}

// errShardEnded is what the parts of a shard say after its end; callers are
// told the cause.
var errShardEnded = errors.New("shard of a cache has ended")

// newLogShard makes a shard on the log, which is opened in the background once
// the one that had the logs before has let go of them.
func (s *Store) newLogShard(c *Cache, index uint32) *logShard {
	sh := &logShard{cache: c, index: index, gone: make(chan struct{})}
	sh.owner = keyed.Owner{
		Key: sh.key(), UID: c.opts.UID, After: s.succeed(sh), Removed: errShardEnded, Unavailable: sh.unavailable,
		Logger: s.cfg.Logger.With("cache", c.name.String(), "shard", index),
	}
	sh.values.Init(s.parts, &sh.owner, storage.Caches, sh.buildMap, func(m *kvlog.Map) { s.sweep.add(sh, m) })
	sh.counters.Init(s.parts, &sh.owner, storage.Counters, kvlog.OpenCounters, nil)
	sh.values.Start()
	return sh
}

// succeed makes sh the newest of its name, and answers when the one before has
// let go of its logs.
func (s *Store) succeed(sh *logShard) (after <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.newest[sh.key()]
	s.newest[sh.key()] = sh
	if before != nil {
		return before.gone
	}
	now := make(chan struct{})
	close(now)
	return now
}

// forget lets go of a shard that has ended.
func (s *Store) forget(sh *logShard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.newest[sh.key()] == sh {
		delete(s.newest, sh.key())
	}
}

// buildMap has the shard hear of the changes of its values.
func (s *logShard) buildMap(log kvlog.Log, o kvlog.Options) (*kvlog.Map, error) {
	o.Observer = s
	return kvlog.Open(log, o)
}

func (s *logShard) key() storage.Key {
	n := s.cache.name
	return storage.Key{Tenant: n.Tenant, Namespace: n.Namespace, Name: n.Name, Shard: s.index}
}

func (s *logShard) unavailable(r Reason, err error) error {
	return &UnavailableError{Cache: s.cache.name, Shard: s.index, Reason: r, Err: err}
}

// Changed is the observer of the shard's values: the log's committer calls it
// for each change, in offset order.
func (s *logShard) Changed(c kvlog.Change) {
	if c.Op == kvlog.Expired {
		s.cache.store.expired.Add(1)
	}
	s.hub.changed(changeOf(c))
}

// logShard finds a shard of a cache on the log.
func (c *Cache) logShard(shard uint32) (*logShard, error) {
	p, err := c.part(shard)
	if err != nil {
		return nil, err
	}
	return p.log, nil
}

// values finds a shard's values.
func (c *Cache) values(shard uint32) (*logShard, *keyed.Open[*kvlog.Map], error) {
	sh, err := c.logShard(shard)
	if err != nil {
		return nil, nil, err
	}
	open, err := sh.values.Use()
	return sh, open, sh.outcome(err)
}

// outcome says why a shard ended for what its logs and indices say then.
func (s *logShard) outcome(err error) error {
	if errors.Is(err, shardlog.ErrClosed) || errors.Is(err, kvlog.ErrClosed) || errors.Is(err, errShardEnded) {
		if cause := s.cause.Load(); cause != nil {
			return *cause
		}
	}
	return err
}

// Durable says that the cache is kept on the log.
func (c *Cache) Durable() bool { return c.opts.Durable }

// Ready waits until a shard can be used: a log is opened in the background. In
// memory it is where it is served. Errors: [*ShardError], [*UnavailableError]
// with what is wrong on disk, [*placed.NotServedError], [ErrRemoved], or the
// cause of ctx.
func (c *Cache) Ready(ctx context.Context, shard uint32) error {
	if !c.Durable() {
		_, err := c.scope(shard)
		return err
	}
	sh, err := c.logShard(shard)
	if err != nil {
		return err
	}
	return sh.outcome(sh.values.Ready(ctx))
}

// getLog is Get on the log.
func (c *Cache) getLog(shard uint32, key []byte) (Item, bool, error) {
	sh, open, err := c.values(shard)
	if err != nil {
		return Item{}, false, err
	}
	item, found, err := open.Index.Get(key)
	switch {
	case err != nil:
		return Item{}, false, sh.outcome(err)
	case !found:
		c.store.onLog.misses.Add(1)
		return Item{}, false, nil
	}
	c.store.onLog.hits.Add(1)
	return itemOf(item), true, nil
}

// itemOf keeps the promise that a value is not nil.
func itemOf(i kvlog.Item) Item {
	if i.Value == nil {
		i.Value = []byte{}
	}
	return Item(i)
}

// endLogs closes the logs of parts. Their watches end with cause, after what
// they have queued.
func endLogs(parts []*part, cause error) {
	for _, p := range parts {
		if sh := p.log; sh != nil {
			sh.cause.Store(&cause)
			sh.values.End()
			sh.counters.End()
			sh.cache.store.sweep.remove(sh)
		}
	}
	for _, p := range parts {
		if sh := p.log; sh != nil {
			// Nobody is left to tell: what was not committed was not answered,
			// and the next opening repairs.
			_ = sh.values.Close()
			_ = sh.counters.Close()
			sh.hub.finish(cause)
			sh.cache.store.forget(sh)
			close(sh.gone)
		}
	}
}
