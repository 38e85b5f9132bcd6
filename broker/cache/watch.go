package cache

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/felixlog/felix/storage/kvlog"
)

// A Watch is one reader of the changes of a shard's keys. It has up to three
// parts, one after the other: the current values if they were asked for, the
// changes in the log up to where the queue begins, and the queue.
//
// The queue is bounded in changes and bytes. While the reader is not through
// with what comes before it, a full queue is emptied and its changes are read
// from the log in their turn; later it ends the watch ([*LaggedError]).
//
// One goroutine consumes: Next and Poll are not for concurrent use. Everything
// else is.
type Watch struct {
	shard    *logShard
	match    string // the key or prefix
	byPrefix bool
	slot     int // index in the hub's list, -1 outside; the hub's lock guards it

	capacity   int
	maxBytes   int64
	resume     uint64
	resnapshot bool
	retained   int
	wake       chan struct{}

	// values are the current values still to come, and next is the change to
	// read from the log after them. All that matches below seen was delivered.
	values     *kvlog.Snapshot
	next, seen uint64
	held       atomic.Int64 // keys of values counted against the store's bound

	mu sync.Mutex
	// joined: all below live was delivered, the queue is what comes next.
	joined bool
	live   uint64 // what is queued begins here
	// spilled: the queue was full before the reader had joined.
	spilled bool
	queue   []Change
	taken   []Change // what the consumer took last, reused by the next take
	bytes   int64
	end     error // no change is accepted any more
	// finished: the cache ended it, and nothing that it matched was lost; left:
	// it was still reading history.
	finished, left bool
}

// Watch watches one shard of a cache on the log: what o asks for, then every
// later change of the matching keys, once and in order (wire 11). Close it.
// It waits, as long as ctx lasts, for a shard that is being opened. Errors:
// [*NeedsLogError], [*InvalidWatchError], [*CursorError], [*WatchBusyError],
// [*ShardError], [*UnavailableError], [*placed.NotServedError], [ErrRemoved],
// the cause of ctx, and those of reading the log.
func (c *Cache) Watch(ctx context.Context, o WatchOptions) (*Watch, error) {
	if !c.Durable() {
		return nil, &NeedsLogError{Cache: c.name, What: "watch"}
	}
	switch {
	case o.Key != nil && o.Prefix != nil:
		return nil, &InvalidWatchError{Problem: "key and prefix exclude each other"}
	case o.HasFrom && o.Retained:
		return nil, &InvalidWatchError{Problem: "an offset to resume from and retained values exclude each other"}
	}
	if err := c.Ready(ctx, o.Shard); err != nil {
		return nil, err
	}
	sh, open, err := c.values(o.Shard)
	if err != nil {
		return nil, err
	}
	cfg := &c.store.cfg
	w := &Watch{
		shard:    sh,
		match:    string(o.Key),
		byPrefix: o.Key == nil,
		slot:     -1,
		capacity: o.Capacity,
		maxBytes: cfg.WatchQueueBytes,
		wake:     make(chan struct{}, 1),
	}
	if w.byPrefix {
		w.match = string(o.Prefix)
	}
	if w.capacity <= 0 || w.capacity > cfg.WatchQueue {
		w.capacity = cfg.WatchQueue
	}
	// First it hears of everything, then it looks at the log: what is
	// committed before the look is read, what comes after it is heard of.
	if err := sh.hub.join(w); err != nil {
		return nil, err
	}
	if err := w.begin(ctx, open.Index, o); err != nil {
		sh.hub.leave(w)
		return nil, sh.outcome(err)
	}
	return w, nil
}

// begin decides where the watch starts.
func (w *Watch) begin(ctx context.Context, m *kvlog.Map, o WatchOptions) error {
	tail := m.Tail()
	w.next = tail
	if o.HasFrom {
		if o.From > tail {
			return &CursorError{Requested: o.From, Tail: tail}
		}
		w.next, w.seen = o.From, o.From
		w.resnapshot = o.From < m.Base()
	}
	if o.Retained || w.resnapshot {
		if err := w.takeValues(ctx, m); err != nil {
			return err
		}
		// The values hold what was committed up to here.
		tail = max(tail, w.next)
	}
	w.resume = tail
	w.anchor(tail)
	return nil
}

// anchor makes the queue begin at tail: what it holds below is read from the
// log.
func (w *Watch) anchor(tail uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live = tail
	w.joined = w.values == nil && w.next == tail && !w.spilled
	w.queue = slices.DeleteFunc(w.queue, func(c Change) bool {
		below := c.Offset < tail
		if below {
			w.bytes -= c.size()
		}
		return below
	})
}

