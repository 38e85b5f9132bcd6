package metadata

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/felixlog/felix/client"
)

// hastyNodes are settings with which a broker that is gone is soon found to be.
var hastyNodes = []string{
	"--node-liveness-heartbeat-interval-ms", "200", "--node-liveness-expiry-timeout-ms", "2000",
	"--node-liveness-sweep-interval-ms", "100", "--node-liveness-shard-reconcile-interval-ms", "200",
}

// TestBrokerIsLost kills one of two brokers, each of which leads half of the
// shards. What is in memory goes to the other; a durable shard, whose only copy
// is on the dead broker, waits for it, says so, and is served again when it is
// back.
func TestBrokerIsLost(t *testing.T) {
	t.Parallel()
	p := lonePlane(t, filepath.Join(t.TempDir(), "plane"), hastyNodes...)
	brokers := map[string]*brokerProcess{"b1": p.broker("b1"), "b2": p.broker("b2")}
	for _, b := range brokers {
		b.start()
	}
	p.awaitNodes(t, 2)
	p.createStream("orders", 8, true)
	p.createStream("passing", 8, false)
	p.awaitShards(t, 16, map[string]int{"b1": 8, "b2": 8})
	c := brokers["b1"].dial(t, brokers["b2"])
	const keys = 64
	for key := range keys {
		publish(t, c, "orders", fmt.Sprint(key), client.WithKey(fmt.Appendf(nil, "%d", key)))
	}
	count := func() map[string]int {
		n := make(map[string]int)
		for shard, leader := range p.leaders(t, "orders") {
			n[leader] += len(records(t, c, "orders", shard))
		}
		return n
	}
	if n := count(); n["b1"] == 0 || n["b2"] == 0 || n["b1"]+n["b2"] != keys {
		t.Fatalf("the brokers have %v records, want %d on both", n, keys)
	}
	durable := p.leaders(t, "orders")

	brokers["b2"].kill()
	eventually(t, "the shards in memory are b1's", func() error {
		for shard, leader := range p.leaders(t, "passing") {
			if leader != "b1" {
				return fmt.Errorf("shard %d is led by %s", shard, leader)
			}
		}
		return nil
	})
	c = brokers["b1"].dial(t)
	for key := range keys {
		publish(t, c, "passing", "on", client.WithKey(fmt.Appendf(nil, "%d", key)))
	}
	eventually(t, "the durable shards of b2 are said to wait", func() error {
		plan := p.planned(t, "orders")
		for shard, leader := range durable {
			waits := plan[shard].Action == "unplaceable" && plan[shard].Reason != ""
			if waits != (leader == "b2") {
				return fmt.Errorf("shard %d of %s: %+v", shard, leader, plan[shard])
			}
		}
		return nil
	})
	for shard, leader := range p.leaders(t, "orders") {
		if durable[shard] != leader {
			t.Errorf("shard %d was led by %s and is by %s: it is empty there", shard, durable[shard], leader)
		}
	}

	brokers["b2"].start()
	p.awaitNodes(t, 2)
	c = brokers["b1"].dial(t, brokers["b2"])
	if n := count(); n["b1"]+n["b2"] != keys {
		t.Errorf("%v records are left of %d", n, keys)
	}
	for key := range keys {
		publish(t, c, "orders", fmt.Sprint(keys+key), client.WithKey(fmt.Appendf(nil, "%d", key)))
	}
	eventually(t, "nothing waits", func() error {
		for shard, s := range p.planned(t, "orders") {
			if s.Action == "unplaceable" {
				return fmt.Errorf("shard %d: %s", shard, s.Reason)
			}
		}
		return nil
	})
}
