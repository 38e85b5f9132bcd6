package placement

import "slices"

// Plan decides about every shard, one decision each, in the order of their keys.
// A slot that a decision frees is free for the next plan: a write that fails
// must not let one copy too many begin.
func Plan(in Input) []Decision {
	decisions, _ := PlanLacking(in)
	return decisions
}

// PlanLacking is Plan and Lacking at the price of one.
func PlanLacking(in Input) ([]Decision, []Copies) {
	p := newPass(&in)
	lacking := p.copiesLacking()
	p.decideAll()
	out := make([]Decision, len(p.shards))
	for i := range p.shards {
		out[i] = p.shards[i].out
	}
	return out, lacking
}

// The ranks of shards: what is decided first has the choice of slots and nodes
// (control plane 7.6, 8.4).
const (
	rankUrgent  = iota // has no leader that serves, or is moving already: needs no slot
	rankLeader         // its leader leaves
	rankDrain          // a follower leaves
	rankRestore        // lacks a copy
	rankOther
	rankAgain // added where an earlier move was timed out or cancelled
)

func (p *pass) decideAll() {
	ranks := make([]uint8, len(p.shards))
	for i := range p.shards {
		s := &p.shards[i]
		s.out = Decision{Key: s.key(), Action: Keep, Before: s.cur}
		ranks[i] = uint8(p.rank(s))
	}
	for rank := range uint8(2 * rankAgain) {
		for i := range p.shards {
			if ranks[i] == rank {
				p.decide(&p.shards[i])
			}
		}
	}
}

func (p *pass) rank(s *shard) int {
	if s.cur == nil || !p.serving(s.leader) || moving(s.cur) {
		return rankUrgent
	}
	rank := rankOther
	switch {
	case p.leaving(s.own, s.leader):
		rank = rankLeader
	case slices.ContainsFunc(s.followers, func(i int) bool { return p.leaving(s.own, i) }):
		rank = rankDrain
	case p.lacking(s):
		rank = rankRestore
	}
	if s.cur.MoveStartedAtMillis != nil {
		rank += rankAgain
	}
	return rank
}

// decide follows the order of control plane 7.6. A leader that is live is never
// replaced outright, nor is one that leaves and has a log to hand over.
func (p *pass) decide(s *shard) {
	switch {
	case s.cur == nil:
		p.first(s)
	case p.serving(s.leader) && (s.own.durable || p.live(s.own, s.leader)):
		p.move(s)
	default:
		p.failover(s)
	}
}
