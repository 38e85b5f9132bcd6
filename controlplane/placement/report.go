package placement

import (
	"slices"

	"github.com/felixlog/felix/controlplane/model"
)

// exact is the report of a shard at exactly the generation of its assignment,
// nil where there is none. Steps of moves rest on nothing else.
func (s *shard) exact() *model.ReplicaReport {
	if s.report == nil || s.report.Generation != s.cur.Generation {
		return nil
	}
	return s.report
}

// level says whether a node's copy is close enough to the leader's for a step.
// Without an exact report it is not.
func (p *pass) level(s *shard, id string) bool {
	r := s.exact()
	return r != nil && Level(r, id, p.in.Policy.FenceLag)
}

// Level says whether a report shows a node's copy within so many records of the
// leader's (control plane 8.1). A report without the leader's offset has to call
// it caught up.
func Level(r *model.ReplicaReport, id string, lag uint64) bool {
	if r.LeaderOffset == nil {
		return slices.Contains(r.CaughtUp, id)
	}
	behind, known := Lag(r, id)
	return known && behind <= lag
}

// Lag is how many records a node's copy was behind the leader's at a report.
func Lag(r *model.ReplicaReport, id string) (records uint64, known bool) {
	offset, ok := r.Offsets[id]
	if !ok || r.LeaderOffset == nil {
		return 0, false
	}
	return *r.LeaderOffset - min(offset, *r.LeaderOffset), true
}

// seatable says whether a joining follower may take its seat. On a quorum shard
// it has to hold what a majority of the set before it holds: what was
// acknowledged may be on no more than that, and one of those leaves. A member
// that the report does not name may have all of it.
func (p *pass) seatable(s *shard) bool {
	id := s.cur.Joining
	r := s.exact()
	if !s.own.quorum || s.own.factor == 1 || r == nil {
		return p.level(s, id)
	}
	offset, known := r.Offsets[id]
	if !known || r.LeaderOffset == nil {
		return slices.Contains(r.CaughtUp, id)
	}
	held := []uint64{*r.LeaderOffset}
	for _, other := range s.cur.Replicas {
		if other == id {
			continue
		}
		h, ok := r.Offsets[other]
		if !ok {
			h = *r.LeaderOffset
		}
		held = append(held, h)
	}
	slices.Sort(held)
	// A majority of n holds what the member in the middle holds, counted from
	// the one that is furthest ahead.
	return p.level(s, id) && offset >= held[len(held)-1-len(held)/2]
}

// promotable is the follower that is furthest ahead among those that are live
// and that a report calls caught up, or nobody (control plane 7.4). Of equals
// the better score wins.
func (p *pass) promotable(s *shard, r *model.ReplicaReport, but func(id string) bool) int {
	if r == nil {
		return nobody
	}
	p.score(s)
	found, ahead := nobody, uint64(0)
	for at, i := range s.followers {
		id := s.cur.Replicas[at]
		if !p.live(s.own, i) || !slices.Contains(r.CaughtUp, id) || but != nil && but(id) {
			continue
		}
		offset := r.Offsets[id]
		switch {
		case found == nobody, offset > ahead, offset == ahead && p.scores[i] > p.scores[found],
			offset == ahead && p.scores[i] == p.scores[found] && i > found:
			found, ahead = i, offset
		}
	}
	return found
}
