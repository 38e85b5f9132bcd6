package placement

import (
	"slices"

	"github.com/felixlog/felix/controlplane/model"
)

// A Move is one copy that holds a slot.
type Move struct {
	Assignment  model.Assignment
	Destination string // "" where it was lost
	Replacing   string // the follower that leaves for the destination
	Step        string // staged, fenced, replacing or restoring
	// LagRecords, CaughtUp and Drained are of a report at exactly the
	// assignment's generation.
	LagRecords *uint64
	CaughtUp   bool
	Drained    bool
}

// Moving says whether a copy of the shard holds a slot, and where it goes; the
// destination is "" where it was lost.
func Moving(a *model.Assignment) (destination string, ok bool) { return receiver(a), moving(a) }

// Moves lists what is in flight, in the order of keys.
func Moves(in Input) []Move {
	p := newPass(&in)
	var out []Move
	for i := range p.shards {
		s := &p.shards[i]
		if s.cur == nil || !moving(s.cur) {
			continue
		}
		m := Move{Assignment: *s.cur, Destination: receiver(s.cur)}
		m.Assignment.Replicas = slices.Clone(s.cur.Replicas)
		switch {
		case s.cur.State == model.ShardDraining:
			m.Step = "fenced"
		case s.cur.Successor != "":
			m.Step = "staged"
		default:
			m.Step = "replacing"
			if s.cur.MoveReason == model.MoveRestore {
				m.Step = "restoring"
			}
			m.Replacing, _ = p.departing(s)
		}
		if r := s.exact(); r != nil {
			m.Drained = r.Drained && s.cur.State == model.ShardDraining
			m.CaughtUp = slices.Contains(r.CaughtUp, m.Destination)
			if lag, known := Lag(r, m.Destination); known {
				m.LagRecords = &lag
			}
		}
		out = append(out, m)
	}
	return out
}

// Copies are the copies of one shard.
type Copies struct {
	Key     model.ShardKey
	Leader  string // "" for a shard that was never placed
	Desired int    // the leader included
	Current int    // on brokers that serve, without one that is being copied in
	// Unavailable is a shard that nobody serves; Restoring one that a follower is
	// being copied into.
	Unavailable, Restoring bool
}

// Lacking lists the shards without all their copies on brokers that serve, or
// without a leader that does, in the order of keys.
func Lacking(in Input) []Copies { return newPass(&in).copiesLacking() }

func (p *pass) copiesLacking() []Copies {
	var out []Copies
	for i := range p.shards {
		s := &p.shards[i]
		c := Copies{Desired: s.own.factor, Unavailable: true}
		if s.cur != nil {
			c.Leader, c.Unavailable, c.Restoring = s.cur.Leader, !p.serving(s.leader), s.cur.Joining != ""
			if !c.Unavailable {
				c.Current++
			}
			for at, f := range s.followers {
				id := s.cur.Replicas[at]
				if p.serving(f) && id != s.cur.Joining && !(s.staged() && id == s.cur.Successor) {
					c.Current++
				}
			}
		}
		if c.Current < c.Desired || c.Unavailable {
			c.Key = s.key()
			out = append(out, c)
		}
	}
	return out
}
