package planner

import (
	"fmt"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store/memory"
)

// BenchmarkPass is the pass that places the shard of a new stream, among 30,000
// shards that are placed.
func BenchmarkPass(b *testing.B) {
	const streams, shards, batch = 10_000, 3, 500
	s := memory.Open(memory.Options{})
	b.Cleanup(func() { s.Close() })
	ctx := b.Context()
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	for n := range 3 {
		_, err := s.RegisterNode(ctx, fmt.Sprint("b", n), model.NodeSpec{
			AdvertiseAddr: fmt.Sprintf("10.0.0.%d:7000", n), Region: "local", Labels: map[string]string{}, Capacity: model.Capacity{Weight: 1},
		})
		must(err)
	}
	must(s.CreateTenant(ctx, model.Tenant{TenantID: "t"}))
	must(s.CreateNamespace(ctx, model.Namespace{TenantID: "t", Namespace: "n"}))
	k := model.NamespaceKey{TenantID: "t", Namespace: "n"}
	newStream := func(name string, shards uint32) model.Stream {
		return model.Stream{
			TenantID: "t", Namespace: "n", Stream: name, UID: name, Kind: model.KindStream, Shards: shards, ReplicationFactor: 1,
			Consistency: model.Leader, Delivery: model.AtLeastOnce, Durable: true,
		}
	}
	for from := 0; from < streams; from += batch {
		var all []model.Stream
		for n := range batch {
			all = append(all, newStream(fmt.Sprintf("s%05d", from+n), shards))
		}
		must(s.CreateResources(ctx, k, all, nil))
	}
	p := New(Options{Store: s, Policy: testPolicy, Holder: "bench"})
	placed := func() int {
		snap, err := s.AssignmentsSnapshot(ctx)
		must(err)
		return len(snap.Items)
	}
	for placed() < streams*shards {
		p.pass(ctx)
	}
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n++
		must(s.CreateStream(ctx, newStream(fmt.Sprintf("late%05d", n), 1)))
		p.pass(ctx)
	}
	b.StopTimer()
	if got := placed(); got != streams*shards+n {
		b.Fatalf("%d shards are placed, want %d", got, streams*shards+n)
	}
}
