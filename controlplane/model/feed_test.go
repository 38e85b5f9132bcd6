package model

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"
)

// What a page means follows the table of control plane 5.3.
func TestJudge(t *testing.T) {
	change := func(seq uint64) TenantChange { return TenantChange{Seq: seq} }
	for name, c := range map[string]struct {
		page  Page[TenantChange]
		since uint64
		want  Verdict
		next  uint64
		more  bool
	}{
		"nothing new":          {Page[TenantChange]{NextSeq: 5}, 5, Nothing, 5, false},
		"one":                  {Page[TenantChange]{Items: []TenantChange{change(5)}, NextSeq: 6}, 5, Apply, 6, false},
		"a page of more":       {Page[TenantChange]{Items: []TenantChange{change(5), change(6)}, NextSeq: 90}, 5, Apply, 7, true},
		"entries were evicted": {Page[TenantChange]{Items: []TenantChange{change(7)}, NextSeq: 8}, 5, Resnapshot, 5, false},
		"nothing is left":      {Page[TenantChange]{NextSeq: 9}, 5, Resnapshot, 5, false},
		"the feed was reset":   {Page[TenantChange]{NextSeq: 2}, 5, Resnapshot, 5, false},
		"reset, with changes":  {Page[TenantChange]{Items: []TenantChange{change(1)}, NextSeq: 2}, 5, Resnapshot, 5, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, next, more := Judge(c.page, c.since)
			if got != c.want || next != c.next || more != c.more {
				t.Errorf("got %d, %d, %v", got, next, more)
			}
		})
	}
}

// A reader that follows a feed by the rule sees every change once, whatever the
// pages are cut to, or is told to take a snapshot.
func TestJudgeLosesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		head := rapid.Uint64Range(0, 60).Draw(t, "head")
		kept := rapid.Uint64Range(0, head).Draw(t, "kept from")
		since := rapid.Uint64Range(0, 70).Draw(t, "since")
		size := rapid.Uint64Range(1, 7).Draw(t, "page")
		seen := since
		for range 100 {
			p := Page[StreamChange]{NextSeq: head}
			for seq := max(seen, kept); seq < head && uint64(len(p.Items)) < size; seq++ {
				p.Items = append(p.Items, StreamChange{Seq: seq})
			}
			verdict, next, more := Judge(p, seen)
			switch verdict {
			case Resnapshot:
				if since >= kept && since <= head {
					t.Fatalf("told to take a snapshot at %d of %d to %d", seen, kept, head)
				}
				return
			case Nothing:
				if seen != head || more {
					t.Fatalf("waits at %d, the head is %d", seen, head)
				}
				return
			}
			for i, item := range p.Items {
				if item.Seq != seen+uint64(i) {
					t.Fatalf("%d follows %d", item.Seq, seen)
				}
			}
			if seen = next; more != (seen < head) {
				t.Fatalf("more is %v at %d of %d", more, seen, head)
			}
		}
		t.Fatal("it does not end")
	})
}

// The form of records is that of control plane 3.1 and 5.1.
func TestForm(t *testing.T) {
	most, at := uint32(9), uint64(7)
	for _, c := range []struct {
		value any
		want  string
	}{
		{Stream{TenantID: "t1", Namespace: "ns", Stream: "orders", Kind: KindStream, Shards: 2, ReplicationFactor: 1, Consistency: Leader, Delivery: AtLeastOnce, Durable: true},
			`{"tenant_id":"t1","namespace":"ns","stream":"orders","kind":"Stream","shards":2,"replication_factor":1,"retention":{"max_age_seconds":null,"max_size_bytes":null},"consistency":"Leader","delivery":"AtLeastOnce","durable":true}`},
		{TenantChange{Seq: 1, Op: Deleted, TenantID: "t1"}, `{"seq":1,"op":"deleted","tenant_id":"t1","tenant":null}`},
		{StreamChange{Seq: 2, Op: Deleted, Key: StreamKey{"t1", "ns", "s"}}, `{"seq":2,"op":"deleted","key":{"tenant_id":"t1","namespace":"ns","stream":"s"},"stream":null}`},
		{AssignmentChange{Seq: 3, Op: Unassigned, Key: ShardKey{"t1", "ns", "s", 4, CacheShard}},
			`{"seq":3,"op":"unassigned","key":{"tenant_id":"t1","namespace":"ns","stream":"s","shard":4,"kind":"cache"},"assignment":null}`},
		{Assignment{ShardKey: ShardKey{"t1", "ns", "s", 0, StreamShard}, Leader: "b1", Replicas: []string{"b2"}, Generation: 3, State: ShardDraining, Successor: "b2", MoveStartedAtMillis: &at, MoveReason: MoveDrain},
			`{"tenant_id":"t1","namespace":"ns","stream":"s","shard":0,"kind":"stream","leader":"b1","replicas":["b2"],"generation":3,"state":"draining","successor":"b2","move_started_at_millis":7,"move_reason":"drain"}`},
		{Node{NodeID: "b1", Spec: NodeSpec{AdvertiseAddr: "10.0.0.1:1", Region: "r", Labels: map[string]string{}, Capacity: Capacity{MaxShards: &most, Weight: 1}}, Status: NodeStatus{Lifecycle: Live, Incarnation: 1}},
			`{"node_id":"b1","spec":{"advertise_addr":"10.0.0.1:1","region":"r","labels":{},"capacity":{"max_shards":9,"weight":1}},"status":{"lifecycle":"live","last_heartbeat_at_millis":0,"registered_at_millis":0,"incarnation":1}}`},
		{Snapshot[Tenant]{Items: []Tenant{}, NextSeq: 4}, `{"items":[],"next_seq":4}`},
	} {
		got, err := json.Marshal(c.value)
		if err != nil || string(got) != c.want {
			t.Errorf("%T, %v:\n got %s\nwant %s", c.value, err, got, c.want)
		}
	}
}
