package placement

import (
	"testing"

	"github.com/felixlog/felix/controlplane/model"
)

func to(id string) func(*model.Assignment) {
	return func(a *model.Assignment) { a.Successor, a.MoveReason = id, model.MoveBalance }
}

func fencedTo(id string) func(*model.Assignment) {
	return func(a *model.Assignment) { a.Successor, a.State = id, model.ShardDraining }
}

func joining(id string, why model.MoveReason) func(*model.Assignment) {
	return func(a *model.Assignment) { a.Joining, a.MoveReason = id, why }
}

func drained(r *model.ReplicaReport) { r.Drained = true }

func (s *scene) drainedBy(behind map[string]uint64) *scene { return s.says(drained, behind) }

func TestDrainChoosesItsDestination(t *testing.T) {
	t.Run("the level follower that is furthest ahead", func(t *testing.T) {
		d := on(t, durable(3), "a", "b", "c", "d").lay(nil, "a", "b", "c").is(model.Draining, "a").
			says(func(r *model.ReplicaReport) { r.CaughtUp = []string{"b", "c"} }, map[string]uint64{"b": 2, "c": 1}).
			want(Fence, "a", "b", "c")
		a := d.Assignment
		if a.Successor != "c" || a.State != model.ShardDraining || a.MoveReason != model.MoveDrain || *a.MoveStartedAtMillis == 0 ||
			a.Generation != 8 || *d.Expected != 7 {
			t.Errorf("%+v", a)
		}
	})
	t.Run("another node, to be copied to", func(t *testing.T) {
		d := on(t, durable(1), "a", "b").lay(nil, "a").is(model.Draining, "a").want(Stage, "a", "b")
		if a := d.Assignment; a.Successor != "b" || a.State != model.Assigning || a.MoveReason != model.MoveDrain {
			t.Errorf("%+v", a)
		}
	})
	t.Run("no node", func(t *testing.T) {
		x := on(t, durable(1), "a", "b").lay(nil, "a").is(model.Draining, "a")
		x.node("b").Spec.Capacity.Weight = 0
		x.want(Waiting, string(NoDestination))
	})
	t.Run("no slot", func(t *testing.T) {
		x := on(t, durable(1), "a", "b").lay(nil, "a").is(model.Draining, "a")
		x.in.Policy.MoveLimit = 0
		x.want(Waiting, string(MoveLimit))
	})
	t.Run("a region that was closed", func(t *testing.T) {
		s := durable(1)
		s.Region = "home"
		x := on(t, s, "a", "b").lay(nil, "a")
		x.node("a").Spec.Region = "away"
		x.want(Stage, "a", "b")
		x.node("b").Spec.Region = "away"
		x.want(Waiting, string(NoNodeInRegion))
	})
}

func TestStagedMove(t *testing.T) {
	x := on(t, durable(1), "a", "b").lay(to("b"), "a", "b")
	x.want(Keep)
	x.says(nil, map[string]uint64{"b": 3}).want(Keep)
	x.says(func(r *model.ReplicaReport) { r.Generation-- }, map[string]uint64{"b": 0}).want(Keep)
	x.says(func(r *model.ReplicaReport) { r.LeaderOffset = nil }, map[string]uint64{"b": 2}).want(Keep)
	x.says(func(r *model.ReplicaReport) { r.LeaderOffset = nil }, map[string]uint64{"b": 0}).want(Fence, "a", "b")
	d := x.says(nil, map[string]uint64{"b": 2}).want(Fence, "a", "b")
	if d.Assignment.Successor != "b" || d.Assignment.MoveReason != model.MoveBalance {
		t.Errorf("fenced: %+v", d.Assignment)
	}
	x.in.Paused = true
	x.want(Fence, "a", "b")
	x.is(model.Draining, "b").want(Abandon, "a")
	// A destination that was a follower stays one.
	on(t, durable(2), "a", "b").lay(to("b"), "a", "b").is(model.Down, "b").want(Abandon, "a", "b")
	// As does one in a set that was short.
	on(t, durable(3), "a", "b").lay(to("b"), "a", "b").is(model.Down, "b").want(Abandon, "a", "b")
}

