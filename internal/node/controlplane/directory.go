package controlplane

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/felixlog/felix/controlplane/apiclient"
	"github.com/felixlog/felix/controlplane/model"
	"github.com/felixlog/felix/internal/node/session"
	"github.com/felixlog/felix/wire"
)

// A directory knows who serves what, and where. It implements
// session.Directory and hears of routes from the mirror.
type directory struct {
	self string

	// strange is signalled when a shard goes to a broker whose address is not
	// known.
	strange chan struct{}

	mu     sync.RWMutex
	routes map[model.ShardKey]route
	nodes  map[string]peer

	unknown chan struct{} // has room for one: a leader's address is not known
}

type route struct {
	leader     string
	generation uint64
}

// A peer is another broker, or this one, as the control plane lists it.
type peer struct {
	NodeID     string          `json:"node_id"`
	ClientAddr string          `json:"client_addr,omitempty"`
	Lifecycle  model.Lifecycle `json:"lifecycle"`
	Eligible   bool            `json:"eligible"`
	Routable   bool            `json:"routable"`
}

func newDirectory(self string) *directory {
	return &directory{self: self, strange: make(chan struct{}, 1), routes: make(map[model.ShardKey]route), nodes: make(map[string]peer), unknown: make(chan struct{}, 1)}
}

// SetRoute implements mirror.Routes.
func (d *directory) SetRoute(a model.Assignment) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.routes[a.ShardKey] = route{a.Leader, a.Generation}
	if _, known := d.nodes[a.Leader]; known {
		return
	}
	select {
	case d.strange <- struct{}{}:
	default:
	}
}

// DropRoute implements mirror.Routes.
func (d *directory) DropRoute(k model.ShardKey) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.routes, k)
}

// Owner implements session.Directory. The address is given for a draining owner
// too: it serves until the shard is elsewhere.
func (d *directory) Owner(kind wire.ShardKind, tenant, namespace, name string, shard uint32) (session.Owner, bool) {
	k := model.ShardKey{TenantID: tenant, Namespace: namespace, Stream: name, Shard: shard, Kind: model.StreamShard}
	if kind == wire.KindCache {
		k.Kind = model.CacheShard
	}
	d.mu.RLock()
	defer d.mu.RUnlock()
	r, found := d.routes[k]
	if !found {
		return session.Owner{}, false
	}
	return session.Owner{
		NodeID: r.leader, Addr: d.nodes[r.leader].ClientAddr, Generation: r.generation, Local: r.leader == d.self,
	}, true
}

// Brokers implements session.Directory.
func (d *directory) Brokers() []session.BrokerAddr {
	d.mu.RLock()
	defer d.mu.RUnlock()
	all := make([]session.BrokerAddr, 0, len(d.nodes))
	for _, p := range d.nodes {
		if p.Lifecycle == model.Live && p.Routable && p.ClientAddr != "" {
			all = append(all, session.BrokerAddr{NodeID: p.NodeID, Addr: p.ClientAddr})
		}
	}
	slices.SortFunc(all, func(a, b session.BrokerAddr) int { return strings.Compare(a.NodeID, b.NodeID) })
	return all
}

// listed takes the nodes that the control plane lists.
func (d *directory) listed(views []apiclient.NodeView) (changed bool) {
	nodes := make(map[string]peer, len(views))
	for _, v := range views {
		nodes[v.Node.NodeID] = peer{
			NodeID: v.Node.NodeID, ClientAddr: v.Node.Spec.ClientAddr, Lifecycle: v.Node.Status.Lifecycle,
			Eligible: v.Placement.Eligible, Routable: v.Placement.Routable,
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	changed = !maps.Equal(d.nodes, nodes)
	d.nodes = nodes
	return changed
}

// others says whether another broker may be given shards.
func (d *directory) others() bool {
	d.mu.RLock()
	defer d.mu.RUnlock()
	for id, p := range d.nodes {
		if id != d.self && p.Eligible {
			return true
		}
	}
	return false
}

// peers are the nodes, for a later run.
func (d *directory) peers() []peer {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return slices.SortedFunc(maps.Values(d.nodes), func(a, b peer) int { return strings.Compare(a.NodeID, b.NodeID) })
}

// remembered takes the nodes of an earlier run.
func (d *directory) remembered(peers []peer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range peers {
		d.nodes[p.NodeID] = p
	}
}
