package placement

import (
	"fmt"
	"slices"

	"github.com/felixlog/felix/controlplane/model"
)

// first places a new shard.
func (p *pass) first(s *shard) {
	if p.settling {
		if n := p.suitable(s.own); n < s.own.factor {
			s.wait(Settling, "the cluster is young: waiting for as many brokers as the shard has copies")
			return
		}
	}
	leader := p.chooseLeader(s)
	if leader == nobody {
		s.out.Action = Unplaceable
		s.out.Code, s.out.Reason = p.whyNobody(s)
		return
	}
	p.place(s, p.chooseFollowers(s, append(make([]int, 0, s.own.factor), leader)), Place)
}

// failover finds another leader for a shard whose leader does not serve, or that
// is in memory and whose leader leaves.
func (p *pass) failover(s *shard) {
	leaves := p.serving(s.leader)
	if leaves && p.in.Paused {
		s.wait(Paused, pausedReason)
		return
	}
	p.release(s)
	if leader := p.successorOf(s); leader != nobody {
		p.promote(s, leader)
		return
	}
	if s.own.durable {
		if code, reason := p.lost(s); code != "" {
			p.restoreLoad(s)
			s.out.Action, s.out.Code, s.out.Reason = Unplaceable, code, reason
			return
		}
	}
	leader := p.chooseLeader(s)
	if leader != nobody {
		p.place(s, p.chooseFollowers(s, append(make([]int, 0, s.own.factor), leader)), Place)
		return
	}
	p.restoreLoad(s)
	code, reason := p.whyNobody(s)
	if leaves {
		s.wait(NoDestination, "the leader leaves, but "+reason)
		return
	}
	s.out.Action, s.out.Code, s.out.Reason = Unplaceable, code, reason
}

// successorOf is the follower that a fresh report lets lead, or nobody. What was
// acknowledged by a quorum is looked for on the set that voted, so a node that
// was still being copied to is not promoted on such a shard.
func (p *pass) successorOf(s *shard) int {
	if !s.own.quorum || s.own.factor == 1 {
		return p.promotable(s, s.report, nil)
	}
	return p.promotable(s, s.report, func(id string) bool {
		return id == s.cur.Joining || id == s.cur.Successor && s.staged()
	})
}

// staged says whether the successor was added to the followers for a move: the
// set is then larger than it should be. In a set that was short it cannot be
// told, and does no harm as a follower.
func (s *shard) staged() bool {
	return s.cur.Successor != "" && len(s.cur.Replicas) > s.own.factor-1
}

// promote makes a follower the leader. The set of what is durable stays as it
// was, the old leader in it: on a quorum shard because a majority of exactly
// this set knows what was acknowledged (replication 9.2), on others because a
// leader that comes back needs no copy. A shard in memory gets followers
// afresh.
func (p *pass) promote(s *shard, leader int) {
	if !s.own.durable {
		p.place(s, p.chooseFollowers(s, append(make([]int, 0, s.own.factor), leader)), Place)
		return
	}
	holders := append([]int{}, s.followers...)
	joining := nobody
	if s.own.quorum && s.own.factor > 1 {
		if s.staged() {
			holders = without(holders, p.index(s.cur.Successor))
		}
		if s.cur.Joining != "" {
			// Beside an odd set no acknowledgement could have needed the newcomer;
			// beside an even one it and the old leader may have been a majority.
			joining = p.index(s.cur.Joining)
			if old := len(s.followers); old%2 == 1 {
				holders, joining = without(holders, joining), nobody
			}
		}
		set := append([]int{leader}, without(append(holders, s.leader), leader)...)
		set = without(set, nobody)
		p.placeJoining(s, set, joining)
		return
	}
	set := p.retain(s, leader, append(holders, s.leader), all)
	p.place(s, p.chooseFollowers(s, set), Place)
}

