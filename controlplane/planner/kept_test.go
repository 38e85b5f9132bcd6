package planner

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/memory"
	"github.com/felixlog/felix/controlplane/store/postgres"
	"github.com/felixlog/felix/controlplane/store/postgres/pgtest"
)

// A snapshots counts how often all of a kind is read.
type snapshots struct {
	store.Store
	streams, caches, assignments int
}

func (s *snapshots) StreamsSnapshot(ctx context.Context) (model.Snapshot[model.Stream], error) {
	s.streams++
	return s.Store.StreamsSnapshot(ctx)
}

func (s *snapshots) CachesSnapshot(ctx context.Context) (model.Snapshot[model.Cache], error) {
	s.caches++
	return s.Store.CachesSnapshot(ctx)
}

func (s *snapshots) AssignmentsSnapshot(ctx context.Context) (model.Snapshot[model.Assignment], error) {
	s.assignments++
	return s.Store.AssignmentsSnapshot(ctx)
}

func (s *snapshots) count() [3]int { return [3]int{s.streams, s.caches, s.assignments} }

func through(s *snapshots) func(*Options) { return func(o *Options) { o.Store = s } }

// A planner that kept what it read sees what one sees that reads all of it, after
// whatever was written, also where the feed does not go back as far as it has to.
func TestKeptIsWhatIsStored(t *testing.T) {
	limits := store.Limits{ChangesPage: 5, ChangesKept: 20}
	t.Run("memory", func(t *testing.T) {
		c := inMemory(t)
		s := memory.Open(memory.Options{Clock: c.clock.now, Limits: limits})
		t.Cleanup(func() { s.Close() })
		c.stores = []store.Store{s}
		keptIsStored(t, c)
	})
	t.Run("postgres", func(t *testing.T) {
		c := &cluster{t: t, ctx: context60(t), policy: testPolicy}
		s, err := postgres.Open(c.ctx, postgres.Options{URL: pgtest.Start(t), MaxConns: 4, Limits: limits})
		c.check(err)
		t.Cleanup(func() { s.Close() })
		c.stores = []store.Store{s}
		keptIsStored(t, c)
	})
}

func keptIsStored(t *testing.T, c *cluster) {
	c.register("a", "b")
	c.namespace()
	s := &snapshots{Store: c.store()}
	keeper := c.planner(0, through(s))
	r := rand.New(rand.NewPCG(7, 11))
	followed, gaps := 0, 0
	for range 150 {
		// Mostly a few writes, now and then more than the feed keeps.
		writes := r.IntN(8)
		if r.IntN(10) == 0 {
			writes = 40
		}
		for range writes {
			c.anything(r)
		}
		before := s.count()
		kept, err := keeper.read(c.ctx)
		c.check(err)
		if s.count() == before {
			followed++
		} else {
			gaps++
		}
		fresh, err := c.planner(1).read(c.ctx)
		c.check(err)
		fresh.input.NowMillis = kept.input.NowMillis
		if len(kept.input.Streams)+len(fresh.input.Streams) > 0 && !reflect.DeepEqual(kept.input.Streams, fresh.input.Streams) ||
			len(kept.input.Caches)+len(fresh.input.Caches) > 0 && !reflect.DeepEqual(kept.input.Caches, fresh.input.Caches) ||
			len(kept.input.Assignments)+len(fresh.input.Assignments) > 0 && !reflect.DeepEqual(kept.input.Assignments, fresh.input.Assignments) {
			t.Fatalf("kept\n%+v\nand there is\n%+v", kept.input, fresh.input)
		}
	}
	if followed < 50 || gaps < 5 {
		t.Errorf("%d readings followed the feeds and %d did not: both are to be met", followed, gaps)
	}
}

// anything writes or deletes a stream, a cache or an assignment of one.
func (c *cluster) anything(r *rand.Rand) {
	c.t.Helper()
	name := fmt.Sprint("s", r.IntN(12))
	stream := model.StreamKey{TenantID: "t", Namespace: "ns", Stream: name}
	cache := model.CacheKey{TenantID: "t", Namespace: "ns", Cache: name}
	_, err := c.store().Stream(c.ctx, stream)
	noStream := err != nil
	_, err = c.store().Cache(c.ctx, cache)
	noCache := err != nil
	switch n := r.IntN(10); {
	case n < 3 && noStream:
		c.create(model.Stream{Stream: name, Shards: 3, ReplicationFactor: 1, Durable: true})
	case n < 3 && r.IntN(3) > 0:
		seconds := r.Uint64N(1000) + 1
		_, err := c.store().PatchStream(c.ctx, stream, model.StreamPatch{Retention: &model.Retention{MaxAgeSeconds: &seconds}})
		c.check(err)
	case n < 3:
		c.check(c.store().DeleteStream(c.ctx, stream))
	case n < 5 && noCache:
		c.check(c.store().CreateCache(c.ctx, model.Cache{
			TenantID: "t", Namespace: "ns", Cache: name, UID: "uid-" + name, Shards: 3, ReplicationFactor: 1, Consistency: model.Leader,
		}))
	case n < 5 && r.IntN(3) == 0:
		c.check(c.store().DeleteCache(c.ctx, cache))
	case !noStream || !noCache:
		kind := model.StreamShard
		if noStream || !noCache && r.IntN(2) == 0 {
			kind = model.CacheShard
		}
		k := model.ShardKey{TenantID: "t", Namespace: "ns", Stream: name, Shard: r.Uint32N(3), Kind: kind}
		_, err := c.store().Assignment(c.ctx, k)
		if err == nil && r.IntN(4) == 0 {
			c.check(c.store().DeleteAssignment(c.ctx, k))
			return
		}
		c.put(model.Assignment{ShardKey: k, Leader: []string{"a", "b"}[r.IntN(2)]})
	}
}

// What is kept is read anew when it is old, and when a write shows that it does
// not fit.
func TestKeptIsDoubted(t *testing.T) {
	c := inMemory(t)
	c.register("a")
	k := c.stream("s", 1, 1)
	s := &snapshots{Store: c.store()}
	p := c.planner(0, through(s))
	want := func(n int, why string) {
		t.Helper()
		_, err := p.read(c.ctx)
		c.check(err)
		if s.count() != [3]int{n, n, n} {
			t.Errorf("%s: read as a whole %v times, want %d", why, s.count(), n)
		}
	}
	want(1, "at first")
	c.stream("z", 2, 1)
	want(1, "a stream more")
	c.clock.advance(keptFor - time.Nanosecond)
	want(1, "just before it is old")
	c.clock.advance(time.Nanosecond)
	want(2, "old")
	c.clock.advance(-time.Hour)
	want(3, "read in the future")

	r, ds := readAndPlan(c, p)
	token, err := c.store().PlacementToken(c.ctx)
	c.check(err)
	c.put(model.Assignment{ShardKey: k, Leader: "a"})
	r.token = token + 1
	carryOut(c, p, r, ds)
	want(4, "a write met another generation")
}