func TestCutOver(t *testing.T) {
	t.Run("only when drained", func(t *testing.T) {
		x := on(t, durable(1), "a", "b").lay(fencedTo("b"), "a", "b").says(nil, map[string]uint64{"b": 0})
		x.want(Keep)
		x.drainedBy(map[string]uint64{"b": 0}).want(CutOver, "b")
	})
	t.Run("the old leader stays where copies are wanted", func(t *testing.T) {
		on(t, durable(2), "a", "b", "c").lay(fencedTo("c"), "a", "b", "c").
			drainedBy(map[string]uint64{"b": 0, "c": 0}).want(CutOver, "c", "a")
	})
	t.Run("the old leader goes if it leaves and others have all", func(t *testing.T) {
		on(t, durable(2), "a", "b", "c").lay(fencedTo("c"), "a", "b", "c").is(model.Draining, "a").
			drainedBy(map[string]uint64{"b": 0, "c": 0}).want(CutOver, "c", "b")
	})
	t.Run("the old leader stays for now if others are behind", func(t *testing.T) {
		on(t, durable(2), "a", "b", "c").lay(fencedTo("c"), "a", "b", "c").is(model.Draining, "a").
			drainedBy(map[string]uint64{"b": 3, "c": 0}).want(CutOver, "c", "a")
	})
	t.Run("a follower that restarts keeps its seat", func(t *testing.T) {
		on(t, durable(2), "a", "b", "c").lay(fencedTo("b"), "a", "b").is(model.Draining, "a").
			drainedBy(map[string]uint64{"b": 0}).want(CutOver, "b", "a")
		on(t, durable(3), "a", "b", "c").lay(fencedTo("b"), "a", "b", "c").is(model.Down, "c").
			drainedBy(map[string]uint64{"b": 0}).want(CutOver, "b", "a", "c")
	})
	t.Run("a short set is filled up, but not on a quorum shard", func(t *testing.T) {
		on(t, durable(3), "a", "b", "c").lay(fencedTo("b"), "a", "b").
			drainedBy(map[string]uint64{"b": 0}).want(CutOver, "b", "a", "c")
		on(t, quorum(3), "a", "b", "c").lay(fencedTo("b"), "a", "b").
			drainedBy(map[string]uint64{"b": 0}).want(CutOver, "b", "a")
	})
	t.Run("a destination that was lost is passed over, and goes", func(t *testing.T) {
		for _, s := range []model.Stream{durable(3), quorum(3)} {
			on(t, s, "a", "b", "c", "d").lay(fencedTo("d"), "a", "b", "c", "d").is(model.Draining, "a", "d").
				drainedBy(map[string]uint64{"b": 0, "d": 0}).want(CutOver, "b", "a", "c")
		}
	})
	t.Run("nobody: the old leader takes it back", func(t *testing.T) {
		d := on(t, durable(2), "a", "b", "c").lay(fencedTo("c"), "a", "b", "c").is(model.Down, "c").
			drainedBy(map[string]uint64{"b": 1}).want(Retake, "a", "b")
		if d.Assignment.State != model.Assigning || d.Assignment.MoveStartedAtMillis != nil {
			t.Errorf("%+v", d.Assignment)
		}
	})
}

func TestFencedMoveThatLosesItsDestination(t *testing.T) {
	x := on(t, durable(2), "a", "b", "c").lay(fencedTo("c"), "a", "b", "c").is(model.Down, "c")
	d := x.want(Abandon, "a", "b")
	if a := d.Assignment; a.State != model.ShardDraining || a.Successor != "" {
		t.Errorf("the fence was lifted: %+v", a)
	}
	x.carryOut([]Decision{d})
	x.want(Keep)
	x.drainedBy(map[string]uint64{"b": 0}).want(CutOver, "b", "a")
	x.is(model.Down, "b").want(Retake, "a", "b")
	on(t, durable(1), "a", "b").lay(fencedTo("b"), "a", "b").is(model.Down, "b").want(Retake, "a")
}