// lost says why a durable shard without a leader may not be placed: what it
// holds is on nodes that do not serve, or that may not have all of it.
func (p *pass) lost(s *shard) (Code, string) {
	switch {
	case len(s.cur.Replicas) > 0:
		return NoCaughtUpReplica, fmt.Sprintf("the leader %s does not serve, and no live follower is known to have all "+
			"that it acknowledged: start %s again, or give up what only it holds with an abandon", s.cur.Leader, s.cur.Leader)
	case s.leader != nobody:
		return OnlyCopy, fmt.Sprintf("the only copy is on %s, which does not serve: start it again, or give the copy "+
			"up with an abandon", s.cur.Leader)
	}
	return "", ""
}

// whyNobody says why no node can lead a shard.
func (p *pass) whyNobody(s *shard) (Code, string) {
	switch {
	case p.eligible == 0:
		return NoLiveNode, "no registered broker is live: start one with a node id (a broker without one serves every shard by itself)"
	case p.suitable(s.own) == 0:
		return NoNodeInRegion, fmt.Sprintf("no broker is live in region %q or in one that is bridged from it: start one there, "+
			"or add a bridge", s.own.region)
	}
	return AllAtMaxShards, "every live broker holds as many shards as its max_shards lets it: add a broker, or raise it"
}

// suitable counts the nodes that may be given shards of an owner.
func (p *pass) suitable(o *owner) int {
	if o.allowed == nil {
		return p.eligible
	}
	n := 0
	for i := range p.nodes {
		if p.suits(o, i) {
			n++
		}
	}
	return n
}

// release takes the shard's roles off its nodes.
func (p *pass) release(s *shard) {
	if s.cur == nil {
		return
	}
	p.hold(s.leader, -1)
	for _, f := range s.followers {
		p.hold(f, -1)
	}
	p.lead(p.willLead(s.cur), -1)
}

// restoreLoad undoes release.
func (p *pass) restoreLoad(s *shard) {
	p.hold(s.leader, 1)
	for _, f := range s.followers {
		p.hold(f, 1)
	}
	p.lead(p.willLead(s.cur), 1)
}

// place decides on an assignment afresh: the first of the set leads. The
// shard's roles are released.
func (p *pass) place(s *shard, set []int, action Action) {
	a := p.assignment(s, set)
	p.decided(s, action, a)
}

// placeJoining is place of a set that a node is still being copied into.
func (p *pass) placeJoining(s *shard, set []int, joining int) {
	a := p.assignment(s, set)
	if joining != nobody {
		a.Joining = p.nodes[joining].NodeID
		a.MoveStartedAtMillis, a.MoveReason = s.cur.MoveStartedAtMillis, s.cur.MoveReason
	}
	p.decided(s, Place, a)
}

func (p *pass) assignment(s *shard, set []int) *model.Assignment {
	a := &model.Assignment{
		ShardKey: s.out.Key, Leader: p.nodes[set[0]].NodeID, Replicas: make([]string, len(set)-1),
		State: model.Assigning, Routing: s.own.routing,
	}
	if s.cur != nil && s.cur.State == model.Active {
		a.State = model.Active // nothing but draining may follow
	}
	for at, i := range set[1:] {
		a.Replicas[at] = p.nodes[i].NodeID
	}
	return a
}

// decided records an assignment to be written, and loads its nodes. The roles of
// the one before are released.
func (p *pass) decided(s *shard, action Action, a *model.Assignment) {
	if s.cur != nil {
		expected := s.cur.Generation
		s.out.Expected, a.Generation = &expected, expected+1
	}
	s.out.Action, s.out.Assignment = action, a
	p.give(s, p.index(a.Leader))
	for _, id := range a.Replicas {
		p.give(s, p.index(id))
	}
	p.lead(p.willLead(a), 1)
}

// give loads a node with a role of a shard.
func (p *pass) give(s *shard, i int) {
	p.hold(i, 1)
	if !s.has(i) {
		p.takeRole(i)
	}
}

const pausedReason = "moves are paused: resume them to go on"

func (s *shard) wait(code Code, reason string) {
	s.out.Action, s.out.Code, s.out.Reason = Waiting, code, reason
}

// without is the set less one member.
func without(set []int, i int) []int {
	return slices.DeleteFunc(slices.Clone(set), func(j int) bool { return j == i })
}
