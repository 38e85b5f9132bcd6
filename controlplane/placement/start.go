package placement

import (
	"fmt"
	"slices"

	"github.com/felixlog/felix/controlplane/model"
)

// start begins what a settled shard needs: its leader leaves, a follower
// leaves, a copy is lacking, or the leader leads more than its share (control
// plane 8.3).
func (p *pass) start(s *shard) {
	switch {
	case p.leaving(s.own, s.leader):
		p.drain(s)
	case p.reseat(s), p.restore(s), p.balance(s):
	case slices.ContainsFunc(s.followers, func(i int) bool { return p.leaving(s.own, i) }):
		s.wait(NoDestination, "a follower leaves, but no other live broker has room for its copy: add one")
	}
}

// drain moves a shard off a leader that leaves.
func (p *pass) drain(s *shard) {
	to := p.drainTo(s)
	if to == nobody {
		code, reason := p.whyNobody(s)
		if code != NoNodeInRegion {
			code, reason = NoDestination, fmt.Sprintf("no other live broker has room for what %s leads: add one", s.cur.Leader)
		}
		s.wait(code, reason)
		return
	}
	p.begin(s, to, model.MoveDrain)
}

// drainTo is the level follower that is furthest ahead, if it leads less than
// its share, or else the best node that does, or the best node with room. Of
// these, one that narrows the spread over zones comes last.
func (p *pass) drainTo(s *shard) int {
	to := p.promotable(s, s.exact(), func(id string) bool {
		i := p.index(id)
		return !p.suits(s.own, i) || p.nodes[i].leads >= p.share || !p.level(s, id)
	})
	if to != nobody {
		return to
	}
	takes := func(i int) bool {
		return i != s.leader && p.suits(s.own, i) && p.room(s, i)
	}
	for _, wide := range p.widths() {
		to = p.best(s, func(i int) bool {
			return takes(i) && p.nodes[i].leads < p.share && (!wide || !p.narrows(s, i))
		})
		if to == nobody {
			to = p.best(s, func(i int) bool { return takes(i) && (!wide || !p.narrows(s, i)) })
		}
		if to != nobody {
			return to
		}
	}
	return nobody
}

// widths are the rounds of a choice: with regard to zones, where there are any,
// and then without.
func (p *pass) widths() []bool {
	if p.zoned {
		return []bool{true, false}
	}
	return []bool{false}
}

// narrows says whether fewer things would have to fail together to lose all
// copies once the shard is led by a node.
func (p *pass) narrows(s *shard, to int) bool {
	now := append([]int{s.leader}, s.followers...)
	return p.spread(p.retain(s, to, now, all)) < p.spread(now)
}

// reseat gives the seat of a follower that leaves to another node, if one can
// take it, and says whether the shard is dealt with.
func (p *pass) reseat(s *shard) bool {
	at := slices.IndexFunc(s.followers, func(i int) bool { return p.leaving(s.own, i) })
	if at < 0 {
		return false
	}
	leaves := s.followers[at]
	to := p.beside(s, leaves)
	if to == nobody {
		return false
	}
	p.join(s, to, model.MoveReplace, fmt.Sprintf("the follower %s leaves", p.nodes[leaves].NodeID))
	return true
}

// restore begins a copy that the shard lacks, one at a time, and says whether
// the shard is dealt with. It waits for a report of this generation: until
// then a follower that is there may still be copying.
func (p *pass) restore(s *shard) bool {
	if !p.lacking(s) {
		return false
	}
	gone, reason := nobody, "the shard has fewer copies than it should have"
	if len(s.followers) >= s.own.factor-1 {
		at := slices.IndexFunc(s.followers, p.longGone)
		gone, reason = s.followers[at], fmt.Sprintf("the follower %s has been gone for too long", s.cur.Replicas[at])
	}
	to := p.beside(s, gone)
	if to == nobody {
		return false
	}
	if len(s.followers) > 0 && s.exact() == nil {
		s.wait(NoReport, "a copy is lacking: waiting for the leader to report on those that are there")
		return true
	}
	p.join(s, to, model.MoveRestore, reason)
	return true
}

