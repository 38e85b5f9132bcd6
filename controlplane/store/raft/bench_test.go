package raft

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/store"
)

// benchWrites has 64 callers write through the stores in turn.
func benchWrites(b *testing.B, stores []store.Store, write func(s store.Store, n int) error) {
	var next atomic.Int64
	b.SetParallelism(32)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			n := int(next.Add(1))
			if err := write(stores[n%len(stores)], n); err != nil {
				b.Error(err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
}

func create(s store.Store, n int) error { return s.CreateTenant(context.Background(), tenant(n)) }

func benchAlone(b *testing.B) store.Store {
	s, err := Open(b.Context(), Options{DataDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s
}

func benchGroup(b *testing.B) *group {
	g := newGroup(b, 3, Options{ElectionTimeout: 600 * time.Millisecond, commitTimeout: 10 * time.Millisecond})
	return g
}

func BenchmarkWritesAlone(b *testing.B) {
	benchWrites(b, []store.Store{benchAlone(b)}, create)
}

func BenchmarkWritesThroughLeader(b *testing.B) {
	g := benchGroup(b)
	benchWrites(b, []store.Store{g.members[g.leader()]}, create)
}

func BenchmarkWritesThroughAll(b *testing.B) {
	g := benchGroup(b)
	benchWrites(b, []store.Store{g.members[1], g.members[2], g.members[3]}, create)
}

// Heartbeats of a thousand nodes, through all members.
func BenchmarkHeartbeats(b *testing.B) {
	g := benchGroup(b)
	stores := []store.Store{g.members[1], g.members[2], g.members[3]}
	id := func(n int) string { return fmt.Sprintf("broker-%d", n%1000) }
	for n := range 1000 {
		spec := model.NodeSpec{
			AdvertiseAddr: fmt.Sprintf("10.0.%d.%d:5001", n/250, n%250), Region: "local",
			Labels: map[string]string{}, Capacity: model.Capacity{Weight: 1},
		}
		if _, err := stores[0].RegisterNode(b.Context(), id(n), spec); err != nil {
			b.Fatal(err)
		}
	}
	benchWrites(b, stores, func(s store.Store, n int) error {
		_, err := s.Heartbeat(context.Background(), id(n), 0)
		return err
	})
}
