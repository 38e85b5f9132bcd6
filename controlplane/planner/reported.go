package planner

import (
	"context"
	"sync"

	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/controlplane/placement"
)

// maxSeen bounds how many shards are remembered; beyond it all are forgotten
// and looked up again.
const maxSeen = 65_536

// seen remembers where a copy of a shard goes at a generation, so that the
// reports of a generation ask the store once.
type seen struct {
	mu     sync.Mutex
	shards map[model.ShardKey]destination
}

type destination struct {
	generation uint64
	node       string // "" for no copy in flight
}

// Reported is told which reports were stored, and wakes the planner if a move
// waited for one of them: the leader of a fenced move has drained, or the node
// that a copy goes to is level (control plane 6.5).
func (p *Planner) Reported(ctx context.Context, accepted []model.ReplicaReport) {
	for i := range accepted {
		r := &accepted[i]
		if r.Drained || p.arrived(ctx, r) {
			p.Wake()
			return
		}
	}
}

// arrived says whether the destination of a copy is level in a report.
func (p *Planner) arrived(ctx context.Context, r *model.ReplicaReport) bool {
	if len(r.CaughtUp) == 0 && len(r.Offsets) == 0 {
		return false
	}
	to, known := p.seen.at(r)
	if !known {
		a, err := p.o.Store.Assignment(ctx, r.ShardKey)
		if err != nil || a.Generation != r.Generation {
			return false // the next tick sees what this misses
		}
		to, _ = placement.Moving(&a)
		p.seen.put(r.ShardKey, destination{a.Generation, to})
	}
	return to != "" && placement.Level(r, to, p.o.Policy.FenceLag)
}

func (s *seen) at(r *model.ReplicaReport) (node string, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.shards[r.ShardKey]
	return d.node, ok && d.generation == r.Generation
}

func (s *seen) put(k model.ShardKey, d destination) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.shards == nil || len(s.shards) >= maxSeen {
		s.shards = make(map[model.ShardKey]destination)
	}
	s.shards[k] = d
}