// lacking says whether a shard has fewer copies than it should have, or one on a
// node that has been gone for too long.
func (p *pass) lacking(s *shard) bool {
	if p.in.Policy.RestoreAfterMillis == 0 {
		return false
	}
	return len(s.followers) < s.own.factor-1 || slices.ContainsFunc(s.followers, p.longGone)
}

// longGone says whether a node has not been heard of for so long that its copies
// are made again elsewhere.
func (p *pass) longGone(i int) bool {
	if i == nobody {
		return true
	}
	n := &p.nodes[i]
	return !n.serving && p.in.NowMillis >= n.Status.LastHeartbeatAtMillis+p.in.Policy.RestoreAfterMillis
}

// beside finds a new follower for a set that one member leaves.
func (p *pass) beside(s *shard, leaves int) int {
	set := append([]int{s.leader}, s.followers...)
	return p.chooseFollower(s, set, without(set, leaves))
}

// balance moves a shard from a leader over its share to a node under its own.
// Both have to be so, which is why this ends. It says whether there is such a
// node.
func (p *pass) balance(s *shard) bool {
	if p.nodes[s.leader].leads <= p.share || p.eligible == 0 {
		return false
	}
	to := p.best(s, func(i int) bool {
		return i != s.leader && p.suits(s.own, i) && p.nodes[i].leads < p.share &&
			p.room(s, i) && (!p.zoned || !p.narrows(s, i))
	})
	if to == nobody {
		return false
	}
	if p.begin(s, to, model.MoveBalance); s.out.Assignment == nil {
		// It waits, and what it would change is taken as changed, so that no more
		// shards wait than there are too many.
		p.lead(s.leader, -1)
		p.lead(to, 1)
	}
	return true
}

// begin starts a move to a node if there is a slot for it.
func (p *pass) begin(s *shard, to int, reason model.MoveReason) {
	if !p.slot(s, to) {
		return
	}
	p.startMove(s, to, reason)
}

// startMove fences at once if the destination is a level follower, and else
// stages it.
func (p *pass) startMove(s *shard, to int, reason model.MoveReason) {
	a := p.next(s)
	now := p.in.NowMillis
	a.Successor, a.MoveStartedAtMillis, a.MoveReason = p.nodes[to].NodeID, &now, reason
	why := fmt.Sprintf("%s moves from %s to %s", s.out.Key, a.Leader, a.Successor)
	p.occupy(s.leader, to)
	if slices.Contains(a.Replicas, a.Successor) {
		if p.level(s, a.Successor) {
			a.State = model.ShardDraining
			p.step(s, Fence, a, why)
			return
		}
	} else {
		a.Replicas = append(a.Replicas, a.Successor)
	}
	p.step(s, Stage, a, why)
}

// join starts the copy of a new follower if there is a slot for it.
func (p *pass) join(s *shard, to int, reason model.MoveReason, why string) {
	if !p.slot(s, to) {
		return
	}
	p.occupy(s.leader, to)
	a := p.next(s)
	now := p.in.NowMillis
	a.Joining, a.MoveStartedAtMillis, a.MoveReason = p.nodes[to].NodeID, &now, reason
	a.Replicas = append(a.Replicas, a.Joining)
	p.step(s, Reseat, a, fmt.Sprintf("%s: %s is copied in", why, a.Joining))
}

// slot says whether a copy to a node may begin; else the shard waits.
func (p *pass) slot(s *shard, to int) bool {
	if p.in.Paused {
		s.wait(Paused, pausedReason)
		return false
	}
	if !p.free(s.leader, to) {
		s.wait(MoveLimit, "as many copies are under way as the move limit lets there be")
		return false
	}
	return true
}

// free says whether the cluster and both nodes have a slot for a copy.
func (p *pass) free(from, to int) bool {
	limit := p.in.Policy
	return p.inFlight < limit.MoveLimit &&
		(limit.PerNode == 0 || p.nodes[from].copies < limit.PerNode && p.nodes[to].copies < limit.PerNode)
}
