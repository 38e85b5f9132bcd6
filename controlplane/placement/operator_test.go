package placement

import (
	"slices"
	"testing"

	"github.com/felixlog/felix/controlplane/model"
)

func (s *scene) refuses(r *Refusal, code Code) {
	s.t.Helper()
	if r == nil || r.Code != code || r.Message == "" {
		s.t.Errorf("refused with %+v, want %s", r, code)
	}
}

func (s *scene) start(destination string) (Decision, *Refusal) {
	s.plan()
	return StartMove(s.in, s.key(0), destination)
}

// The refusals of control plane 8.7: where several apply, the first one is told.
func TestRefusalsOfAMove(t *testing.T) {
	s := durable(1)
	s.Region = "home"
	x := on(t, s, "a", "b", "c")
	try := func(destination string, code Code) {
		t.Helper()
		_, r := x.start(destination)
		x.refuses(r, code)
	}
	try("b", UnknownShard)
	x.lay(to("b"), "a", "b").is(model.Down, "a").is(model.Draining, "b")
	x.in.Policy.MoveLimit = 0
	one := uint32(1)
	c := x.node("c")
	c.Spec.Region, c.Spec.Capacity.MaxShards = "away", &one
	x.addCache("full", 1, 1)
	k := model.ShardKey{TenantID: "t", Namespace: "ns", Stream: "full", Kind: model.CacheShard}
	x.write(k, &model.Assignment{ShardKey: k, Leader: "c", Replicas: []string{}, State: model.Assigning}, Place)

	try("nobody", UnknownNode)
	try("b", DestinationNotLive)
	try("a", DestinationNotLive)
	try("c", RegionNotAllowed)
	x.in.Bridges = []model.Bridge{{Source: "home", Destination: "away"}}
	try("c", AlreadyMoving)
	x.is(model.Live, "a")
	try("a", AlreadyLeader)
	x.is(model.Down, "a").lay(nil, "a")
	try("c", LeaderUnavailable)
	x.is(model.Live, "a")
	try("c", AtCapacity)
	two := uint32(2)
	c.Spec.Capacity.MaxShards = &two
	try("c", MoveLimit)
	x.in.Policy.MoveLimit = 1
	x.in.Paused = true
	d, r := x.start("c")
	if r != nil || d.Action != Stage || d.Assignment.MoveReason != model.MoveOperator || d.Assignment.Successor != "c" {
		t.Errorf("%+v, %+v", d, r)
	}
	if _, r := StartMove(x.in, model.ShardKey{Stream: "s"}, "c"); r == nil || r.Code != UnknownShard {
		t.Errorf("a shard that is not there: %+v", r)
	}
}

// A follower needs no room, and if it is level no copy.
func TestMoveToAFollower(t *testing.T) {
	x := on(t, durable(2), "a", "b").lay(nil, "a", "b")
	one := uint32(1)
	x.node("b").Spec.Capacity.MaxShards = &one
	d, r := x.start("b")
	if r != nil || d.Action != Stage || !slices.Equal(d.Assignment.Replicas, []string{"b"}) {
		t.Errorf("behind: %+v, %+v", d, r)
	}
	x.says(nil, map[string]uint64{"b": 1})
	d, r = x.start("b")
	if r != nil || d.Action != Fence || d.Assignment.State != model.ShardDraining {
		t.Errorf("level: %+v, %+v", d, r)
	}
}

func TestCancel(t *testing.T) {
	cancel := func(x *scene) (Decision, *Refusal) {
		x.plan()
		return CancelMove(x.in, x.key(0))
	}
	began := uint64(99)
	since := func(change func(*model.Assignment)) func(*model.Assignment) {
		return func(a *model.Assignment) { change(a); a.MoveStartedAtMillis = &began }
	}
	for name, v := range map[string]struct {
		change func(*model.Assignment)
		set    []string
		action Action
		want   []string
	}{
		"a staged move":               {to("c"), []string{"a", "b", "c"}, Cancel, []string{"a", "b"}},
		"a staged move to a follower": {to("b"), []string{"a", "b"}, Cancel, []string{"a", "b"}},
		"a replacement":               {joining("c", model.MoveReplace), []string{"a", "b", "c"}, Cancel, []string{"a", "b"}},
		"a fenced move":               {fencedTo("c"), []string{"a", "b", "c"}, Retake, []string{"a", "b"}},
		"a fenced move that lost its destination": {
			func(a *model.Assignment) { a.State = model.ShardDraining }, []string{"a", "b"}, Retake, []string{"a", "b"},
		},
	} {
		x := on(t, durable(2), "a", "b", "c").lay(since(v.change), v.set...)
		d, r := cancel(x)
		if r != nil {
			t.Errorf("%s: %+v", name, r)
			continue
		}
		a := d.Assignment
		if d.Action != v.action || !slices.Equal(members(a), v.want) || a.Successor != "" || a.Joining != "" ||
			a.State != model.Assigning || a.MoveReason != "" || *a.MoveStartedAtMillis != began {
			t.Errorf("%s: %s %+v", name, d.Action, a)
		}
		x.check(d)
	}
	x := on(t, durable(2), "a", "b", "c")
	_, r := cancel(x)
	x.refuses(r, UnknownShard)
	_, r = cancel(x.lay(nil, "a", "b"))
	x.refuses(r, NotMoving)
	_, r = cancel(x.lay(fencedTo("c"), "a", "b", "c").is(model.Down, "a"))
	x.refuses(r, LeaderUnavailable)
}

func TestGiveUp(t *testing.T) {
	giveUp := func(x *scene) (Decision, *Refusal) {
		x.plan()
		var all []model.ReplicaReport
		for _, r := range x.report {
			all = append(all, *r)
		}
		return GiveUp(x.in, all, x.key(0))
	}
	x := on(t, durable(3), "a", "b", "c", "d")
	_, r := giveUp(x)
	x.refuses(r, UnknownShard)
	_, r = giveUp(x.lay(nil, "a", "b", "c"))
	x.refuses(r, NotLost) // it is served
	x.is(model.Down, "a").says(nil, map[string]uint64{"b": 0, "c": 1})
	_, r = giveUp(x)
	x.refuses(r, NotLost) // b is promoted by itself
	x.in.NowMillis += reportMillis + 1
	d, r := giveUp(x)
	if r != nil || d.Action != Discard || !slices.Equal(members(d.Assignment), []string{"b", "c", "d"}) {
		t.Errorf("the follower with the most: %+v, %+v", d, r)
	}
	x.is(model.Down, "b", "c")
	d, r = giveUp(x)
	if r != nil || d.Action != Discard || !slices.Equal(members(d.Assignment), []string{"d"}) {
		t.Errorf("an empty log: %+v, %+v", d, r)
	}
	x.is(model.Down, "d")
	_, r = giveUp(x)
	x.refuses(r, DestinationNotLive)
}
