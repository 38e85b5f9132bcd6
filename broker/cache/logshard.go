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
	// expiryFailing: the last removals of expired entries were refused.
	expiryFailing atomic.Bool
}

// init makes a shard that opens nothing yet.
func (s *logShard) init(c *Cache, index uint32) {
	s.cache, s.index = c, index
	s.owner = keyed.Owner{
		Key: s.key(), After: c.after, Removed: ErrRemoved, Unavailable: s.unavailable,
		Logger: c.store.cfg.Logger.With("cache", c.name.String(), "shard", index),
	}
	s.values.Init(c.store.parts, &s.owner, storage.Caches, s.buildMap, func(m *kvlog.Map) { c.store.sweep.add(s, m) })
	s.counters.Init(c.store.parts, &s.owner, storage.Counters, kvlog.OpenCounters, nil)
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
	if !c.active.Load() {
		return nil, ErrRemoved
	}
	if shard >= c.opts.Shards {
		return nil, &ShardError{Cache: c.name, Shard: shard, Shards: c.opts.Shards}
	}
	return &c.shards[shard], nil
}

// values finds a shard's values.
func (c *Cache) values(shard uint32) (*logShard, *keyed.Open[*kvlog.Map], error) {
	sh, err := c.logShard(shard)
	if err != nil {
		return nil, nil, err
	}
	open, err := sh.values.Use()
	return sh, open, err
}

// logError says [ErrRemoved] for what a removed cache's log or index says.
func (c *Cache) logError(err error) error {
	if errors.Is(err, shardlog.ErrClosed) || errors.Is(err, kvlog.ErrClosed) {
		return ErrRemoved
	}
	return err
}

// Durable says that the cache is kept on the log.
func (c *Cache) Durable() bool { return c.shards != nil }

// Ready waits until a shard can be used: a log is opened in the background. In
// memory it always is. Errors: [*ShardError], [*UnavailableError] with what is
// wrong on disk, [ErrRemoved], or the cause of ctx.
func (c *Cache) Ready(ctx context.Context, shard uint32) error {
	if !c.Durable() {
		return nil
	}
	sh, err := c.logShard(shard)
	if err != nil {
		return err
	}
	return sh.values.Ready(ctx)
}

// getLog is Get on the log.
func (c *Cache) getLog(shard uint32, key []byte) (Item, bool, error) {
	_, open, err := c.values(shard)
	if err != nil {
		return Item{}, false, err
	}
	item, found, err := open.Index.Get(key)
	switch {
	case err != nil:
		return Item{}, false, c.logError(err)
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

// endLog closes the logs. The watches end with cause, after what they have
// queued.
func (c *Cache) endLog(cause error) {
	for i := range c.shards {
		sh := &c.shards[i]
		sh.values.End()
		sh.counters.End()
		c.store.sweep.remove(sh)
	}
	for i := range c.shards {
		sh := &c.shards[i]
		// Nobody is left to tell: what was not committed was not answered, and
		// the next opening repairs.
		_ = sh.values.Close()
		_ = sh.counters.Close()
		sh.hub.finish(cause)
	}
	c.store.forget(c)
	close(c.closed)
}
