package memory

import (
	"fmt"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// large is a store of 10,000 streams of 3 shards, on 100 nodes, with all its
// rings full.
func large(b *testing.B) *Store {
	b.Helper()
	s, ctx := Open(Options{}), b.Context()
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	must(s.CreateTenant(ctx, model.Tenant{TenantID: "tenant"}))
	must(s.CreateNamespace(ctx, model.Namespace{TenantID: "tenant", Namespace: "namespace"}))
	for i := range 100 {
		_, err := s.RegisterNode(ctx, node(i), model.NodeSpec{AdvertiseAddr: fmt.Sprint("10.0.0.1:", i), Region: "local"})
		must(err)
	}
	token := uint64(0)
	for i := range 10_000 {
		x := model.Stream{
			TenantID: "tenant", Namespace: "namespace", Stream: fmt.Sprintf("stream-%d", i), Kind: model.KindStream, Shards: 3,
			ReplicationFactor: 3, Consistency: model.Quorum, Delivery: model.AtLeastOnce, Durable: true, UID: fmt.Sprintf("%032d", i),
		}
		must(s.CreateStream(ctx, x))
		var puts []store.Put
		for j := range 3 {
			puts = append(puts, store.Put{Assignment: model.Assignment{
				ShardKey: model.ShardKey{TenantID: "tenant", Namespace: "namespace", Stream: x.Stream, Shard: uint32(j), Kind: model.StreamShard},
				Leader:   node(i + j), Replicas: []string{node(i + j + 1), node(i + j + 2)}, State: model.Assigning,
			}})
		}
		r, err := s.PutAssignmentsIf(ctx, puts, token)
		must(err)
		token = r[0].Token
	}
	return s
}

func node(i int) string { return fmt.Sprintf("broker-%d", i%100) }

func BenchmarkLarge(b *testing.B) {
	s, ctx := large(b), b.Context()
	run := func(name string, f func() error) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	run("StreamsSnapshot", func() error { return failed(s.StreamsSnapshot(ctx)) })
	run("AssignmentsSnapshot", func() error { return failed(s.AssignmentsSnapshot(ctx)) })
	run("Heartbeat", func() error { return failed(s.Heartbeat(ctx, "broker-7", 0)) })
	run("Image", func() error { return failed(s.Image()) })
	snap, err := s.Snapshot()
	if err != nil {
		b.Fatal(err)
	}
	run("Snapshot", func() error {
		b.SetBytes(int64(len(snap)))
		return failed(s.Snapshot())
	})
	run("Restore", func() error { return NewState(store.Limits{}).Restore(snap) })
	i := 0
	run("CreateAndDeleteStream", func() error {
		i++
		x := model.Stream{TenantID: "tenant", Namespace: "namespace", Stream: fmt.Sprint("new-", i), Shards: 1}
		if err := s.CreateStream(ctx, x); err != nil {
			return err
		}
		return s.DeleteStream(ctx, x.Key())
	})
}
