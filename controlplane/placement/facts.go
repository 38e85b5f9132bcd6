package placement

import (
	"slices"

	"github.com/felixlog/felix/controlplane/model"
)

// addAssignments gives each shard its assignment. Those of nobody's shard are
// left out.
func (p *pass) addAssignments() {
	sorted := byKey(p.in.Assignments, func(a *model.Assignment) *model.ShardKey { return &a.ShardKey })
	roles := 0
	join(p.shards, sorted, func(a *model.Assignment) *model.ShardKey { return &a.ShardKey },
		func(s *shard, a *model.Assignment) {
			s.cur = a
			roles += len(a.Replicas)
		})
	arena := make([]int, 0, roles)
	for i := range p.shards {
		s := &p.shards[i]
		if s.cur == nil {
			continue
		}
		s.leader = p.index(s.cur.Leader)
		from := len(arena)
		for _, id := range s.cur.Replicas {
			arena = append(arena, p.index(id))
		}
		s.followers = arena[from:len(arena):len(arena)]
	}
}

// addReports gives each shard its report, of whatever generation.
func (p *pass) addReports() {
	key := func(r *model.ReplicaReport) *model.ShardKey { return &r.ShardKey }
	join(p.shards, byKey(p.in.Reports, key), key, func(s *shard, r *model.ReplicaReport) { s.report = r })
}

// count finds what the nodes hold and what is in flight.
func (p *pass) count() {
	for i := range p.shards {
		s := &p.shards[i]
		if s.cur == nil {
			continue
		}
		p.restoreLoad(s)
		p.takeRole(s.leader)
		for _, f := range s.followers {
			p.takeRole(f)
		}
		if moving(s.cur) {
			p.occupy(s.leader, p.index(receiver(s.cur)))
		}
	}
}

// moving says whether a copy of the shard holds a slot.
func moving(a *model.Assignment) bool {
	return a.State == model.ShardDraining || a.Successor != "" || a.Joining != ""
}

// receiver is the node that a copy goes to, "" where it was lost.
func receiver(a *model.Assignment) string {
	if a.Successor != "" {
		return a.Successor
	}
	return a.Joining
}

// willLead is the leader once a move is done.
func (p *pass) willLead(a *model.Assignment) int {
	if i := p.index(a.Successor); i != nobody && p.nodes[i].live {
		return i
	}
	return p.index(a.Leader)
}

func (p *pass) index(id string) int {
	if id == "" {
		return nobody
	}
	if i, ok := p.byID[id]; ok {
		return i
	}
	return nobody
}

// room says whether a node has a role for a shard: one it has already, or one
// more. What a pass frees is free for the next, as its writes may fail.
func (p *pass) room(s *shard, i int) bool {
	m := p.nodes[i].Spec.Capacity.MaxShards
	return m == nil || p.nodes[i].taken < int(*m) || s.has(i)
}

// has says whether a node holds a copy of the shard.
func (s *shard) has(i int) bool { return i == s.leader || slices.Contains(s.followers, i) }

func (p *pass) takeRole(i int) {
	if i != nobody {
		p.nodes[i].taken++
	}
}

func (p *pass) hold(i, roles int) {
	if i != nobody {
		p.nodes[i].load += roles
	}
}

func (p *pass) lead(i, shards int) {
	if i != nobody {
		p.nodes[i].leads += shards
	}
}

// occupy takes a slot of the cluster, and of both nodes.
func (p *pass) occupy(from, to int) {
	p.inFlight++
	for _, i := range []int{from, to} {
		if i != nobody {
			p.nodes[i].copies++
		}
	}
}

// byKey points at the items in the order of their keys. Stores list them so.
func byKey[T any](items []T, key func(*T) *model.ShardKey) []*T {
	sorted, inOrder := make([]*T, len(items)), true
	for i := range items {
		sorted[i] = &items[i]
		inOrder = inOrder && (i == 0 || key(&items[i-1]).Compare(*key(&items[i])) <= 0)
	}
	if !inOrder {
		slices.SortFunc(sorted, func(a, b *T) int { return key(a).Compare(*key(b)) })
	}
	return sorted
}

// join walks shards and items, both in the order of their keys, and calls for
// each pair that belongs together.
func join[T any](shards []shard, items []*T, key func(*T) *model.ShardKey, pair func(*shard, *T)) {
	i := 0
	for j := range shards {
		k := shards[j].key()
		for i < len(items) {
			c := key(items[i]).Compare(k)
			if c == 0 {
				pair(&shards[j], items[i])
			}
			if c > 0 {
				break
			}
			i++
		}
	}
}
