package placement

import "slices"

// score fills in the scores of all nodes for a shard.
func (p *pass) score(s *shard) {
	if p.scored == s {
		return
	}
	p.scored = s
	h := s.own.hash(s.number)
	for i := range p.nodes {
		p.scores[i] = score(h, p.nodes[i].hash)
	}
}

// best is the node with the best score for a shard among those that pass, or
// nobody. Nodes are in the order of their ids, so of equal scores the greater
// id wins.
func (p *pass) best(s *shard, passes func(i int) bool) int {
	p.score(s)
	found := nobody
	for i := range p.nodes {
		if (found == nobody || p.scores[i] >= p.scores[found]) && passes(i) {
			found = i
		}
	}
	return found
}

// chooseLeader finds a node for a shard that has none (control plane 7.4): under
// the role cap and the leader share, or under the role cap, or at all.
func (p *pass) chooseLeader(s *shard) int {
	for round := range 3 {
		i := p.best(s, func(i int) bool {
			n := &p.nodes[i]
			return p.suits(s.own, i) && p.room(s, i) &&
				(round > 1 || n.load < p.roleCap) && (round > 0 || n.leads < p.share)
		})
		if i != nobody {
			return i
		}
	}
	return nobody
}

// chooseFollowers adds followers to a set, whose first member leads, until it
// has as many members as the shard has copies or nobody is left. Each prefers a
// zone that the set does not have yet.
func (p *pass) chooseFollowers(s *shard, set []int) []int {
	for len(set) < s.own.factor {
		i := p.chooseFollower(s, set, set)
		if i == nobody {
			break
		}
		set = append(set, i)
	}
	return set
}

// chooseFollower finds one more node for a set, if it can in a zone that none of
// beside is in.
func (p *pass) chooseFollower(s *shard, set, beside []int) int {
	takes := func(i int) bool { return p.suits(s.own, i) && p.room(s, i) && !slices.Contains(set, i) }
	if p.zoned {
		if i := p.best(s, func(i int) bool { return takes(i) && !p.sharesZone(i, beside) }); i != nobody {
			return i
		}
	}
	return p.best(s, takes)
}

// sharesZone says whether a node would fail together with another. A node
// without a zone is one by itself.
func (p *pass) sharesZone(i int, set []int) bool {
	zone := p.nodes[i].Spec.Zone
	return zone != "" && slices.ContainsFunc(set, func(j int) bool {
		return j != nobody && j != i && p.nodes[j].Spec.Zone == zone
	})
}

// spread counts what has to fail until no copy of a set is left.
func (p *pass) spread(set []int) int {
	n := 0
	for at, i := range set {
		if i != nobody && !p.sharesZone(i, set[:at]) {
			n++
		}
	}
	return n
}

// retain puts the nodes that hold a copy behind a leader: those that are live
// first, then those that leave; of these, copies that are level before others.
// Then, for what is durable, come those that are down: replacing them would turn
// each restart into a full copy. Within each class, zones that are not there yet
// come first. No more are kept than the shard has copies.
func (p *pass) retain(s *shard, leader int, holders []int, level func(i int) bool) []int {
	set := append(make([]int, 0, s.own.factor), leader)
	for class := range classes {
		if class == classDown && !s.own.durable {
			break
		}
		for _, fresh := range []bool{true, false} {
			for _, i := range holders {
				if len(set) == s.own.factor {
					return set
				}
				if i != nobody && !slices.Contains(set, i) && p.class(s.own, i, level) == class &&
					(!fresh || !p.sharesZone(i, set)) {
					set = append(set, i)
				}
			}
		}
	}
	return set
}

// The classes of nodes that hold a copy, the best to keep first.
const (
	classLive = iota
	classLeaving
	classLiveBehind
	classLeavingBehind
	classDown
	classes
)

func (p *pass) class(o *owner, i int, level func(i int) bool) int {
	class := classLeaving
	switch {
	case !p.nodes[i].serving:
		return classDown
	case p.live(o, i):
		class = classLive
	}
	if !level(i) {
		class += classLiveBehind
	}
	return class
}

// all takes every copy for level, where no report tells them apart.
func all(int) bool { return true }
