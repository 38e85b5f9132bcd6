package storetest

import (
	"context"
	"time"

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
	// replicate makes a copy to follow it with.
	replicate func() follower
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

func newFeed[K comparable, V any, C model.Sequenced](
	name string, replicate func() *replica[K, V, C], change func(f *fixture, i int) error,
) feed {
	r := replicate()
	return feed{
		name: name, change: change,
		replicate: func() follower { return replicate() },
		head: func(ctx context.Context, s store.Store) (uint64, error) {
			snap, err := r.take(s, ctx)
			return snap.NextSeq, err
		},
		read: func(ctx context.Context, s store.Store, since uint64) (page, error) {
			p, err := r.read(s, ctx, since)
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

// followFromSnapshots takes snapshots and reads on from them until all is
// written.
func followFromSnapshots(ctx context.Context, s store.Store, c follower, written <-chan struct{}) error {
	for {
		if err := c.snapshot(ctx, s); err != nil {
			return err
		}
		for range 3 {
			if _, err := c.follow(ctx, s); err != nil {
				return err
			}
		}
		select {
		case <-written:
			return c.agrees(ctx, s)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}