func TestReseat(t *testing.T) {
	x := on(t, durable(2), "a", "b", "c").lay(nil, "a", "b").is(model.Draining, "b")
	d := x.want(Reseat, "a", "b", "c")
	if a := d.Assignment; a.Joining != "c" || a.MoveReason != model.MoveReplace || a.MoveStartedAtMillis == nil {
		t.Errorf("%+v", a)
	}
	x.carryOut([]Decision{d})
	x.says(nil, map[string]uint64{"b": 0, "c": 3}).want(Keep)
	x.says(nil, map[string]uint64{"b": 0, "c": 2}).want(Seat, "a", "c")
	x.is(model.Left, "b").want(Seat, "a", "c")
	x.is(model.Live, "b").want(Abandon, "a", "b") // it is not needed any more
	x.is(model.Draining, "b").is(model.Down, "c").want(Abandon, "a", "b")
	x.is(model.Live, "c")
	clear(x.report)
	x.in.Policy.MoveTimeoutMillis = 1000
	x.in.NowMillis += 1001
	if d := x.want(TimedOut, "a", "b"); d.Assignment.MoveStartedAtMillis == nil {
		t.Error("the start is forgotten")
	}
	on(t, durable(2), "a", "b").lay(nil, "a", "b").is(model.Draining, "b").want(Waiting, string(NoDestination))
	// A follower that is down keeps its seat.
	on(t, durable(2), "a", "b", "c").lay(nil, "a", "b").is(model.Down, "b").want(Keep)
}

// A seat is taken on a quorum shard when the newcomer has what a majority of the
// set before it has, however small its lag.
func TestSeatOnAQuorumShard(t *testing.T) {
	x := on(t, quorum(3), "a", "b", "c", "d").lay(joining("d", model.MoveReplace), "a", "b", "c", "d").is(model.Draining, "c")
	x.says(nil, map[string]uint64{"b": 0, "c": 2, "d": 1}).want(Keep) // a and b may have acknowledged it
	x.says(nil, map[string]uint64{"b": 1, "c": 2, "d": 1}).want(Seat, "a", "b", "d")
	x.says(nil, map[string]uint64{"c": 2, "d": 1}).want(Keep) // b may have all
	x.says(nil, map[string]uint64{"b": 1, "c": 1}).want(Keep) // d was not reached
	on(t, durable(3), "a", "b", "c", "d").lay(joining("d", model.MoveReplace), "a", "b", "c", "d").is(model.Draining, "c").
		says(nil, map[string]uint64{"b": 0, "c": 2, "d": 1}).want(Seat, "a", "b", "d")
}

func TestRestore(t *testing.T) {
	x := on(t, durable(2), "a", "b", "c").lay(nil, "a", "b").is(model.Down, "b")
	x.in.NowMillis += restoreAfter - 1
	x.says(nil, nil).want(Keep)
	x.in.NowMillis++
	d := x.want(Reseat, "a", "b", "c")
	if d.Assignment.MoveReason != model.MoveRestore || d.Assignment.Joining != "c" {
		t.Errorf("%+v", d.Assignment)
	}
	x.says(func(r *model.ReplicaReport) { r.Generation-- }, nil).want(Waiting, string(NoReport))
	x.says(nil, nil)
	x.in.Policy.RestoreAfterMillis = 0
	x.want(Keep)
	x.in.Policy.RestoreAfterMillis = restoreAfter
	x.carryOut([]Decision{d})
	x.says(nil, map[string]uint64{"c": 0}).want(Seat, "a", "c")
	// A set that is short grows by one at a time, and nobody leaves it.
	y := on(t, durable(3), "a", "b", "c").lay(nil, "a")
	if d := y.decision(); d.Action != Reseat || len(d.Assignment.Replicas) != 1 {
		t.Errorf("%+v", d)
	}
	y.lay(joining("b", model.MoveRestore), "a", "b").says(nil, map[string]uint64{"b": 0}).want(Seat, "a", "b")
	clear(y.report)
	y.lay(nil, "a", "b").want(Waiting, string(NoReport))
	y.says(nil, map[string]uint64{"b": 9999}).want(Reseat, "a", "b", "c")
	on(t, durable(3), "a", "b").lay(nil, "a", "b").says(nil, nil).want(Keep)
}
