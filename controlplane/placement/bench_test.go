package placement

import (
	"fmt"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
)

// large is a cluster of 10,000 streams of three shards and three copies on 100
// nodes, not placed yet.
func large() Input {
	in := Input{NowMillis: 1 << 40, Policy: Policy{MoveLimit: 1, FenceLag: 1000, SettleMillis: 10_000, RestoreAfterMillis: 300_000}}
	for i := range 100 {
		in.Nodes = append(in.Nodes, model.Node{
			NodeID: fmt.Sprintf("broker-%02d", i), Spec: model.NodeSpec{Region: "local", Capacity: model.Capacity{Weight: 1}},
			Status: model.NodeStatus{Lifecycle: model.Live},
		})
	}
	for i := range 10_000 {
		in.Streams = append(in.Streams, model.Stream{
			TenantID: "tenant", Namespace: "default", Stream: fmt.Sprintf("stream-%05d", i), Shards: 3, ReplicationFactor: 3, Durable: true,
		})
	}
	return in
}

func settled(in Input) Input {
	for _, d := range Plan(in) {
		in.Assignments = append(in.Assignments, *d.Assignment)
		offset := uint64(7)
		in.Reports = append(in.Reports, model.ReplicaReport{
			ShardKey: d.Key, CaughtUp: d.Assignment.Replicas, LeaderOffset: &offset,
			Offsets: map[string]uint64{d.Assignment.Replicas[0]: 7, d.Assignment.Replicas[1]: 7},
		})
	}
	return in
}

func BenchmarkPlanFirst(b *testing.B) {
	in := large()
	for b.Loop() {
		Plan(in)
	}
}

func BenchmarkPlanSettled(b *testing.B) {
	in := settled(large())
	for b.Loop() {
		Plan(in)
	}
}

func BenchmarkPlanNodeLost(b *testing.B) {
	in := settled(large())
	in.Nodes[42].Status.Lifecycle = model.Down
	for b.Loop() {
		Plan(in)
	}
}

func BenchmarkPlanNodeDrains(b *testing.B) {
	in := settled(large())
	in.Nodes[42].Status.Lifecycle = model.Draining
	for b.Loop() {
		Plan(in)
	}
}
