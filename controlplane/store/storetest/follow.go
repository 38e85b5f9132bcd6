package storetest

import (
	"context"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// A feed is one of the six, for tests that hold of all of them.
type feed struct {
	name string
	// head reads it from a snapshot.
	head func(ctx context.Context, s store.Store) (uint64, error)
	// read reads a page and what it means.
	read func(ctx context.Context, s store.Store, since uint64) (page, error)
	// change makes one change: the i-th of a test.
	change func(f *fixture, i int) error
}

// A page is what the tests see of one.
type page struct {
	seqs    []uint64
	head    uint64
	verdict model.Verdict
	next    uint64
	more    bool
}

func asPage[C model.Sequenced](p model.Page[C], since uint64) page {
	v := page{head: p.NextSeq}
	for _, c := range p.Items {
		v.seqs = append(v.seqs, c.Sequence())
	}
	v.verdict, v.next, v.more = model.Judge(p, since)
	return v
}

func newFeed[V any, C model.Sequenced](
	name string,
	snapshot func(store.Store, context.Context) (model.Snapshot[V], error),
	changes func(store.Store, context.Context, uint64) (model.Page[C], error),
	change func(f *fixture, i int) error,
) feed {
	return feed{
		name: name, change: change,
		head: func(ctx context.Context, s store.Store) (uint64, error) {
			snap, err := snapshot(s, ctx)
			return snap.NextSeq, err
		},
		read: func(ctx context.Context, s store.Store, since uint64) (page, error) {
			p, err := changes(s, ctx, since)
			return asPage(p, since), err
		},
	}
}

// changesSince reads the feed to its end.
func changesSince[C model.Sequenced](f *fixture, changes func(context.Context, uint64) (model.Page[C], error), since uint64) []C {
	f.Helper()
	var list []C
	for {
		p := want(changes(f.ctx, since))(f)
		v, next, more := model.Judge(p, since)
		switch v {
		case model.Nothing:
			return list
		case model.Resnapshot:
			f.Fatalf("the changes since %d are gone: page %s", since, asJSON(p))
		}
		list = append(list, p.Items...)
		if since = next; !more {
			return list
		}
	}
}
