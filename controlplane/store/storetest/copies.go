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

func newCopies() *copies { return &copies{streams: streamReplica(), namespaces: namespaceReplica()} }

// A follower is a replica of any kind.
type follower interface {
	snapshot(ctx context.Context, s store.Store) error
	follow(ctx context.Context, s store.Store) (int, error)
	// agrees reads on to the end, and compares.
	agrees(ctx context.Context, s store.Store) error
}

// A replica is a copy of the records of one kind, kept by the rules for
// consumers of control plane 5.2 and 5.3, and by stricter ones: a change has to
// fit what is there.
type replica[K comparable, V any, C model.Sequenced] struct {
	take  func(store.Store, context.Context) (model.Snapshot[V], error)
	read  func(store.Store, context.Context, uint64) (model.Page[C], error)
	key   func(V) K
	parts func(C) (model.Op, K, *V)
	check func(c C, old V) error // of a kind; may be nil

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
	ends := false
	switch op {
	case model.Created, model.Assigned:
		if there {
			return fmt.Errorf("%s of %v, which is there", op, k)
		}
	case model.Registered: // for the first time or again
	case model.Updated, model.Deleted, model.Unassigned, model.Deregistered:
		if !there {
			return fmt.Errorf("%s of %v, which is not there", op, k)
		}
		ends = op != model.Updated
	default:
		return fmt.Errorf("%q of %v", op, k)
	}
	if (v == nil) != ends {
		return fmt.Errorf("%s of %v with record %s", op, k, asJSON(v))
	}
	if r.check != nil {
		if err := r.check(c, old); err != nil {
			return err
		}
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

func (r *replica[K, V, C]) agrees(ctx context.Context, s store.Store) error {
	final, err := r.take(s, ctx)
	for err == nil && r.next < final.NextSeq {
		_, err = r.follow(ctx, s)
	}
	if err != nil {
		return err
	}
	return r.differs(final)
}
