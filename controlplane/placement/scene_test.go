package placement

import (
	"slices"
	"strings"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
)

// A scene is a world with one stream "s", whose shards are laid out by hand.
type scene struct {
	*world
	t *testing.T
}

// on makes nodes and one stream. A node is its id, and after a slash its zone.
func on(t *testing.T, s model.Stream, nodes ...string) *scene {
	w := newWorld(t.Fatalf, func(n int) int { return n - 1 })
	for _, n := range nodes {
		id, zone, _ := strings.Cut(n, "/")
		w.addNode(id, "home", zone)
	}
	s.Stream = "s"
	w.addStream(s)
	return &scene{w, t}
}

func durable(factor uint32) model.Stream {
	return model.Stream{Shards: 1, ReplicationFactor: factor, Durable: true}
}

func quorum(factor uint32) model.Stream {
	s := durable(factor)
	s.Consistency = model.Quorum
	return s
}

func (s *scene) key(n uint32) model.ShardKey {
	return model.ShardKey{TenantID: "t", Namespace: "ns", Stream: "s", Shard: n, Kind: model.StreamShard}
}

// lay writes the assignment of shard 0: the first node leads.
func (s *scene) lay(change func(*model.Assignment), set ...string) *scene {
	a := &model.Assignment{ShardKey: s.key(0), Leader: set[0], Replicas: set[1:], Generation: 7, State: model.Assigning}
	if change != nil {
		change(a)
	}
	s.write(s.key(0), a, Place)
	return s
}

// says lets the leader report. A follower's number is how far it is behind.
func (s *scene) says(change func(*model.ReplicaReport), behind map[string]uint64) *scene {
	tail := uint64(10_000)
	r := &model.ReplicaReport{
		ShardKey: s.key(0), Generation: s.placed[s.key(0)].Generation, LeaderOffset: &tail,
		Offsets: map[string]uint64{}, ReportedAtMillis: s.in.NowMillis,
	}
	for id, lag := range behind {
		if r.Offsets[id] = tail - lag; lag == 0 {
			r.CaughtUp = append(r.CaughtUp, id)
		}
	}
	slices.Sort(r.CaughtUp)
	if change != nil {
		change(r)
	}
	s.report[s.key(0)] = r
	return s
}

func (s *scene) is(to model.Lifecycle, ids ...string) *scene {
	for _, id := range ids {
		s.set(id, to)
	}
	return s
}

// decision is that about shard 0.
func (s *scene) decision() Decision {
	s.t.Helper()
	for _, d := range s.plan() {
		if d.Key == s.key(0) {
			return d
		}
	}
	s.t.Fatal("no decision about the shard")
	return Decision{}
}

// want compares the decision about shard 0: its action, and the set, the leader
// first, that it writes, or else the code.
func (s *scene) want(action Action, what ...string) Decision {
	s.t.Helper()
	d := s.decision()
	got := []string{string(d.Code)}
	if d.Assignment != nil {
		got = members(d.Assignment)
	}
	if len(what) == 0 {
		got = nil
	}
	if d.Action != action || !slices.Equal(got, what) {
		s.t.Fatalf("%s %v (%s %s), want %s %v", d.Action, got, d.Code, d.Reason, action, what)
	}
	if d.Action != Keep && d.Action != Place && d.Reason == "" {
		s.t.Errorf("%s says no reason", d.Action)
	}
	return d
}
