package placement

import (
	"cmp"
	"slices"

	"github.com/felixlog/felix/controlplane/model"
)

// nobody is the index of a node that is not there.
const nobody = -1

// A node is a broker as one pass sees it. Nodes are sorted by id, and named by
// their index.
type node struct {
	*model.Node
	hash     uint64
	live     bool // its lifecycle is live
	serving  bool // live or draining
	eligible bool // live, and not taken out by its weight
	load     int  // roles it holds
	taken    int  // roles it holds or is given; none that this pass takes from it is free yet
	leads    int  // shards it leads once every move in flight is done
	copies   int  // in flight, that it ships or receives
}

// An owner is a stream or a cache.
type owner struct {
	tenant, namespace, name string
	names                   hasher // over the three
	cache                   bool
	shards                  uint32
	factor                  int // copies, the leader's included
	durable, quorum         bool
	region                  string
	allowed                 []bool // nodes that may hold a copy, nil for all
	routing                 model.Routing
}

// compare orders owners by name, a cache before the stream of the same name.
func (o *owner) compare(b *owner) int {
	if c := o.compareName(b); c != 0 {
		return c
	}
	switch {
	case o.cache == b.cache:
		return 0
	case o.cache:
		return -1
	}
	return 1
}

func (o *owner) compareName(b *owner) int {
	if c := cmp.Compare(o.tenant, b.tenant); c != 0 {
		return c
	}
	if c := cmp.Compare(o.namespace, b.namespace); c != 0 {
		return c
	}
	return cmp.Compare(o.name, b.name)
}

// A shard is one shard of an owner, with what is known of it.
type shard struct {
	own       *owner
	number    uint32
	cur       *model.Assignment // nil for a new one
	report    *model.ReplicaReport
	leader    int   // of cur
	followers []int // of cur
	out       Decision
}

func (s *shard) key() model.ShardKey {
	kind := model.StreamShard
	if s.own.cache {
		kind = model.CacheShard
	}
	return model.ShardKey{
		TenantID: s.own.tenant, Namespace: s.own.namespace, Stream: s.own.name, Shard: s.number, Kind: kind,
	}
}

// A pass is the state of one plan. Loads and leads change with each decision,
// so that the next one knows of it.
type pass struct {
	in       *Input
	nodes    []node
	byID     map[string]int
	eligible int // nodes
	shards   []shard
	roleCap  int // roles a node should hold at most
	share    int // shards a node should lead at most
	inFlight int // copies that hold a slot, with those that this pass starts
	zoned    bool
	settling bool
	scores   []uint64 // of the shard scored last, by node
	scored   *shard
}

func newPass(in *Input) *pass {
	p := &pass{in: in}
	p.addNodes()
	owners := p.addOwners()
	p.addShards(owners)
	p.addAssignments()
	p.addReports()
	p.count()
	return p
}

func (p *pass) addNodes() {
	p.nodes = make([]node, len(p.in.Nodes))
	p.byID = make(map[string]int, len(p.in.Nodes))
	p.scores = make([]uint64, len(p.in.Nodes))
	for i := range p.in.Nodes {
		n := &p.in.Nodes[i]
		l := n.Status.Lifecycle
		p.nodes[i] = node{
			Node: n, hash: hashNode(n.NodeID), live: l == model.Live, serving: l.Serving(),
			eligible: l == model.Live && n.Spec.Capacity.Weight > 0,
		}
	}
	slices.SortFunc(p.nodes, func(a, b node) int { return cmp.Compare(a.NodeID, b.NodeID) })
	first := ^uint64(0)
	for i := range p.nodes {
		n := &p.nodes[i]
		p.byID[n.NodeID] = i
		if n.eligible {
			p.eligible++
		}
		p.zoned = p.zoned || n.Spec.Zone != ""
		first = min(first, n.Status.RegisteredAtMillis)
	}
	p.settling = len(p.nodes) > 0 && p.in.NowMillis < first+p.in.Policy.SettleMillis
}

// addOwners lists streams and caches by name, a cache before the stream of the
// same name.
func (p *pass) addOwners() []owner {
	regions := p.regions()
	owners := make([]owner, 0, len(p.in.Streams)+len(p.in.Caches))
	for i := range p.in.Streams {
		s := &p.in.Streams[i]
		owners = append(owners, owner{
			tenant: s.TenantID, namespace: s.Namespace, name: s.Stream,
			shards: s.Shards, factor: int(max(s.ReplicationFactor, 1)),
			durable: s.Durable, quorum: s.Consistency == model.Quorum,
			region: s.Region, allowed: regions.of(s.Region), routing: s.Routing,
		})
	}
	for i := range p.in.Caches {
		c := &p.in.Caches[i]
		owners = append(owners, owner{
			tenant: c.TenantID, namespace: c.Namespace, name: c.Cache, cache: true,
			shards: max(c.Shards, 1), factor: int(max(c.ReplicationFactor, 1)),
			durable: true, quorum: c.Consistency == model.Quorum,
		})
	}
	slices.SortFunc(owners, func(a, b owner) int { return a.compare(&b) })
	for i := range owners {
		o := &owners[i]
		o.names = hasher(fnvBasis).field(o.tenant).field(o.namespace).field(o.name)
	}
	return owners
}

// addShards lists the shards in the order of their keys: those of a stream and
// a cache of one name alternate.
func (p *pass) addShards(owners []owner) {
	total, roles := 0, 0
	for i := range owners {
		total += int(owners[i].shards)
		roles += int(owners[i].shards) * owners[i].factor
	}
	p.shards = make([]shard, 0, total)
	for i := 0; i < len(owners); {
		same := i + 1
		for same < len(owners) && owners[same].compareName(&owners[i]) == 0 {
			same++
		}
		most := uint32(0)
		for j := i; j < same; j++ {
			most = max(most, owners[j].shards)
		}
		for n := range most {
			for j := i; j < same; j++ {
				if n < owners[j].shards {
					p.shards = append(p.shards, shard{own: &owners[j], number: n, leader: nobody})
				}
			}
		}
		i = same
	}
	if p.eligible > 0 {
		p.roleCap = max(1, (roles+p.eligible-1)/p.eligible)
		p.share = max(1, (total+p.eligible-1)/p.eligible)
	}
}
