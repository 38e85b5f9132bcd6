package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/postgres"
	"github.com/felixlog/felix/controlplane/store/postgres/pgtest"
)

// Two writes that lock the same rows in opposite orders are a deadlock, which
// the database breaks. Neither caller sees it.
func TestADeadlockIsTriedAgain(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t)
	s := open(t, postgres.Options{URL: url})
	k := namespaceOf(t, s)
	const rounds = 10
	for round := range rounds {
		a, b := streamOf(k, fmt.Sprintf("a%d", round), 1), streamOf(k, fmt.Sprintf("b%d", round), 1)
		var both sync.WaitGroup
		var errs [2]error
		for i, streams := range [][]model.Stream{{a, b}, {b, a}} {
			both.Go(func() { errs[i] = s.CreateResources(within(t), k, streams, nil) })
		}
		both.Wait()
		if won, lost := errs[0], errs[1]; (won == nil) == (lost == nil) || !conflict(errors.Join(won, lost), store.Exists) {
			t.Fatalf("round %d: %v and %v", round, won, lost)
		}
	}

	// One that is certain. The store deletes a tenant: it holds its row and waits
	// at the gate. The other session holds the counter and waits for the row.
	// Through the gate the store wants the counter: it closes the circle, so it is
	// the one that finds it.
	ctx := within(t)
	must(t, s.CreateTenant(ctx, model.Tenant{TenantID: "t2"}))
	must(t, s.CreateNamespace(ctx, model.Namespace{TenantID: "t2", Namespace: "ns"}))
	gate, other := connect(t, url), connect(t, url)
	exec(t, gate, `BEGIN`)
	exec(t, gate, `SELECT FROM namespaces WHERE tenant_id = 't2' FOR UPDATE`)
	exec(t, other, `SET deadlock_timeout = '10min'`)
	exec(t, other, `BEGIN`)
	exec(t, other, `UPDATE tenant_change_seq SET next_seq = next_seq`)
	deleted, updated := make(chan error, 1), make(chan error, 1)
	go func() { deleted <- s.DeleteTenant(ctx, "t2") }()
	waiting(t, url, 1)
	go func() {
		_, err := other.Exec(ctx, `UPDATE tenants SET display_name = 'other' WHERE tenant_id = 't2'`)
		updated <- err
	}()
	waiting(t, url, 2)
	exec(t, gate, `COMMIT`)
	must(t, <-updated) // the store has let go: its transaction was broken
	exec(t, other, `COMMIT`)
	must(t, <-deleted)
	if _, err := s.Tenant(ctx, "t2"); !missing(err) {
		t.Fatalf("after the delete: %v", err)
	}
}

// A node cannot be deleted while an assignment that names it is being written,
// whichever comes first.
func TestDeletingANodeAgainstAssigningToIt(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t)
	a, b := open(t, postgres.Options{URL: url}), open(t, postgres.Options{URL: url})
	ctx := within(t)
	k := namespaceOf(t, a)
	const rounds = 20
	must(t, a.CreateStream(ctx, streamOf(k, "orders", rounds)))
	for i := range uint32(rounds) {
		id := fmt.Sprintf("n%d", i)
		_, err := a.RegisterNode(ctx, id, specOf(fmt.Sprintf("10.0.0.1:%d", i+1)))
		must(t, err)
		_, _, err = a.SetLifecycle(ctx, id, model.Down)
		must(t, err)
		token, err := a.PlacementToken(ctx)
		must(t, err)
		var both sync.WaitGroup
		var put, del error
		both.Go(func() {
			_, put = a.PutAssignmentIf(ctx, model.Assignment{ShardKey: shardOf("orders", i), Leader: id, State: model.Assigning}, nil, token)
		})
		both.Go(func() { del = b.DeleteNode(ctx, id) })
		both.Wait()
		switch {
		case put == nil && conflict(del, store.InUse):
		case del == nil && conflict(put, store.BadAssignment):
		default:
			t.Fatalf("round %d: assigned: %v, deleted: %v", i, put, del)
		}
	}
}

