package storetest

import (
	"fmt"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// feeds are the six. Changes of a test go by number, from 0 on, and need
// f.ground.
var feeds = []feed{
	newFeed("tenants", tenantReplica, func(f *fixture, i int) error {
		return f.CreateTenant(f.ctx, model.Tenant{TenantID: fmt.Sprintf("%s-t%d", f.prefix, i)})
	}),
	newFeed("namespaces", namespaceReplica, func(f *fixture, i int) error {
		return f.CreateNamespace(f.ctx, model.Namespace{TenantID: f.prefix + "-ground", Namespace: fmt.Sprintf("n%d", i)})
	}),
	newFeed("streams", streamReplica, func(f *fixture, i int) error {
		return f.CreateStream(f.ctx, newStream(f.groundKey(), fmt.Sprintf("s%d", i), 1))
	}),
	newFeed("caches", cacheReplica, func(f *fixture, i int) error {
		return f.CreateCache(f.ctx, newCache(f.groundKey(), fmt.Sprintf("c%d", i), 1))
	}),
	newFeed("nodes", nodeReplica, func(f *fixture, i int) error {
		_, err := f.PatchNode(f.ctx, f.prefix+"-ground", model.NodePatch{Region: ptr(fmt.Sprintf("region-%d", i))})
		return err
	}),
	newFeed("assignments", assignmentReplica, func(f *fixture, i int) error {
		// Others move the token, and the same shard is not written twice.
		a := assigning(streamShard(newStream(f.groundKey(), "ground", 0), uint32(i)), f.prefix+"-ground")
		for {
			token, err := f.PlacementToken(f.ctx)
			if err != nil {
				return err
			}
			r, err := f.PutAssignmentIf(f.ctx, a, nil, token)
			if err != nil || r.Outcome == store.Written {
				return err
			}
			if r.Outcome == store.Stale {
				return fmt.Errorf("shard %d is taken", i)
			}
		}
	}),
}

func (f *fixture) groundKey() model.NamespaceKey {
	return model.NamespaceKey{TenantID: f.prefix + "-ground", Namespace: "ground"}
}

// ground makes what the changes of the feeds need.
func (f *fixture) ground() {
	f.Helper()
	f.stream(f.namespace(f.tenant("ground"), "ground"), "ground", 1000)
	f.node("ground")
}

// each runs a test of every feed.
func (f *fixture) each(test func(f *fixture, x feed)) {
	for i, x := range feeds {
		f.Run(x.name, func(t *testing.T) {
			g := newFixture(t, f.Store, f.prefix)
			g.nodes = i
			test(g, x)
		})
	}
}

func testFeedsDense(f *fixture) {
	f.ground()
	f.each(func(f *fixture, x feed) {
		head := want(x.head(f.ctx, f.Store))(f)
		p := want(x.read(f.ctx, f.Store, head))(f)
		f.same([]any{p.seqs, p.head, p.verdict}, []any{[]uint64(nil), head, model.Nothing})
		for i := range 5 {
			f.ok(x.change(f, i))
			f.same(want(x.head(f.ctx, f.Store))(f), head+uint64(i)+1)
		}
		// since is inclusive; the page ends at the head, which it names.
		for i := range uint64(5) {
			p := want(x.read(f.ctx, f.Store, head+i))(f)
			var seqs []uint64
			for s := head + i; s < head+5; s++ {
				seqs = append(seqs, s)
			}
			f.same([]any{p.seqs, p.head, p.verdict, p.next, p.more}, []any{seqs, head + 5, model.Apply, head + 5, false})
		}
		p = want(x.read(f.ctx, f.Store, head+5))(f)
		f.same([]any{p.seqs, p.head, p.verdict}, []any{[]uint64(nil), head + 5, model.Nothing})
		// A reader of a log that was longer once.
		p = want(x.read(f.ctx, f.Store, head+1000))(f)
		f.same([]any{p.seqs, p.head, p.verdict}, []any{[]uint64(nil), head + 5, model.Resnapshot})
	})
}

// testFeedsConcurrent has several writers, a reader that follows, and others
// that take snapshots between the writes and follow from there: nothing may be
// skipped, there is no hole at any moment, and all copies come to the same.
func testFeedsConcurrent(f *fixture) {
	f.ground()
	f.each(func(f *fixture, x feed) {
		const writers, each, readers = 6, 8, 3
		since := want(x.head(f.ctx, f.Store))(f)
		errs := make(chan error, writers+readers)
		written := make(chan struct{})
		go func() {
			together(writers, func(w int) {
				var err error
				for i := 0; i < each && err == nil; i++ {
					err = x.change(f, 100+w*each+i)
				}
				errs <- err
			})
			close(written)
		}()
		for range readers {
			go func() { errs <- followFromSnapshots(f.ctx, f.Store, x.replicate(), written) }()
		}
		next, end := since, since+writers*each
		f.eventually(fmt.Sprintf("%d changes of %s", writers*each, x.name), func() bool {
			p := want(x.read(f.ctx, f.Store, next))(f)
			if p.verdict == model.Resnapshot {
				f.Fatalf("reader at %d is told to take a snapshot: %+v", next, p)
			}
			for _, s := range p.seqs {
				if s != next {
					f.Fatalf("sequence %d where %d belongs", s, next)
				}
				next++
			}
			return next >= end
		})
		for range writers + readers {
			f.ok(<-errs)
		}
		f.same([]uint64{next, want(x.head(f.ctx, f.Store))(f)}, []uint64{end, end})
	})
}

func testEmpty(t *testing.T, open func(*testing.T, Options) store.Store) {
	f := solitary(t, open, Options{})
	for _, x := range feeds {
		f.same(want(x.head(f.ctx, f.Store))(f), 0)
		p := want(x.read(f.ctx, f.Store, 0))(f)
		f.same([]any{p.seqs, p.head}, []any{[]uint64(nil), 0})
	}
	for _, list := range []any{
		want(f.Tenants(f.ctx))(f), want(f.Bridges(f.ctx))(f), want(f.Nodes(f.ctx))(f), want(f.EnabledFeatures(f.ctx))(f),
		want(f.Assignments(f.ctx))(f), want(f.AssignmentsOf(f.ctx, "none"))(f), want(f.Reports(f.ctx))(f),
		want(f.SigningKeys(f.ctx, "none"))(f), want(f.ExpireStale(f.ctx, 1<<50))(f),
		want(f.TenantsSnapshot(f.ctx))(f).Items, want(f.NamespacesSnapshot(f.ctx))(f).Items, want(f.StreamsSnapshot(f.ctx))(f).Items,
		want(f.CachesSnapshot(f.ctx))(f).Items, want(f.NodesSnapshot(f.ctx))(f).Items, want(f.AssignmentsSnapshot(f.ctx))(f).Items,
		want(f.TenantChanges(f.ctx, 0))(f).Items, want(f.NamespaceChanges(f.ctx, 0))(f).Items, want(f.StreamChanges(f.ctx, 0))(f).Items,
		want(f.CacheChanges(f.ctx, 0))(f).Items, want(f.NodeChanges(f.ctx, 0))(f).Items, want(f.AssignmentChanges(f.ctx, 0))(f).Items,
	} {
		if got := asJSON(list); got != "[]" {
			f.Errorf("%T of an empty store is %s, want []", list, got)
		}
	}
	f.same(want(f.MovesPaused(f.ctx))(f), false)
	f.ok(f.Health(f.ctx))
	if f.Store.Name() == "" {
		f.Error("the backend has no name")
	}
	if f.Store.Name() == "memory" && f.Durable() {
		f.Error("memory says that it is durable")
	}
	first := want(f.NowMillis(f.ctx))(f)
	if second := want(f.NowMillis(f.ctx))(f); first == 0 || second < first {
		f.Errorf("the clock read %d and then %d", first, second)
	}
}

// testFeedPages reads a log that is longer than a page.
func testFeedPages(t *testing.T, open func(*testing.T, Options) store.Store) {
	f := solitary(t, open, Options{Limits: store.Limits{ChangesPage: 4, ChangesKept: 1000}})
	f.ground()
	f.each(func(f *fixture, x feed) {
		since := want(x.head(f.ctx, f.Store))(f)
		for i := range 10 {
			f.ok(x.change(f, i))
		}
		var sizes []int
		for next, more := since, true; more; {
			p := want(x.read(f.ctx, f.Store, next))(f)
			// The head of the log, not the end of the page.
			f.same([]any{p.head, p.verdict, p.seqs[0]}, []any{since + 10, model.Apply, next})
			sizes = append(sizes, len(p.seqs))
			next, more = p.next, p.more
		}
		f.same(sizes, []int{4, 4, 2})
	})
}

// testEviction writes more changes than are kept: a reader that is behind is
// told, and never reads over a hole.
func testEviction(t *testing.T, open func(*testing.T, Options) store.Store) {
	const kept, changes = 10, 25
	f := solitary(t, open, Options{Limits: store.Limits{ChangesPage: 4, ChangesKept: kept}})
	f.ground()
	f.each(func(f *fixture, x feed) {
		since := want(x.head(f.ctx, f.Store))(f)
		for i := range changes {
			f.ok(x.change(f, i))
			p := want(x.read(f.ctx, f.Store, since))(f)
			if p.verdict == model.Apply && p.seqs[0] != since {
				f.Fatalf("page %+v for the changes since %d", p, since)
			}
		}
		head := since + changes
		f.same(want(x.head(f.ctx, f.Store))(f), head)
		f.eventually("a reader that is too far behind is told", func() bool {
			return want(x.read(f.ctx, f.Store, head-kept-1))(f).verdict == model.Resnapshot
		})
		p := want(x.read(f.ctx, f.Store, head-kept))(f)
		f.same([]any{p.seqs, p.head, p.verdict}, []any{[]uint64{head - kept, head - kept + 1, head - kept + 2, head - kept + 3}, head, model.Apply})
	})
	for i := range changes {
		f.ok(f.DeleteStream(f.ctx, newStream(f.groundKey(), fmt.Sprintf("s%d", i), 1).Key()))
		f.ok(f.DeleteCache(f.ctx, newCache(f.groundKey(), fmt.Sprintf("c%d", i), 1).Key()))
	}
	newest := fmt.Sprintf("uid-s%d", changes-1)
	f.eventually("tombstones of streams are bounded", func() bool {
		list := want(f.StreamsSnapshot(f.ctx))(f).Tombstones
		f.tombstone(append([]model.Tombstone{}, list...), newest)
		return len(list) == kept
	})
	f.eventually("tombstones of caches are bounded", func() bool {
		return len(want(f.CachesSnapshot(f.ctx))(f).Tombstones) == kept
	})
}
