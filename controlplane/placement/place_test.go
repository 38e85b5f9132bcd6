package placement

import (
	"fmt"
	"slices"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
)

func TestPromotion(t *testing.T) {
	t.Run("the follower that is furthest ahead", func(t *testing.T) {
		on(t, durable(4), "a", "b", "c", "d").lay(nil, "a", "b", "c", "d").is(model.Down, "a").
			says(func(r *model.ReplicaReport) {
				r.CaughtUp = []string{"b", "c", "d"} // as on a quorum shard
				r.Offsets = map[string]uint64{"b": 7, "c": 9, "d": 8}
			}, nil).want(Place, "c", "b", "d", "a")
	})
	t.Run("a report of an earlier generation will do", func(t *testing.T) {
		on(t, durable(2), "a", "b").lay(nil, "a", "b").is(model.Down, "a").
			says(func(r *model.ReplicaReport) { r.Generation = 3 }, map[string]uint64{"b": 0}).want(Place, "b", "a")
	})
	t.Run("not one that drains or left", func(t *testing.T) {
		on(t, durable(3), "a", "b", "c", "d").lay(nil, "a", "b", "c").is(model.Down, "a").is(model.Draining, "b").is(model.Left, "c").
			says(nil, map[string]uint64{"b": 0, "c": 0}).want(Unplaceable, string(NoCaughtUpReplica))
	})
	t.Run("nobody caught up", func(t *testing.T) {
		on(t, durable(2), "a", "b", "c").lay(nil, "a", "b").is(model.Left, "a").
			says(nil, map[string]uint64{"b": 1}).want(Unplaceable, string(NoCaughtUpReplica))
	})
	t.Run("the destination of a move, but not on a quorum shard", func(t *testing.T) {
		moving := func(a *model.Assignment) { a.Successor = "c" }
		on(t, durable(2), "a", "b", "c").lay(moving, "a", "b", "c").is(model.Down, "a").
			says(nil, map[string]uint64{"c": 0}).want(Place, "c", "b")
		on(t, quorum(2), "a", "b", "c").lay(moving, "a", "b", "c").is(model.Down, "a").
			says(nil, map[string]uint64{"c": 0}).want(Unplaceable, string(NoCaughtUpReplica))
		on(t, quorum(2), "a", "b", "c").lay(moving, "a", "b", "c").is(model.Down, "a").
			says(nil, map[string]uint64{"b": 0, "c": 0}).want(Place, "b", "a")
	})
	t.Run("a newcomer stays beside an even set and goes beside an odd one", func(t *testing.T) {
		joining := func(a *model.Assignment) { a.Joining = "d" }
		d := on(t, quorum(2), "a", "b", "d").lay(joining, "a", "b", "d").is(model.Down, "a").
			says(nil, map[string]uint64{"b": 0}).want(Place, "b", "d", "a")
		if d.Assignment.Joining != "d" {
			t.Errorf("the newcomer is taken for a member: %+v", d.Assignment)
		}
		on(t, quorum(3), "a", "b", "c", "d").lay(joining, "a", "b", "c", "d").is(model.Down, "a").
			says(nil, map[string]uint64{"b": 0}).want(Place, "b", "c", "a")
	})
	t.Run("no other region", func(t *testing.T) {
		s := durable(2)
		s.Region = "home"
		x := on(t, s, "a", "b", "c").lay(nil, "a", "b").is(model.Down, "a").says(nil, map[string]uint64{"b": 0})
		x.node("b").Spec.Region = "away"
		x.want(Unplaceable, string(NoCaughtUpReplica))
		x.in.Bridges = []model.Bridge{{Source: "away", Destination: "home"}}
		x.want(Unplaceable, string(NoCaughtUpReplica))
		x.in.Bridges = []model.Bridge{{Source: "home", Destination: "away"}}
		x.want(Place, "b", "a")
	})
}

func TestShardWithoutFollowers(t *testing.T) {
	x := on(t, durable(1), "a", "b").lay(nil, "a").is(model.Down, "a")
	x.want(Unplaceable, string(OnlyCopy))
	x.in.Nodes = slices.DeleteFunc(x.in.Nodes, func(n model.Node) bool { return n.NodeID == "a" })
	x.want(Place, "b")
	x = on(t, model.Stream{Shards: 1}, "a", "b").lay(nil, "a").is(model.Down, "a")
	x.want(Place, "b")
	x.is(model.Down, "b").want(Unplaceable, string(NoLiveNode))
}

// In memory there is no log to hand over: a leader that leaves is replaced.
func TestShardInMemoryLeavesADrainingLeaderAtOnce(t *testing.T) {
	x := on(t, model.Stream{Shards: 1}, "a", "b").lay(nil, "a").is(model.Draining, "a")
	x.want(Place, "b")
	x.in.Paused = true
	x.want(Waiting, string(Paused))
	x.in.Paused = false
	x.is(model.Down, "b").want(Waiting, string(NoDestination))
	// With a follower that is caught up, it is that one.
	on(t, model.Stream{Shards: 1, ReplicationFactor: 2}, "a", "b", "c").lay(nil, "a", "c").is(model.Draining, "a").
		says(nil, map[string]uint64{"c": 0}).want(Place, "c", "b")
}

