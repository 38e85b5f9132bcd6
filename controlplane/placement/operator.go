package placement

import (
	"fmt"
	"slices"

	"github.com/felixlog/felix/controlplane/model"
)

// The codes of refusals to operators (control plane 8.6, 8.7).
const (
	UnknownShard       Code = "unknown_shard"
	UnknownNode        Code = "unknown_node"
	DestinationNotLive Code = "destination_not_live"
	RegionNotAllowed   Code = "region_not_allowed"
	AlreadyLeader      Code = "already_leader"
	AlreadyMoving      Code = "already_moving"
	LeaderUnavailable  Code = "leader_unavailable"
	AtCapacity         Code = "at_capacity"
	NotMoving          Code = "not_moving"
	NotLost            Code = "not_lost" // of an abandon; ours
)

// A Refusal says why an operator's call would change nothing.
type Refusal struct {
	Code    Code
	Message string
}

func refuse(code Code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// StartMove decides on an operator's move (control plane 8.7). A pause does not
// hold it back, and neither do zones or shares.
func StartMove(in Input, key model.ShardKey, destination string) (Decision, *Refusal) {
	p := newPass(&in)
	s := p.find(key)
	if s == nil || s.cur == nil {
		return Decision{}, unknownShard(key)
	}
	to := p.index(destination)
	switch {
	case to == nobody:
		return Decision{}, refuse(UnknownNode, "no broker is registered as %q", destination)
	case !p.nodes[to].live:
		return Decision{}, refuse(DestinationNotLive, "%s is %s: only a live broker takes a shard", destination,
			p.nodes[to].Status.Lifecycle)
	case !s.own.may(to):
		return Decision{}, refuse(RegionNotAllowed, "%s is in region %q: the stream keeps to %q and what is bridged from it",
			destination, p.nodes[to].Spec.Region, s.own.region)
	case to == s.leader:
		return Decision{}, refuse(AlreadyLeader, "%s leads %s already", destination, key)
	case moving(s.cur):
		return Decision{}, refuse(AlreadyMoving, "%s is moving already: wait, or cancel that first", key)
	case !p.serving(s.leader):
		return Decision{}, refuse(LeaderUnavailable, "the leader %s does not serve: there is nobody to copy from", s.cur.Leader)
	case !p.room(s, to):
		return Decision{}, refuse(AtCapacity, "%s holds as many shards as its max_shards lets it", destination)
	case !p.free(s.leader, to):
		return Decision{}, refuse(MoveLimit, "as many copies are under way as the move limit lets there be: wait, or raise it")
	}
	p.startMove(s, to, model.MoveOperator)
	return s.out, nil
}

// CancelMove decides on the end of a move, replacement or restoration (control
// plane 8.6). Its start is kept, so that others come first.
func CancelMove(in Input, key model.ShardKey) (Decision, *Refusal) {
	p := newPass(&in)
	s := p.find(key)
	switch {
	case s == nil || s.cur == nil:
		return Decision{}, unknownShard(key)
	case !moving(s.cur):
		return Decision{}, refuse(NotMoving, "%s is not moving", key)
	case s.cur.State != model.ShardDraining && s.cur.Joining != "":
		p.unjoin(s, Cancel, true, "an operator ended it")
	case s.cur.State != model.ShardDraining:
		a := p.next(s)
		s.dropSuccessor(a)
		a.MoveReason = ""
		p.step(s, Cancel, a, "an operator ended it")
	case !p.serving(s.leader):
		return Decision{}, refuse(LeaderUnavailable, "the leader %s does not serve: it cannot take the shard back", s.cur.Leader)
	default:
		p.retake(s, true, "an operator ended it")
	}
	return s.out, nil
}

// GiveUp decides on an abandon: giving up the log of a shard that nobody can serve. The
// live follower that is furthest ahead by any report leads, and what it lacks is
// lost; without one a node begins with an empty log. reports are those of any
// age. A shard that is served, or that a plan would place by itself, is not
// lost.
func GiveUp(in Input, reports []model.ReplicaReport, key model.ShardKey) (Decision, *Refusal) {
	p := newPass(&in)
	s := p.find(key)
	if s == nil || s.cur == nil {
		return Decision{}, unknownShard(key)
	}
	if p.serving(s.leader) {
		return Decision{}, refuse(NotLost, "%s is served by %s: there is nothing to give up", key, s.cur.Leader)
	}
	p.decide(s)
	if s.out.Action != Unplaceable {
		return Decision{}, refuse(NotLost, "%s can be placed without losing anything: that happens by itself", key)
	}
	s.out = Decision{Key: key, Action: Keep, Before: s.cur}
	p.release(s)
	leader := p.furthest(s, reports)
	if leader == nobody {
		leader = p.chooseLeader(s)
	}
	if leader == nobody {
		_, reason := p.whyNobody(s)
		return Decision{}, refuse(DestinationNotLive, "%s", reason)
	}
	live := slices.DeleteFunc(slices.Clone(s.followers), func(i int) bool { return !p.serving(i) })
	p.place(s, p.chooseFollowers(s, p.retain(s, leader, live, all)), Discard)
	s.out.Reason = "an operator gave up what the copies that are gone hold"
	return s.out, nil
}

// furthest is the live follower with the highest offset ever reported, nobody
// where none is live.
func (p *pass) furthest(s *shard, reports []model.ReplicaReport) int {
	offsets := map[string]uint64{}
	for i := range reports {
		if reports[i].ShardKey == s.out.Key {
			offsets = reports[i].Offsets
		}
	}
	p.score(s)
	found := nobody
	for _, i := range s.followers {
		if !p.live(s.own, i) {
			continue
		}
		if found == nobody || offsets[p.nodes[i].NodeID] > offsets[p.nodes[found].NodeID] ||
			offsets[p.nodes[i].NodeID] == offsets[p.nodes[found].NodeID] && p.scores[i] > p.scores[found] {
			found = i
		}
	}
	return found
}

// find is the shard of a key, nil where there is none.
func (p *pass) find(key model.ShardKey) *shard {
	at, ok := slices.BinarySearchFunc(p.shards, key, func(s shard, k model.ShardKey) int { return s.key().Compare(k) })
	if !ok {
		return nil
	}
	s := &p.shards[at]
	s.out = Decision{Key: key, Action: Keep, Before: s.cur}
	return s
}

func unknownShard(key model.ShardKey) *Refusal {
	return refuse(UnknownShard, "there is no shard %s that is placed", key)
}
