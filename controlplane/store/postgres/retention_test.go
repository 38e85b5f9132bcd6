package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/postgres"
	"github.com/felixlog/felix/controlplane/store/postgres/pgtest"
)

func TestRetentionKeepsTheNewestOfAllFeeds(t *testing.T) {
	t.Parallel()
	const kept = 5
	url := pgtest.Start(t)
	s := open(t, postgres.Options{URL: url, Limits: store.Limits{ChangesPage: 3, ChangesKept: kept}})
	ctx := within(t)
	k := namespaceOf(t, s)
	must(t, s.CreateStream(ctx, streamOf(k, "orders", 20)))
	for i := range 10 {
		name := fmt.Sprintf("r%d", i)
		must(t, s.CreateTenant(ctx, model.Tenant{TenantID: name}))
		must(t, s.CreateNamespace(ctx, model.Namespace{TenantID: "t1", Namespace: name}))
		must(t, s.CreateStream(ctx, streamOf(k, name, 1)))
		must(t, s.DeleteStream(ctx, model.StreamKey{TenantID: "t1", Namespace: "ns", Stream: name}))
		must(t, s.CreateCache(ctx, model.Cache{TenantID: "t1", Namespace: "ns", Cache: name, Shards: 1, UID: "c" + name}))
		must(t, s.DeleteCache(ctx, model.CacheKey{TenantID: "t1", Namespace: "ns", Cache: name}))
		_, err := s.RegisterNode(ctx, name, specOf(fmt.Sprintf("10.0.0.%d:1", i)))
		must(t, err)
		token, err := s.PlacementToken(ctx)
		must(t, err)
		_, err = s.PutAssignmentIf(ctx, model.Assignment{ShardKey: shardOf("orders", uint32(i)), Leader: name, State: model.Assigning}, nil, token)
		must(t, err)
	}
	// What a reader sees is bounded before anything is removed.
	page, err := s.TenantChanges(ctx, 0)
	must(t, err)
	if len(page.Items) != 3 || page.Items[0].Seq != page.NextSeq-kept {
		t.Fatalf("before the removal: %d items from %d, head %d", len(page.Items), page.Items[0].Seq, page.NextSeq)
	}
	snap, err := s.StreamsSnapshot(ctx)
	must(t, err)
	if len(snap.Tombstones) != kept || snap.Tombstones[kept-1].Name != "r9" {
		t.Fatalf("before the removal: %d tombstones, %v", len(snap.Tombstones), snap.Tombstones)
	}

	must(t, s.Prune(ctx))
	conn := connect(t, url)
	for _, feed := range []string{"tenant", "namespace", "stream", "cache", "node", "shard_assignment"} {
		var rows, lowest, next int64
		must(t, conn.QueryRow(ctx, fmt.Sprintf(
			`SELECT count(*), min(seq), (SELECT next_seq FROM %[1]s_change_seq) FROM %[1]s_changes`, feed)).Scan(&rows, &lowest, &next))
		if rows != kept || lowest != next-kept {
			t.Errorf("feed %s: %d entries from %d, head %d", feed, rows, lowest, next)
		}
	}
	for _, kind := range []model.ShardKind{model.StreamShard, model.CacheShard} {
		var rows int
		var oldest string
		must(t, conn.QueryRow(ctx, `
			SELECT count(*), (SELECT name FROM tombstones WHERE kind = $1 ORDER BY seq LIMIT 1) FROM tombstones WHERE kind = $1`, kind).Scan(&rows, &oldest))
		if rows != kept || oldest != "r5" {
			t.Errorf("%s: %d tombstones, the oldest of %s", kind, rows, oldest)
		}
	}
	after, err := s.StreamsSnapshot(ctx)
	must(t, err)
	if fmt.Sprint(after) != fmt.Sprint(snap) {
		t.Errorf("the removal changed what a reader sees: %v, was %v", after, snap)
	}
	must(t, s.Prune(ctx)) // nothing left to do
}

func TestRetentionRunsByItself(t *testing.T) {
	t.Parallel()
	url := pgtest.Start(t)
	s := open(t, postgres.Options{URL: url, RetentionPeriod: 10 * time.Millisecond, Limits: store.Limits{ChangesPage: 1, ChangesKept: 1}})
	ctx := within(t)
	must(t, s.CreateTenant(ctx, model.Tenant{TenantID: "a"}))
	must(t, s.CreateTenant(ctx, model.Tenant{TenantID: "b"}))
	conn := connect(t, url)
	for rows := 0; rows != 1; {
		must(t, conn.QueryRow(ctx, `SELECT count(*) FROM tenant_changes`).Scan(&rows))
	}
}
