package storetest

import (
	"context"
	"errors"
	"fmt"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// copies are what a reader of feeds keeps.
type copies struct {
	streams    *replica[model.StreamKey, model.Stream, model.StreamChange]
	namespaces *replica[model.NamespaceKey, model.Namespace, model.NamespaceChange]
}

func newCopies() *copies {
	return &copies{
		streams: &replica[model.StreamKey, model.Stream, model.StreamChange]{
			take: store.Store.StreamsSnapshot, read: store.Store.StreamChanges, key: model.Stream.Key,
			parts: func(c model.StreamChange) (model.Op, model.StreamKey, *model.Stream) { return c.Op, c.Key, c.Stream },
			check: func(c model.StreamChange, old model.Stream) error {
				if c.Op == model.Deleted && (c.Tombstone == nil || c.Tombstone.UID != old.UID) {
					return fmt.Errorf("tombstone %s of stream %s", asJSON(c.Tombstone), asJSON(old))
				}
				return nil
			},
		},
		namespaces: &replica[model.NamespaceKey, model.Namespace, model.NamespaceChange]{
			take: store.Store.NamespacesSnapshot, read: store.Store.NamespaceChanges, key: model.Namespace.Key,
			parts: func(c model.NamespaceChange) (model.Op, model.NamespaceKey, *model.Namespace) {
				return c.Op, c.Key, c.Namespace
			},
			check: func(model.NamespaceChange, model.Namespace) error { return nil },
		},
	}
}

// A replica is a copy of the records of one kind, kept by the rules for
// consumers of control plane 5.2 and 5.3, and by stricter ones: a change has to
// fit what is there.
type replica[K comparable, V any, C model.Sequenced] struct {
	take  func(store.Store, context.Context) (model.Snapshot[V], error)
	read  func(store.Store, context.Context, uint64) (model.Page[C], error)
	key   func(V) K
	parts func(C) (model.Op, K, *V)
	check func(c C, old V) error

	records map[K]V
	next    uint64
}

// errResnapshot says that changes are missing.
var errResnapshot = errors.New("the changes are gone")

func (r *replica[K, V, C]) fill(s model.Snapshot[V]) {
	r.records, r.next = make(map[K]V, len(s.Items)), s.NextSeq
	for _, v := range s.Items {
		r.records[r.key(v)] = v
	}
}

func (r *replica[K, V, C]) snapshot(ctx context.Context, s store.Store) error {
	snap, err := r.take(s, ctx)
	if err == nil {
		r.fill(snap)
	}
	return err
}

// follow applies one page, and says how many changes it had.
func (r *replica[K, V, C]) follow(ctx context.Context, s store.Store) (int, error) {
	p, err := r.read(s, ctx, r.next)
	if err != nil {
		return 0, err
	}
	switch v, _, _ := model.Judge(p, r.next); v {
	case model.Nothing:
		return 0, nil
	case model.Resnapshot:
		return 0, errResnapshot
	}
	for _, c := range p.Items {
		if c.Sequence() != r.next {
			return 0, fmt.Errorf("sequence %d where %d belongs", c.Sequence(), r.next)
		}
		if err := r.apply(c); err != nil {
			return 0, fmt.Errorf("sequence %d: %w", r.next, err)
		}
		r.next++
	}
	return len(p.Items), nil
}

func (r *replica[K, V, C]) apply(c C) error {
	op, k, v := r.parts(c)
	old, there := r.records[k]
	if there == (op == model.Created) {
		return fmt.Errorf("%s of %v, there before: %t", op, k, there)
	}
	if (v == nil) != (op == model.Deleted) {
		return fmt.Errorf("%s of %v with record %s", op, k, asJSON(v))
	}
	if err := r.check(c, old); err != nil {
		return err
	}
	if v == nil {
		delete(r.records, k)
	} else {
		r.records[k] = *v
	}
	return nil
}

// differs says how the copy differs from a snapshot.
func (r *replica[K, V, C]) differs(s model.Snapshot[V]) error {
	if r.next != s.NextSeq || len(r.records) != len(s.Items) {
		return fmt.Errorf("copy at %d has %d records, the final one at %d has %d", r.next, len(r.records), s.NextSeq, len(s.Items))
	}
	for _, v := range s.Items {
		if got, want := asJSON(r.records[r.key(v)]), asJSON(v); got != want {
			return fmt.Errorf("copy has %s, the final snapshot %s", got, want)
		}
	}
	return nil
}
