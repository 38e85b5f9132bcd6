package cache

import (
	"context"
	"errors"

	"github.com/felixlog/felix/storage/kvlog"
	"github.com/felixlog/felix/storage/shardlog"
)

// historyBytes is how much a watch reads from the log, or of current values,
// in one step.
const historyBytes = 256 << 10

// snapshotsAtOnce bounds the walks over an index for current values that run
// at the same time.
const snapshotsAtOnce = 4

// takeValues makes the current values what comes first.
func (w *Watch) takeValues(ctx context.Context, m *kvlog.Map) error {
	take := m.RangeKey
	if w.byPrefix {
		take = m.Range
	}
	store := w.shard.cache.store
	select {
	case store.snapshots <- struct{}{}:
		defer func() { <-store.snapshots }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	values, err := take([]byte(w.match))
	if err != nil {
		return err
	}
	if err := store.holdKeys(w, int64(values.Len())); err != nil {
		return err
	}
	w.values, w.next, w.retained = values, values.At, values.Len()
	return nil
}

// history is a step of what comes before the queue. No changes and no error
// means another step.
func (w *Watch) history() ([]Change, error) {
	_, open, err := w.shard.cache.values(w.shard.index)
	if err != nil {
		return nil, w.lost(err)
	}
	w.taken = w.taken[:0]
	if w.values != nil {
		return w.taken, w.readValues()
	}
	w.mu.Lock()
	live := w.live
	if w.next >= live {
		// The queue is next, unless it could not hold what came: then it
		// begins anew, and what is committed by now is read.
		w.joined = !w.spilled
		again := w.spilled
		w.spilled = false
		w.mu.Unlock()
		if again {
			w.anchor(open.Index.Tail())
		}
		return nil, nil
	}
	w.mu.Unlock()
	return w.taken, w.readLog(open.Index, live)
}

// readValues takes a step of the current values.
func (w *Watch) readValues() error {
	values, err := w.values.Next(historyBytes)
	if err != nil {
		return w.lost(err)
	}
	if len(values) == 0 {
		w.values, w.seen = nil, w.next
		w.shard.cache.store.releaseKeys(w)
		return nil
	}
	for _, c := range values {
		change := changeOf(c)
		// A value counts where it was put, not where compaction copied it to:
		// whoever resumes behind it then misses none that was put after it.
		change.Offset = c.Version
		w.taken = append(w.taken, change)
	}
	w.seen = w.taken[len(w.taken)-1].Offset + 1
	return nil
}

// readLog takes a step of the changes below live.
func (w *Watch) readLog(m *kvlog.Map, live uint64) error {
	page, err := m.Changes(w.next, historyBytes)
	if err != nil {
		return w.lost(err)
	}
	defer page.Release()
	for _, c := range page.Changes {
		if c.Offset >= live {
			break
		}
		if c.Offset >= w.next && matches(c.Key, w.match, w.byPrefix) {
			change := changeOf(c)
			w.taken = append(w.taken, change.clone())
		}
	}
	w.next = min(page.Next, live)
	w.seen = w.next
	return nil
}

// lost is what a reader is told whose history was reclaimed while it read, or
// cannot be read.
func (w *Watch) lost(err error) error {
	var trimmed *shardlog.TrimmedError
	if errors.As(err, &trimmed) {
		return &LaggedError{ResumeFrom: w.seen}
	}
	return w.shard.outcome(err)
}

// holdKeys counts the keys whose values are still to be read for w. One watch
// may hold as many as there are if it is the only one.
func (s *Store) holdKeys(w *Watch, n int64) error {
	if held := s.heldKeys.Add(n); held > s.cfg.WatchKeys && held != n {
		s.heldKeys.Add(-n)
		return &WatchBusyError{Keys: n, Held: held - n, Limit: s.cfg.WatchKeys}
	}
	w.held.Store(n)
	return nil
}

func (s *Store) releaseKeys(w *Watch) { s.heldKeys.Add(-w.held.Swap(0)) }