// ResumeOffset is the tail when the watch began: changes from there on are
// live, what comes before them is history or current values.
func (w *Watch) ResumeOffset() uint64 { return w.resume }

// Resnapshot says that compaction had reclaimed the changes asked for and the
// current values come in their place.
func (w *Watch) Resnapshot() bool { return w.resnapshot }

// RetainedCount is the number of current values that come first, those of a
// resnapshot included.
func (w *Watch) RetainedCount() int { return w.retained }

// Wake receives after a change was queued or the watch ended, if Poll had
// found nothing before. It is for waiting on several things at once.
func (w *Watch) Wake() <-chan struct{} { return w.wake }

// push queues a change. A watch that does not want any more says false. The
// hub's lock is held, so pushes come one at a time and in order.
func (w *Watch) push(c *Change) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.end != nil:
		return false
	case c.Offset < w.live, w.spilled:
		return true
	}
	size := c.size()
	if full := len(w.queue) >= w.capacity || w.bytes+size > w.maxBytes && len(w.queue) > 0; full {
		if w.joined {
			w.end = &LaggedError{ResumeFrom: c.Offset}
			w.signal()
			return false
		}
		clear(w.queue)
		w.queue, w.bytes, w.spilled = w.queue[:0], 0, true
		return true
	}
	w.queue = append(w.queue, *c)
	w.bytes += size
	w.signal()
	return true
}

// Next waits until there are changes and returns some, in order. The slice is
// valid until the next call of Next or Poll; the changes in it stay.
//
// When nothing is left it returns why: [*LaggedError] after the queue was full
// and what it held was delivered, [ErrWatchClosed] after Close, [ErrRemoved]
// after the cache's removal, the cause of ctx, or what is wrong with the log.
func (w *Watch) Next(ctx context.Context) ([]Change, error) {
	for {
		changes, err := w.Poll()
		if len(changes) > 0 || err != nil {
			return changes, err
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// Poll is Next without waiting for what has not happened yet: no changes and
// no error means that the watch is up to date. It reads from disk while there
// is history.
func (w *Watch) Poll() ([]Change, error) {
	for {
		switch changes, joined, err := w.take(); {
		case err != nil:
			return nil, err
		case joined:
			return changes, nil
		}
		changes, err := w.history()
		if err != nil {
			w.leave(err)
			return nil, err
		}
		if len(changes) > 0 {
			return changes, nil
		}
	}
}

// take is what is queued, once the reader has joined.
func (w *Watch) take() (changes []Change, joined bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.joined {
		// History outlives the end of the cache no more than of the watch.
		return nil, false, w.end
	}
	if len(w.queue) == 0 {
		return nil, true, w.end
	}
	clear(w.taken)
	w.taken, w.queue, w.bytes = w.queue, w.taken[:0], 0
	if w.end == nil {
		select {
		case <-w.wake: // it told of what is taken now
		default:
		}
	}
	return w.taken, true, nil
}

// Close ends the watch. Closing again does nothing.
func (w *Watch) Close() { w.leave(ErrWatchClosed) }

// leave ends the watch with err and lets go of what is queued.
func (w *Watch) leave(err error) {
	w.shard.hub.leave(w)
	w.shard.cache.store.releaseKeys(w)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left = w.left || !w.joined && err != ErrWatchClosed
	w.end, w.joined, w.queue, w.bytes = err, true, nil, 0
	w.signal()
}

// finish refuses further changes; what is queued can still be read, then err.
func (w *Watch) finish(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.end == nil {
		w.end, w.finished = err, true
		w.signal()
	}
}

// signal wakes the consumer unless a wake is pending.
func (w *Watch) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// size is what a change is charged in a queue, in bytes.
func (c *Change) size() int64 { return int64(len(c.Key) + len(c.Value)) }

// changeOf shares the memory of c.
func changeOf(c kvlog.Change) Change {
	change := Change{Key: c.Key, Offset: c.Offset}
	switch c.Op {
	case kvlog.Deleted:
		change.Op = Deleted
	case kvlog.Expired:
		change.Op = Expired
	default:
		change.ExpiresAtMillis = c.ExpiresAtMillis
		if change.Value = c.Value; change.Value == nil {
			change.Value = []byte{}
		}
	}
	return change
}
