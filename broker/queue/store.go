package queue

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/felixlog/felix/broker/keyed"
	"github.com/felixlog/felix/broker/steady"
	"github.com/felixlog/felix/broker/stream"
)

// A Source is the shard of a stream whose records groups hand out;
// *stream.Shard is one.
type Source interface {
	ID() uint64
	Name() stream.Name
	Index() uint32
	// UID is which creation of the stream it belongs to, "" where nobody knows.
	UID() string
	// Err is why the shard serves no longer; nil while it does.
	Err() error
	Durable() bool
	Ready(ctx context.Context) error
	Bounds() (oldest, tail uint64)
	Read(ctx context.Context, o stream.ReadOptions) (stream.Records, error)
	// OnAppend has f called after every batch that became readable.
	OnAppend(f func()) (stop func())
}

var _ Source = (*stream.Shard)(nil)

// A Ref names a group on one shard.
type Ref struct {
	Shard Source
	Group string
}

// A Store is the groups of a broker. It is safe for concurrent use.
type Store struct {
	cfg   Config
	clock *steady.Clock
	parts *keyed.Shared
	evict evictor
	count counters
	// groups in memory.
	groups atomic.Int64

	mu     sync.RWMutex
	closed bool
	shards map[uint64]*shard // by Source.ID, those that serve
	// newest of each name, until it has let go of its logs.
	newest map[shardName]*shard
}

type shardName struct {
	stream stream.Name
	index  uint32
}

// NewStore returns a store that opens nothing yet. Close it.
func NewStore(cfg Config, clock Clock) *Store {
	s := &Store{cfg: cfg.withDefaults(), clock: steady.New(clock)}
	s.parts = keyed.NewShared(s.cfg.Storage, s.clock, s.cfg.CompactionRate)
	s.shards = make(map[uint64]*shard)
	s.newest = make(map[shardName]*shard)
	s.evict.store = s
	return s
}

// Enabled says that there is storage, and so groups.
func (s *Store) Enabled() bool { return s.cfg.Storage != nil }

// now is the time of the claims, in nanoseconds.
func (s *Store) now() int64 { return s.clock.Now().UnixNano() }

// Ready waits until a group can be used: the shard's log, those of its groups,
// and the group's claims. A group that is ready costs no allocation, and ctx is
// not looked at. Errors: [*UnavailableError], [*RecordError] within it,
// [*GroupLimitError], [*NameError], those of [stream.Shard.Ready], why the
// shard serves no longer, or the cause of ctx.
func (s *Store) Ready(ctx context.Context, r Ref) error {
	g, err := s.acquire(ctx, r)
	if err != nil {
		return err
	}
	g.release()
	return nil
}

// acquire waits until a group can be used; the caller releases it. Errors as
// [Store.Ready].
func (s *Store) acquire(ctx context.Context, r Ref) (*group, error) {
	for {
		if g := s.find(r); g != nil {
			return g, nil
		}
		sh, err := s.shardOf(r.Shard)
		if err != nil {
			return nil, err
		}
		if err := sh.ready(ctx); err != nil {
			return nil, err
		}
		g, err := sh.open(r.Group)
		if err != nil {
			return nil, err
		}
		select {
		case <-g.built:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if g.failed != nil {
			return nil, g.failed
		}
	}
}

// use is the group for a request that does not wait. One that is not ready is
// refused; [Store.Ready] makes it so.
func (s *Store) use(r Ref) (*group, error) {
	if g := s.find(r); g != nil {
		return g, nil
	}
	sh, err := s.shardOf(r.Shard)
	if err != nil {
		return nil, err
	}
	return nil, sh.unavailable(Opening, nil)
}

// find is a group that is ready, held for the caller.
func (s *Store) find(r Ref) *group {
	s.mu.RLock()
	sh := s.shards[r.Shard.ID()]
	s.mu.RUnlock()
	if sh == nil {
		return nil
	}
	return sh.find(r.Group)
}

// shardOf is the shard of a source that serves.
func (s *Store) shardOf(src Source) (*shard, error) {
	s.mu.RLock()
	sh := s.shards[src.ID()]
	s.mu.RUnlock()
	if sh != nil {
		return sh, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if sh := s.shards[src.ID()]; sh != nil {
		return sh, nil
	}
	// A source that ends does so before End is called, which finds the shard
	// if this did not find the end.
	if err := src.Err(); err != nil {
		return nil, err
	}
	if !src.Durable() {
		name := src.Name()
		return nil, &stream.NeedsLogError{Stream: name.String(), Request: "a consumer group"}
	}
	name := shardName{src.Name(), src.Index()}
	sh = newShard(s, src, s.newest[name])
	s.shards[src.ID()], s.newest[name] = sh, sh
	return sh, nil
}

// End closes the groups of a source that serves no longer: its Err says so.
// Polls that wait end with cause. What was not written is answered with it. Its
// logs are closed when End returns, whoever else ends it.
func (s *Store) End(src Source, cause error) {
	s.mu.Lock()
	sh := s.shards[src.ID()]
	delete(s.shards, src.ID())
	if newest := s.newest[shardName{src.Name(), src.Index()}]; sh == nil && newest != nil && newest.src.ID() == src.ID() {
		sh = newest // being ended
	}
	s.mu.Unlock()
	if sh != nil {
		sh.end(cause)
		s.forget(sh)
	}
}

// forget lets go of a shard that has ended.
func (s *Store) forget(sh *shard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := shardName{sh.src.Name(), sh.src.Index()}
	if s.newest[name] == sh {
		delete(s.newest, name)
	}
}

// Close ends all groups with [ErrClosed]. The storage is closed after it.
func (s *Store) Close() {
	s.mu.Lock()
	s.closed = true
	shards := s.shards
	s.shards = make(map[uint64]*shard)
	s.mu.Unlock()
	s.evict.close()
	for _, sh := range shards {
		sh.end(ErrClosed)
		s.forget(sh)
	}
}
