package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/felixlog/felix/wire"
)

// A ChangeKind is what a [Change] is.
type ChangeKind uint8

const (
	// Put: the key has a new value. With [Retained] also: it has this one.
	Put ChangeKind = 1
	// Deleted: the key was removed.
	Deleted ChangeKind = 2
	// Expired: the key's time to live is over. Brokers that cannot tell say
	// Deleted.
	Expired ChangeKind = 3
	// Reset: changes of this shard were missed and are no longer held.
	// Whatever was known of its keys is void; their current values follow as
	// Put, and what does not follow is gone.
	Reset ChangeKind = 4
	// Synced: the values that [Retained] asked for are all delivered, of
	// every shard. It comes once.
	Synced ChangeKind = 5
)

// String is the kind in one word.
func (k ChangeKind) String() string {
	switch k {
	case Put:
		return "put"
	case Deleted:
		return "deleted"
	case Expired:
		return "expired"
	case Reset:
		return "reset"
	case Synced:
		return "synced"
	default:
		return fmt.Sprintf("ChangeKind(%d)", uint8(k))
	}
}

// A Change is what happened to one key of a cache, or a mark in the run of
// changes: see its Kind.
type Change struct {
	Kind ChangeKind
	// Key is the key, empty for Reset and Synced.
	Key string
	// Value is the new value of a Put. It is the receiver's to keep.
	Value []byte
	// Offset is the change's place in its shard, and the version of a Put.
	// Offsets grow, with gaps that mean nothing.
	Offset uint64
	// Shard is the shard of the key.
	Shard uint32
	// ExpiresAt is when a Put expires; zero for never.
	ExpiresAt time.Time
	// Retained says that the value was there before: it is part of the state
	// that [Retained] asked for, or of that behind a Reset's loss.
	Retained bool
}

// A Watch delivers the changes of one key of a cache, of those with a
// prefix, or of all, in the order of each shard. One goroutine reads it;
// Close, Stats and Positions may be called from others.
//
// A lost connection, a moved shard, an expired token (with
// [WithTokenProvider]), or a broker that gave up on a slow reader is resumed
// behind the last change without a sign but in [Watch.Stats]. Where the
// broker no longer holds what was missed, [Reset] says so. What cannot be
// resumed ends the watch with a [*SubscriptionLostError].
type Watch struct {
	readers []*watchReader
	ctx     context.Context // ends with Close, or with the client
	cancel  context.CancelFunc
	arrived chan watched
	stats   watchCounters

	// Of the reading goroutine.
	unsynced int // shards whose retained values are not all delivered
	synced   bool
	ended    error

	mu        sync.Mutex
	positions map[uint32]uint64
}

// watched is one change on its way from a shard's reader, or how it ended.
type watched struct {
	change Change
	shard  uint32
	next   uint64 // where the shard goes on behind it, but for a Reset
	last   bool   // the shard's retained values end here, with or without a change
	err    error
}

// watchAhead is how many changes a watch reads ahead of its reader.
const watchAhead = 64

func needWatch() need { return need{wire.FeatureCacheWatch, "CACHE_WATCH"} }

// Watch watches the keys of a cache. It returns once the broker has
// confirmed it for every shard: changes made afterwards are delivered.
// Brokers serve it for caches that are kept on a log ([ErrUnsupported]).
func (k *Cache) Watch(ctx context.Context, opts ...WatchOption) (*Watch, error) {
	if k.err != nil {
		return nil, k.err
	}
	var o watchOptions
	for _, opt := range opts {
		o = opt.applyWatch(o)
	}
	switch {
	case o.byKey && wire.ValidateKey([]byte(o.key)) != nil:
		return nil, nameError("cache key", o.key, wire.ValidateKey([]byte(o.key)))
	case o.retained && (o.from != nil || o.offsetSet):
		return nil, errors.New("watch: Retained begins with the state and WatchFrom with a change: choose one")
	case o.from != nil && o.offsetSet:
		return nil, errors.New("watch: WatchFrom and WatchResumeAt exclude each other")
	}
	shards, err := k.watchedShards(ctx, &o)
	if err != nil {
		return nil, err
	}
	w := &Watch{arrived: make(chan watched, watchAhead), positions: make(map[uint32]uint64)}
	for _, shard := range shards {
		w.readers = append(w.readers, newWatchReader(k, &o, shard, len(shards) > 1, &w.stats))
	}
	for _, r := range w.readers {
		if err := r.open(ctx); err != nil {
			w.Close()
			return nil, k.c.closedOr(err)
		}
	}
	if o.retained {
		w.unsynced = len(w.readers)
	}
	for _, r := range w.readers {
		w.positions[r.shard] = r.position()
	}
	w.ctx, w.cancel = context.WithCancel(k.c.ctx)
	for _, r := range w.readers {
		if !k.c.spawn(func() { r.run(w.ctx, w.arrived) }) {
			w.Close()
			return nil, ErrClosed
		}
	}
	return w, nil
}