func TestFirstPlacement(t *testing.T) {
	x := on(t, durable(3), "a", "b")
	if d := x.decision(); d.Action != Place || len(members(d.Assignment)) != 2 || d.Expected != nil {
		t.Errorf("with too few nodes: %+v", d)
	}
	x.in.Policy.SettleMillis, x.in.NowMillis = 10_000, 10_000
	x.want(Waiting, string(Settling))
	x.addNode("c", "home", "")
	if d := x.decision(); d.Action != Place || len(members(d.Assignment)) != 3 {
		t.Errorf("with enough nodes in a young cluster: %+v", d)
	}
	x.is(model.Down, "c").want(Waiting, string(Settling))
	x.in.NowMillis++ // the first node registered at 1
	if d := x.decision(); d.Action != Place {
		t.Errorf("settled: %+v", d)
	}

	capped := on(t, durable(1), "a")
	one := uint32(1)
	capped.node("a").Spec.Capacity.MaxShards = &one
	capped.addCache("other", 1, 1)
	if d := capped.plan(); d[0].Action != Place || d[1].Code != AllAtMaxShards {
		t.Errorf("one role for two shards: %+v", d)
	}
	away := durable(1)
	away.Region = "elsewhere"
	on(t, away, "a").want(Unplaceable, string(NoNodeInRegion))
}

// 24 shards on three nodes: each leads eight, with one copy or three.
func TestShardsSpreadEvenly(t *testing.T) {
	for factor := uint32(1); factor <= 3; factor++ {
		s := durable(factor)
		s.Shards = 24
		x := on(t, s, "a", "b", "c")
		x.carryOut(x.plan())
		leads := map[string]int{}
		for _, a := range x.placed {
			leads[a.Leader]++
		}
		for _, id := range []string{"a", "b", "c"} {
			if leads[id] != 8 || x.roles(id) != 8*int(factor) {
				t.Errorf("factor %d: %s leads %d and holds %d", factor, id, leads[id], x.roles(id))
			}
		}
	}
}

// A node that goes changes only what it held, and one that comes takes a share
// and no more.
func TestNodesThatComeAndGoChangeLittle(t *testing.T) {
	s := durable(3)
	s.Shards = 300
	var ids []string
	for i := range 10 {
		ids = append(ids, fmt.Sprint("n", i))
	}
	x := on(t, s, ids...)
	x.in.Policy.RestoreAfterMillis = 0
	x.carryOut(x.plan())
	for _, k := range x.keys() {
		x.broker(k, true)
	}
	x.is(model.Down, "n4")
	x.in.Policy.MoveLimit = 0
	for _, d := range x.plan() {
		held := slices.Contains(members(x.placed[d.Key]), "n4")
		led := x.placed[d.Key].Leader == "n4"
		if d.Assignment != nil && !held || led != (d.Action == Place) {
			t.Errorf("%v, on n4: %v, led by it: %v: %s", d.Key, held, led, d.Action)
		}
	}
	x.is(model.Live, "n4")
	x.in.Policy.MoveLimit = 1 << 20
	x.addNode("new", "home", "")
	moved := 0
	for _, d := range x.plan() {
		if d.Assignment == nil {
			continue
		}
		if moved++; d.Assignment.Successor != "new" {
			t.Errorf("%v goes to %s, because of a new node", d.Key, d.Assignment.Successor)
		}
	}
	if share := (300 + 10) / 11; moved == 0 || moved > share {
		t.Errorf("%d shards move to a node whose share is %d", moved, share)
	}
}

// Followers and destinations go where nothing fails together with what there is.
func TestZonesAreSpread(t *testing.T) {
	s := durable(2)
	s.Shards = 60
	x := on(t, s, "a/1", "b/1", "c/1", "d/2", "e/2", "f/2")
	x.carryOut(x.plan())
	for k, a := range x.placed {
		if x.node(a.Leader).Spec.Zone == x.node(a.Replicas[0]).Spec.Zone {
			t.Errorf("%v is in one zone: %v", k, members(a))
		}
	}
	// A drain keeps the spread where it can, and else goes on without it.
	y := on(t, durable(2), "a/1", "b/1", "c/2", "d/2").lay(nil, "a", "c").is(model.Draining, "a")
	y.in.Policy.FenceLag = 0
	y.says(nil, map[string]uint64{"c": 5})
	if to := y.decision().Assignment.Successor; to != "b" {
		t.Errorf("the leader moves from zone 1 to %s", to)
	}
	y.is(model.Down, "b")
	if d := y.decision(); d.Action != Stage {
		t.Errorf("a drain that narrows the spread: %+v", d)
	}
	// A rebalancing would give up the copy of a node that restarts, and with it
	// the only one in its zone: another shard goes instead.
	z := on(t, durable(2), "a/1", "c/2", "d/1").lay(nil, "a", "c").is(model.Down, "c")
	z.in.Policy.MoveLimit = 10
	for i := range 5 {
		z.addCache(fmt.Sprint("z", i), 1, 1)
		k := model.ShardKey{TenantID: "t", Namespace: "ns", Stream: fmt.Sprint("z", i), Kind: model.CacheShard}
		z.write(k, &model.Assignment{ShardKey: k, Leader: "a", Replicas: []string{}, State: model.Assigning}, Place)
	}
	staged := 0
	for _, d := range z.plan() {
		if d.Action == Stage {
			staged++
		}
	}
	if staged != 3 {
		t.Errorf("%d of 6 shards move to the other node", staged)
	}
	z.want(Keep)
}
