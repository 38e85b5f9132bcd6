package cache

import (
	"github.com/felixlog/felix/broker/placed"
)

// A part is one shard of a cache as it is served now: on the log, in memory, or
// not at all.
type part struct {
	log   *logShard
	scope uint64 // of its entries in memory
	// refused is the answer where it is not served; leaving is then closed when
	// the one served before has let go of its logs, nil where none was.
	refused *placed.NotServedError
	leaving <-chan struct{}
}

// part finds a shard that is served.
func (c *Cache) part(shard uint32) (*part, error) {
	if err := c.ended(); err != nil {
		return nil, err
	}
	if shard >= c.opts.Shards {
		return nil, &ShardError{Cache: c.name, Shard: shard, Shards: c.opts.Shards}
	}
	p := c.parts[shard].Load()
	if p.refused != nil {
		return nil, p.refused
	}
	return p, nil
}

// scope is what tells the entries of a shard in memory from all others. A shard
// that is served once more has another one, and begins empty.
func (c *Cache) scope(shard uint32) (uint64, error) {
	if c.parts == nil {
		return c.id, c.ended()
	}
	p, err := c.part(shard)
	if err != nil {
		return 0, err
	}
	return p.scope, nil
}

// Sharded says that a key has to be asked of its own shard. Otherwise all shards
// are one, and any will do.
func (c *Cache) Sharded() bool { return c.parts != nil }

// served lists the parts that are; placing is held.
func (c *Cache) served() []*part {
	var served []*part
	for i := range c.parts {
		if p := c.parts[i].Load(); p.refused == nil {
			served = append(served, p)
		}
	}
	return served
}

// removeScope lets go of all entries in memory of one scope.
func (s *Store) removeScope(scope uint64) {
	for i := range s.shards {
		s.shards[i].removeScope(s, scope)
	}
}