// watchedShards lists the shards to watch.
func (k *Cache) watchedShards(ctx context.Context, o *watchOptions) ([]uint32, error) {
	n, err := k.c.CacheShards(ctx, k.name, InNamespace(k.namespace))
	if isUnsupported(err) {
		n, err = 1, nil // a broker that cannot be asked has unsharded caches
	}
	if err != nil {
		return nil, err
	}
	n = min(n, maxShards)
	for shard := range o.from {
		if shard >= n {
			return nil, &Error{
				Op: "cache watch", Code: CodeInvalidRequest, Retry: RetryNever,
				Message: fmt.Sprintf("a position is given for shard %d, the cache has %d", shard, n),
			}
		}
	}
	if o.byKey {
		shard := wire.ShardOf([]byte(o.key), true, n, wire.Modulo)
		if o.offsetSet {
			o.from = map[uint32]uint64{shard: o.offset}
		}
		return []uint32{shard}, nil
	}
	if o.offsetSet {
		if n > 1 {
			return nil, &Error{
				Op: "cache watch", Code: CodeInvalidRequest, Retry: RetryNever,
				Message: fmt.Sprintf("one offset is given for %d shards", n),
			}
		}
		o.from = map[uint32]uint64{0: o.offset}
	}
	shards := make([]uint32, 0, n)
	for shard := range n {
		shards = append(shards, shard)
	}
	return shards, nil
}

// Next waits for the next change. The end of ctx leaves the watch intact.
// [ErrEnded] says that the broker ended it, as it does when the cache is
// removed, [ErrClosed] that Close was called; every other error is final
// too. A watch of several shards ends when one of them is lost.
func (w *Watch) Next(ctx context.Context) (Change, error) {
	for {
		if w.unsynced == 0 && !w.synced {
			w.synced = true
			if w.readers[0].o.retained {
				return Change{Kind: Synced}, nil
			}
		}
		if w.ended != nil {
			return Change{}, w.ended
		}
		select {
		case item := <-w.arrived:
			if w.take(item) {
				return item.change, nil
			}
		case <-ctx.Done():
			return Change{}, ctx.Err()
		case <-w.ctx.Done():
			w.ended = ErrClosed
		}
	}
}

// take notes an item; deliver is false when it carries no change.
func (w *Watch) take(item watched) (deliver bool) {
	if item.err != nil {
		w.ended = item.err
		w.Close()
		return false
	}
	if item.last && w.unsynced > 0 {
		w.unsynced--
	}
	if item.change.Kind != Reset {
		w.mu.Lock()
		w.positions[item.shard] = item.next
		w.mu.Unlock()
	}
	if item.change.Kind == 0 {
		return false
	}
	w.stats.changes.Add(1)
	return true
}

// Changes ranges over the changes. The loop ends by itself when the broker
// ended the watch or Close was called; any other error is yielded with a
// zero Change, and is the last.
func (w *Watch) Changes(ctx context.Context) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for {
			change, err := w.Next(ctx)
			if err == ErrEnded || err == ErrClosed {
				return
			}
			if !yield(change, err) || err != nil {
				return
			}
		}
	}
}

// Positions gives, for each shard, the offset to go on at: what [WatchResumeAt]
// takes in another process or at another time. A change counts as delivered
// when Next has given it. While the current values of a shard are delivered
// its position is 0, which brings everything again.
func (w *Watch) Positions() map[uint32]uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.positions)
}

// Shards is the number of shards watched.
func (w *Watch) Shards() int { return len(w.readers) }

// Close ends the watch and unblocks its reader. It may be called more than
// once.
func (w *Watch) Close() error {
	if w.cancel != nil {
		w.cancel()
	}
	for _, r := range w.readers {
		r.close()
	}
	return nil
}

// WatchStats are counters since a watch began.
type WatchStats struct {
	Changes    uint64 // delivered, marks included
	Duplicates uint64 // changes delivered before, left out
	Reconnects uint64 // resumed after a lost connection or stream
	Moves      uint64 // told that the shard goes on at another broker, or at this one started again
	Lagged     uint64 // resumed after the broker gave up on a slow reader
	Reauths    uint64 // resumed after the token expired
	Resets     uint64 // missed changes that were no longer held
}

type watchCounters struct {
	changes, duplicates, reconnects, moves, lagged, reauths, resets atomic.Uint64
}

// Stats reads the counters.
func (w *Watch) Stats() WatchStats {
	c := &w.stats
	return WatchStats{
		Changes: c.changes.Load(), Duplicates: c.duplicates.Load(), Reconnects: c.reconnects.Load(),
		Moves: c.moves.Load(), Lagged: c.lagged.Load(), Reauths: c.reauths.Load(), Resets: c.resets.Load(),
	}
}