// A namespace that is deleted while something is created in it leaves nothing
// behind, and the feeds end with it.
func TestDeletingANamespaceAgainstCreatingInIt(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t)
	a, b := open(t, postgres.Options{URL: url}), open(t, postgres.Options{URL: url})
	ctx := within(t)
	must(t, a.CreateTenant(ctx, model.Tenant{TenantID: "t1"}))
	k := model.NamespaceKey{TenantID: "t1", Namespace: "ns"}
	for round := range 20 {
		must(t, a.CreateNamespace(ctx, model.Namespace{TenantID: "t1", Namespace: "ns"}))
		var all sync.WaitGroup
		var errs [3]error
		all.Go(func() { errs[0] = a.CreateStream(ctx, streamOf(k, "s", 1)) })
		all.Go(func() {
			errs[1] = b.CreateCache(ctx, model.Cache{TenantID: "t1", Namespace: "ns", Cache: "c", Shards: 1, UID: "u"})
		})
		all.Go(func() { errs[2] = b.DeleteNamespace(ctx, k) })
		all.Wait()
		must(t, errs[2])
		for _, err := range errs[:2] {
			if err != nil && !missing(err) {
				t.Fatalf("round %d: %v", round, err)
			}
		}
		streams, err := a.StreamsSnapshot(ctx)
		must(t, err)
		caches, err := a.CachesSnapshot(ctx)
		must(t, err)
		if len(streams.Items)+len(caches.Items) != 0 {
			t.Fatalf("round %d: something is left: %v %v", round, streams.Items, caches.Items)
		}
		changes, err := a.StreamChanges(ctx, 0)
		must(t, err)
		for i, c := range changes.Items {
			if want := [...]model.Op{model.Created, model.Deleted}[i%2]; c.Op != want || c.Seq != uint64(i) {
				t.Fatalf("round %d: change %d is %s at %d", round, i, c.Op, c.Seq)
			}
		}
		if len(changes.Items)%2 != 0 {
			t.Fatalf("round %d: a stream that was created was not deleted", round)
		}
	}
}

// No node without a feature can register beside its being enabled.
func TestEnablingAFeatureAgainstRegistering(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t)
	a, b := open(t, postgres.Options{URL: url}), open(t, postgres.Options{URL: url})
	for i := range 20 {
		feature := fmt.Sprintf("f%d", i)
		var both sync.WaitGroup
		var lacking []string
		var enable, register error
		both.Go(func() { lacking, enable = a.EnableFeature(within(t), feature) })
		both.Go(func() { _, register = b.RegisterNode(within(t), "n1", specOf("10.0.0.1:1")) })
		both.Wait()
		must(t, enable)
		enabled := len(lacking) == 0
		switch {
		case enabled && conflict(register, store.LacksFeature):
		case !enabled && register == nil:
		default:
			t.Fatalf("round %d: enabled %v, registered: %v", i, enabled, register)
		}
		if enabled {
			return // from now on all are refused
		}
		_, _, err := a.SetLifecycle(within(t), "n1", model.Left)
		must(t, err)
	}
}

func TestOneInstanceHearsOfItsOwnAssignments(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t)
	a, b := open(t, postgres.Options{URL: url}), open(t, postgres.Options{URL: url})
	ctx := within(t)
	k := namespaceOf(t, a)
	must(t, a.CreateStream(ctx, streamOf(k, "orders", 2)))
	_, err := a.RegisterNode(ctx, "n1", specOf("10.0.0.1:1"))
	must(t, err)
	own, other := a.AssignmentsChanged(), b.AssignmentsChanged()
	put(t, ctx, a, 0)
	<-own
	select {
	case <-other:
		t.Fatal("another instance heard of a write it did not make")
	default:
	}
	page, err := b.AssignmentChanges(ctx, 0)
	must(t, err)
	if len(page.Items) != 1 {
		t.Fatalf("another instance reads %d changes", len(page.Items))
	}
	own = a.AssignmentsChanged()
	must(t, a.DeleteTenant(ctx, "t1")) // takes the assignment along
	<-own
}

func put(t *testing.T, ctx context.Context, s *postgres.Store, shard uint32) {
	t.Helper()
	token, err := s.PlacementToken(ctx)
	must(t, err)
	_, err = s.PutAssignmentIf(ctx, model.Assignment{ShardKey: shardOf("orders", shard), Leader: "n1", State: model.Assigning}, nil, token)
	must(t, err)
}
