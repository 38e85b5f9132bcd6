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

// broker lets the leader of a shard work for a while: open what it took over,
// write, copy and report. Where hurried, everybody gets level.
func (w *world) broker(k model.ShardKey, hurried bool) {
	a, l, tr := w.placed[k], w.logs[k], w.shards[k]
	if a == nil || !w.serves(a.Leader) || !w.open(k) {
		return
	}
	fenced := a.State == model.ShardDraining
	if !fenced && !hurried {
		l.offsets[a.Leader] += uint64(w.draw(4))
	}
	tail := l.offsets[a.Leader]
	r := &model.ReplicaReport{
		ShardKey: k, Generation: a.Generation, LeaderOffset: &tail, Offsets: map[string]uint64{},
		CaughtUp: []string{}, ReportedAtMillis: w.in.NowMillis,
	}
	level := 0
	for _, f := range a.Replicas {
		if !w.serves(f) {
			continue
		}
		at := min(l.offsets[f], tail)
		if hurried {
			at = tail
		} else if w.draw(2) == 0 {
			at += uint64(w.draw(int(tail-at) + 1))
		}
		l.offsets[f], r.Offsets[f] = at, at
		if at == tail {
			r.CaughtUp = append(r.CaughtUp, f)
			level++
		}
	}
	if tr.quorum {
		l.acked = max(l.acked, w.mark(a, l))
		if !moving(a) {
			// Caught up is then who holds all that was acknowledged (replication 8).
			r.CaughtUp = slices.DeleteFunc(slices.Sorted(maps.Keys(r.Offsets)), func(f string) bool {
				return r.Offsets[f] < l.acked
			})
		}
	}
	if fenced {
		if w.serves(a.Successor) {
			r.Drained = l.offsets[a.Successor] == tail
		} else {
			r.Drained = level == len(r.Offsets)
		}
	}
	if hurried || w.draw(3) > 0 { // else it is lost on the way
		w.report[k] = r
	}
}

// open is what a leader does at a new generation: it takes what the majority of
// the set that knows least knows, and the others drop what it lacks. Without a
// majority it does not open.
func (w *world) open(k model.ShardKey) bool {
	a, l, tr := w.placed[k], w.logs[k], w.shards[k]
	if l.opened == a.Generation+1 {
		return true
	}
	if tr.quorum {
		var others []string
		for _, f := range a.Replicas {
			if w.serves(f) {
				others = append(others, f)
			}
		}
		needed := (len(a.Replicas) + 1) / 2 // beside the leader
		if len(others) < needed {
			return false
		}
		slices.SortFunc(others, func(x, y string) int { return int(l.offsets[x]) - int(l.offsets[y]) })
		for _, f := range others[:needed] {
			l.offsets[a.Leader] = max(l.offsets[a.Leader], l.offsets[f])
		}
		if l.offsets[a.Leader] < l.acked {
			w.fail("%v: %s opens at %d at generation %d, but %d was acknowledged (set %v, %v)", k, a.Leader,
				l.offsets[a.Leader], a.Generation, l.acked, members(a), l.offsets)
		}
	}
	for _, f := range a.Replicas {
		l.offsets[f] = min(l.offsets[f], l.offsets[a.Leader])
	}
	l.opened = a.Generation + 1
	return true
}

// mark is what a majority of those who vote holds. A destination that was not in
// the set before does not vote.
func (w *world) mark(a *model.Assignment, l *shardLog) uint64 {
	var held []uint64
	for _, m := range members(a) {
		if m == a.Successor && !slices.Contains(l.before, m) {
			continue
		}
		held = append(held, l.offsets[m])
	}
	slices.Sort(held)
	return held[len(held)-1-len(held)/2]
}

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
