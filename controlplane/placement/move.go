package placement

import (
	"fmt"
	"slices"

	"github.com/felixlog/felix/controlplane/model"
)

// move takes a shard whose leader serves to its next step, if one is due
// (control plane 8).
func (p *pass) move(s *shard) {
	switch {
	case s.cur.State == model.ShardDraining:
		p.fenced(s)
	case s.cur.Successor != "":
		p.staged(s)
	case s.cur.Joining != "":
		p.joining(s)
	default:
		p.start(s)
	}
}

// staged goes on with a move whose destination copies.
func (p *pass) staged(s *shard) {
	switch to := s.cur.Successor; {
	case !p.live(s.own, p.index(to)):
		a := p.next(s)
		s.dropSuccessor(a)
		a.MoveStartedAtMillis, a.MoveReason = nil, ""
		p.step(s, Abandon, a, fmt.Sprintf("the destination %s is not live any more", to))
	case p.level(s, to):
		a := p.next(s)
		a.State = model.ShardDraining
		p.step(s, Fence, a, fmt.Sprintf("the destination %s is level", to))
	case p.overdue(s):
		a := p.next(s)
		s.dropSuccessor(a)
		a.MoveReason = ""
		p.step(s, TimedOut, a, fmt.Sprintf("the destination %s was not level in time", to))
	}
}

// fenced goes on with a move whose leader takes no writes. It never times out.
func (p *pass) fenced(s *shard) {
	to := p.index(s.cur.Successor)
	if r := s.exact(); r != nil && r.Drained {
		p.cutOver(s, r)
		return
	}
	if to != nobody && p.live(s.own, to) {
		return
	}
	others := slices.ContainsFunc(s.followers, func(i int) bool { return i != to && p.live(s.own, i) })
	switch {
	case !others:
		p.retake(s, false, noTaker)
	case s.cur.Successor != "":
		a := p.next(s)
		s.dropSuccessor(a)
		p.step(s, Abandon, a, fmt.Sprintf("the destination %s is not live any more: another follower takes the shard",
			s.cur.Successor))
	}
}

// cutOver makes the destination the leader, or, where it was lost, the follower
// that is furthest ahead, or else the old leader again (control plane 8.2).
func (p *pass) cutOver(s *shard, r *model.ReplicaReport) {
	to := p.index(s.cur.Successor)
	if !p.live(s.own, to) || !slices.Contains(r.CaughtUp, s.cur.Successor) {
		to = p.promotable(s, r, nil)
	}
	if to == nobody {
		p.retake(s, false, noTaker)
		return
	}
	// The old leader comes first: it has everything. A destination that was passed
	// over goes, and a quorum shard is not topped up here, but by a restoration:
	// two members of its set that change at once could outvote those who know what
	// was acknowledged.
	holders := append([]int{s.leader}, s.followers...)
	if lost := p.index(s.cur.Successor); lost != to && s.staged() {
		holders = without(holders, lost)
	}
	set := p.retain(s, to, holders, func(i int) bool {
		return i == s.leader || Level(r, p.nodes[i].NodeID, p.in.Policy.FenceLag)
	})
	p.release(s)
	if !s.own.quorum {
		set = p.chooseFollowers(s, set)
	}
	p.place(s, set, CutOver)
	s.out.Reason = fmt.Sprintf("%s has handed everything over to %s", s.cur.Leader, s.out.Assignment.Leader)
}

const noTaker = "no follower is left that could take the shard"

// retake lets the old leader of a fenced move take writes again.
func (p *pass) retake(s *shard, keepStart bool, reason string) {
	a := p.next(s)
	s.dropSuccessor(a)
	a.State, a.MoveReason = model.Assigning, ""
	if !keepStart {
		a.MoveStartedAtMillis = nil
	}
	p.step(s, Retake, a, reason)
}

// joining goes on with a follower that is copied in.
func (p *pass) joining(s *shard) {
	id := s.cur.Joining
	departing, needed := p.departing(s)
	switch {
	case !p.live(s.own, p.index(id)):
		p.unjoin(s, Abandon, false, fmt.Sprintf("the new follower %s is not live any more", id))
	case needed && departing == "":
		p.unjoin(s, Abandon, false, fmt.Sprintf("every other follower is live again: %s is not needed", id))
	case p.seatable(s):
		a := p.next(s)
		a.Replicas = slices.DeleteFunc(a.Replicas, func(r string) bool { return r == departing })
		a.Joining, a.MoveStartedAtMillis, a.MoveReason = "", nil, ""
		p.step(s, Seat, a, fmt.Sprintf("the new follower %s is level", id))
	case p.overdue(s):
		p.unjoin(s, TimedOut, true, fmt.Sprintf("the new follower %s was not level in time", id))
	}
}

// unjoin drops the follower that is copied in.
func (p *pass) unjoin(s *shard, action Action, keepStart bool, reason string) {
	a := p.next(s)
	a.Replicas = slices.DeleteFunc(a.Replicas, func(r string) bool { return r == s.cur.Joining })
	a.Joining, a.MoveReason = "", ""
	if !keepStart {
		a.MoveStartedAtMillis = nil
	}
	p.step(s, action, a, reason)
}

// departing is the follower that leaves when the joining one has its seat. One
// has to if the set would have too many members; "" is then that none should.
func (p *pass) departing(s *shard) (id string, needed bool) {
	if len(s.cur.Replicas) <= s.own.factor-1 {
		return "", false
	}
	wanted := []int{classLeaving, classDown}
	if s.cur.MoveReason == model.MoveRestore {
		wanted = []int{classDown, classLeaving}
	}
	for _, class := range wanted {
		found, oldest := "", uint64(0)
		for at, i := range s.followers {
			if s.cur.Replicas[at] == s.cur.Joining || i == nobody || p.class(s.own, i, all) != class {
				continue
			}
			if seen := p.nodes[i].Status.LastHeartbeatAtMillis; found == "" || class == classDown && seen < oldest {
				found, oldest = s.cur.Replicas[at], seen
			}
		}
		if found != "" {
			return found, true
		}
	}
	return "", true
}

// overdue says whether a copy took longer than it may.
func (p *pass) overdue(s *shard) bool {
	limit, since := p.in.Policy.MoveTimeoutMillis, s.cur.MoveStartedAtMillis
	return limit > 0 && since != nil && p.in.NowMillis > *since && p.in.NowMillis-*since > limit
}

// next is a copy of the shard's assignment to be changed. It names no node that
// is not there.
func (p *pass) next(s *shard) *model.Assignment {
	a := *s.cur
	a.Replicas = make([]string, 0, len(s.cur.Replicas)+1)
	for at, i := range s.followers {
		if i != nobody {
			a.Replicas = append(a.Replicas, s.cur.Replicas[at])
		}
	}
	if p.index(a.Successor) == nobody {
		a.Successor = ""
	}
	if p.index(a.Joining) == nobody {
		a.Joining = ""
	}
	return &a
}

// dropSuccessor takes the destination out, also of the followers if it was put
// there for the move.
func (s *shard) dropSuccessor(a *model.Assignment) {
	if s.staged() {
		a.Replicas = slices.DeleteFunc(a.Replicas, func(r string) bool { return r == s.cur.Successor })
	}
	a.Successor = ""
}

// step decides on a step of a move.
func (p *pass) step(s *shard, action Action, a *model.Assignment, reason string) {
	p.release(s)
	p.decided(s, action, a)
	s.out.Reason = reason
}
