package planner

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// keptFor is how long what was read is followed by its feed before it is read
// anew, whatever the feed says.
const keptFor = 5 * time.Minute

// kept is what a planner has read of what is large, so that a pass reads what
// changed and no more.
type kept struct {
	streams     followed[model.StreamKey, model.Stream, model.StreamChange]
	caches      followed[model.CacheKey, model.Cache, model.CacheChange]
	assignments followed[model.ShardKey, model.Assignment, model.AssignmentChange]
	readAt      time.Time // when all was last read anew
}

func newKept(s store.Store) *kept {
	return &kept{
		streams: followed[model.StreamKey, model.Stream, model.StreamChange]{
			snapshot: s.StreamsSnapshot, changes: s.StreamChanges,
			key: model.Stream.Key, compare: model.StreamKey.Compare,
			change: func(c model.StreamChange) (model.StreamKey, *model.Stream) { return c.Key, c.Stream },
		},
		caches: followed[model.CacheKey, model.Cache, model.CacheChange]{
			snapshot: s.CachesSnapshot, changes: s.CacheChanges,
			key: model.Cache.Key, compare: model.CacheKey.Compare,
			change: func(c model.CacheChange) (model.CacheKey, *model.Cache) { return c.Key, c.Cache },
		},
		assignments: followed[model.ShardKey, model.Assignment, model.AssignmentChange]{
			snapshot: s.AssignmentsSnapshot, changes: s.AssignmentChanges,
			key:     func(a model.Assignment) model.ShardKey { return a.ShardKey },
			compare: model.ShardKey.Compare,
			change:  func(c model.AssignmentChange) (model.ShardKey, *model.Assignment) { return c.Key, c.Assignment },
		},
	}
}

// upTo has all read anew that was kept for too long, or that is in doubt: what
// was decided did not fit what the store holds.
func (k *kept) upTo(now time.Time, doubted bool) {
	if age := now.Sub(k.readAt); !doubted && age >= 0 && age < keptFor {
		return
	}
	k.streams.known, k.caches.known, k.assignments.known = false, false, false
	k.readAt = now
}

// followed is all records of one kind, in the order of their keys. A slice that
// was given out is never written to again.
type followed[K comparable, T any, C model.Sequenced] struct {
	snapshot func(context.Context) (model.Snapshot[T], error)
	changes  func(context.Context, uint64) (model.Page[C], error)
	key      func(T) K
	compare  func(a, b K) int
	change   func(C) (K, *T) // nil for a deletion

	known bool
	items []T
	since uint64 // the first change that is not in items
}

// read gives all records as they are now.
func (f *followed[K, T, C]) read(ctx context.Context) ([]T, error) {
	for f.known {
		page, err := f.changes(ctx, f.since)
		if err != nil {
			return nil, fmt.Errorf("what changed: %w", err)
		}
		verdict, next, more := model.Judge(page, f.since)
		switch verdict {
		case model.Nothing:
			return f.items, nil
		case model.Resnapshot:
			f.known = false
			continue
		}
		f.items, f.since = f.merged(page.Items), next
		if !more {
			return f.items, nil
		}
	}
	s, err := f.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	if byKey := func(a, b T) int { return f.compare(f.key(a), f.key(b)) }; !slices.IsSortedFunc(s.Items, byKey) {
		slices.SortFunc(s.Items, byKey)
	}
	f.known, f.items, f.since = true, s.Items, s.NextSeq
	return f.items, nil
}

// merged is the records with changes.
func (f *followed[K, T, C]) merged(changes []C) []T {
	last := make(map[K]*T, len(changes))
	for _, c := range changes {
		if c.Sequence() >= f.since {
			k, rec := f.change(c)
			last[k] = rec
		}
	}
	keys := make([]K, 0, len(last))
	for k := range last {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, f.compare)
	items, rest := make([]T, 0, len(f.items)+len(keys)), f.items
	for _, k := range keys {
		at, found := slices.BinarySearchFunc(rest, k, func(t T, k K) int { return f.compare(f.key(t), k) })
		items = append(items, rest[:at]...)
		if rest = rest[at:]; found {
			rest = rest[1:]
		}
		if rec := last[k]; rec != nil {
			items = append(items, *rec)
		}
	}
	return append(items, rest...)
}
