package placement

import (
	"fmt"
	"maps"
	"slices"

	"github.com/felixlog/felix/controlplane/model"
)

// A world is a cluster that does what it is told: its brokers copy, drain and
// report, and every plan that is carried out is checked against what may never
// happen.
type world struct {
	in     Input
	placed map[model.ShardKey]*model.Assignment
	logs   map[model.ShardKey]*shardLog
	shards map[model.ShardKey]trait
	report map[model.ShardKey]*model.ReplicaReport
	fail   func(format string, args ...any)
	draw   func(n int) int // 0 <= draw < n
	writes int
}

type trait struct {
	factor          int
	durable, quorum bool
	region          string
}

// A shardLog is how far each node's copy is, and how much was acknowledged.
type shardLog struct {
	offsets map[string]uint64
	acked   uint64
	before  []string // members of the assignment before, who vote
	opened  uint64   // generation, plus one, at which the leader has opened it
}

const (
	stepMillis   = 1000
	reportMillis = 5 * stepMillis
	restoreAfter = 4 * stepMillis
)

func newWorld(fail func(string, ...any), draw func(int) int) *world {
	return &world{
		fail: fail, draw: draw,
		in: Input{
			NowMillis: 1 << 40,
			Policy:    Policy{MoveLimit: 1, FenceLag: 2, RestoreAfterMillis: restoreAfter},
		},
		placed: map[model.ShardKey]*model.Assignment{}, logs: map[model.ShardKey]*shardLog{},
		shards: map[model.ShardKey]trait{}, report: map[model.ShardKey]*model.ReplicaReport{},
	}
}

func (w *world) addNode(id, region, zone string) *model.Node {
	w.in.Nodes = append(w.in.Nodes, model.Node{
		NodeID: id,
		Spec:   model.NodeSpec{Region: region, Zone: zone, Capacity: model.Capacity{Weight: 1}},
		Status: model.NodeStatus{Lifecycle: model.Live, RegisteredAtMillis: 1, LastHeartbeatAtMillis: w.in.NowMillis},
	})
	return &w.in.Nodes[len(w.in.Nodes)-1]
}

func (w *world) addStream(s model.Stream) {
	s.TenantID, s.Namespace = "t", "ns"
	w.in.Streams = append(w.in.Streams, s)
	for n := range s.Shards {
		k := model.ShardKey{TenantID: "t", Namespace: "ns", Stream: s.Stream, Shard: n, Kind: model.StreamShard}
		factor := int(max(s.ReplicationFactor, 1))
		// With one copy, and in memory, a quorum promises nothing across a failover.
		w.shards[k] = trait{factor, s.Durable, s.Durable && factor > 1 && s.Consistency == model.Quorum, s.Region}
	}
}

func (w *world) addCache(name string, shards, factor uint32) {
	w.in.Caches = append(w.in.Caches, model.Cache{
		TenantID: "t", Namespace: "ns", Cache: name, Shards: shards, ReplicationFactor: factor,
	})
	for n := range shards {
		k := model.ShardKey{TenantID: "t", Namespace: "ns", Stream: name, Shard: n, Kind: model.CacheShard}
		w.shards[k] = trait{int(max(factor, 1)), true, false, ""}
	}
}

func (w *world) node(id string) *model.Node {
	for i := range w.in.Nodes {
		if w.in.Nodes[i].NodeID == id {
			return &w.in.Nodes[i]
		}
	}
	return nil
}

func (w *world) serves(id string) bool {
	n := w.node(id)
	return n != nil && n.Status.Lifecycle.Serving()
}

// set moves a node. One that stops was last heard of now.
func (w *world) set(id string, to model.Lifecycle) {
	n := w.node(id)
	if n.Status.Lifecycle.Serving() || to.Serving() {
		n.Status.LastHeartbeatAtMillis = w.in.NowMillis
	}
	n.Status.Lifecycle = to
}

// plan refreshes the input and plans.
func (w *world) plan() []Decision {
	w.in.Assignments, w.in.Reports = nil, nil
	for _, k := range w.keys() {
		if a := w.placed[k]; a != nil {
			w.in.Assignments = append(w.in.Assignments, *a)
		}
		if r := w.report[k]; r != nil && w.in.NowMillis-r.ReportedAtMillis <= reportMillis {
			w.in.Reports = append(w.in.Reports, *r)
		}
	}
	return Plan(w.in)
}

func (w *world) keys() []model.ShardKey {
	return slices.SortedFunc(maps.Keys(w.shards), model.ShardKey.Compare)
}

// carryOut writes decisions; each is checked first.
func (w *world) carryOut(ds []Decision) (written int) {
	for _, d := range ds {
		if d.Assignment == nil {
			continue
		}
		w.check(d)
		a := *d.Assignment
		a.Generation = 0
		if old := w.placed[d.Key]; old != nil {
			a.Generation = old.Generation + 1
		}
		w.write(d.Key, &a, d.Action)
		written++
	}
	w.writes += written
	return written
}

func (w *world) write(k model.ShardKey, a *model.Assignment, action Action) {
	l, old := w.logs[k], w.placed[k]
	if l == nil {
		l = &shardLog{offsets: map[string]uint64{}}
		w.logs[k] = l
	}
	if old != nil {
		l.before = members(old)
	} else {
		l.before = members(a)
	}
	if action == Discard {
		l.acked = 0
	}
	w.placed[k] = a
}

func members(a *model.Assignment) []string { return append([]string{a.Leader}, a.Replicas...) }

// settle lets the cluster run until nothing is to be written for longer than
// what is gone is waited for, and fails if that does not come.
func (w *world) settle() {
	bound, quiet := 60+12*len(w.shards), uint64(0)
	for range bound {
		for _, k := range w.keys() {
			w.broker(k, true)
		}
		if quiet++; w.carryOut(w.plan()) > 0 {
			quiet = 0
		}
		if quiet*stepMillis > restoreAfter {
			return
		}
		w.in.NowMillis += stepMillis
	}
	w.fail("not settled after %d passes: %s", bound, w.pending())
}

func (w *world) pending() (s string) {
	for _, d := range w.plan() {
		if d.Action != Keep {
			s += fmt.Sprintf("\n%s %s %s %s %+v", d.Key, d.Action, d.Code, d.Reason, d.Before)
		}
	}
	return s
}
