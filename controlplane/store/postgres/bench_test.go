package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
	"github.com/felixlog/felix/controlplane/store/postgres"
	"github.com/felixlog/felix/controlplane/store/postgres/pgtest"
)

// onDisk opens a store over a server that makes every commit durable.
func onDisk(b *testing.B) *postgres.Store {
	server := pgtest.StartServer(b, map[string]string{"fsync": "on", "full_page_writes": "on", "autovacuum": "on"})
	return open(b, postgres.Options{URL: server.URL(b, "felix")})
}

// BenchmarkHeartbeat is one heartbeat of 1,000 nodes, eight at a time.
func BenchmarkHeartbeat(b *testing.B) {
	s := onDisk(b)
	const nodes = 1000
	for i := range nodes {
		_, err := s.RegisterNode(within(b), fmt.Sprintf("n%d", i), specOf(fmt.Sprintf("10.0.0.1:%d", i+1)))
		must(b, err)
	}
	b.ResetTimer()
	var next atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if _, err := s.Heartbeat(context.Background(), fmt.Sprintf("n%d", i%nodes), 0); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "heartbeats/s")
}

// cluster fills a store with 10,000 streams of 3 shards, and places them if told.
func cluster(b *testing.B, s *postgres.Store, placed bool) {
	const streams, batch, nodes = 10_000, 500, 100
	k := namespaceOf(b, s)
	for i := 0; i < streams; i += batch {
		var some []model.Stream
		for j := range batch {
			some = append(some, streamOf(k, fmt.Sprintf("s%05d", i+j), 3))
		}
		must(b, s.CreateResources(within(b), k, some, nil))
	}
	for i := range nodes {
		_, err := s.RegisterNode(within(b), fmt.Sprintf("n%d", i), specOf(fmt.Sprintf("10.0.0.1:%d", i+1)))
		must(b, err)
	}
	if placed {
		var puts []store.Put
		for i := range streams * 3 {
			puts = append(puts, store.Put{Assignment: placedShard(i)})
		}
		place(b, s, puts)
	}
}

func placedShard(i int) model.Assignment {
	n := func(k int) string { return fmt.Sprintf("n%d", (i+k)%100) }
	return model.Assignment{
		ShardKey: shardOf(fmt.Sprintf("s%05d", i/3), uint32(i%3)), Leader: n(0), Replicas: []string{n(1), n(2)}, State: model.Assigning,
	}
}

func place(b *testing.B, s *postgres.Store, puts []store.Put) {
	token, err := s.PlacementToken(within(b))
	must(b, err)
	for len(puts) > 0 {
		n := min(len(puts), store.MaxPuts)
		results, err := s.PutAssignmentsIf(within(b), puts[:n], token)
		must(b, err)
		for _, r := range results {
			if r.Outcome != store.Written {
				b.Fatalf("outcome %s", r.Outcome)
			}
		}
		token, puts = results[0].Token, puts[n:]
	}
}

func BenchmarkStreamsSnapshot10000(b *testing.B) {
	s := onDisk(b)
	cluster(b, s, false)
	for b.Loop() {
		snap, err := s.StreamsSnapshot(within(b))
		must(b, err)
		if len(snap.Items) != 10_000 {
			b.Fatal(len(snap.Items))
		}
	}
}

func BenchmarkAssignmentsSnapshot30000(b *testing.B) {
	s := onDisk(b)
	cluster(b, s, true)
	for b.Loop() {
		snap, err := s.AssignmentsSnapshot(within(b))
		must(b, err)
		if len(snap.Items) != 30_000 {
			b.Fatal(len(snap.Items))
		}
	}
}

// BenchmarkPutAssignmentIf writes one assignment a call.
func BenchmarkPutAssignmentIf(b *testing.B) {
	s := onDisk(b)
	cluster(b, s, false)
	token, err := s.PlacementToken(within(b))
	must(b, err)
	written := map[model.ShardKey]uint64{}
	i := 0
	for b.Loop() {
		a := placedShard(i % 30_000)
		var expected *uint64
		if g, there := written[a.ShardKey]; there {
			expected = &g
		}
		r, err := s.PutAssignmentIf(context.Background(), a, expected, token)
		must(b, err)
		if r.Outcome != store.Written {
			b.Fatalf("outcome %s", r.Outcome)
		}
		written[a.ShardKey], token = r.Written.Generation, r.Token
		i++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "puts/s")
}

// BenchmarkPlace30000 is a first pass over 30,000 shards, in full batches.
func BenchmarkPlace30000(b *testing.B) {
	s := onDisk(b)
	cluster(b, s, false)
	generation := uint64(0)
	var expected *uint64
	for b.Loop() {
		var puts []store.Put
		for i := range 30_000 {
			puts = append(puts, store.Put{Assignment: placedShard(i), Expected: expected})
		}
		place(b, s, puts)
		if expected != nil {
			generation++
		}
		g := generation
		expected = &g
	}
	b.ReportMetric(float64(b.N)*30_000/b.Elapsed().Seconds(), "puts/s")
}

// BenchmarkIdlePoll is what a waiting broker costs every 50 ms.
func BenchmarkIdlePoll(b *testing.B) {
	s := onDisk(b)
	namespaceOf(b, s)
	for b.Loop() {
		_, err := s.AssignmentChanges(context.Background(), 0)
		must(b, err)
	}
}
