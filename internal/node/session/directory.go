package session

import (
	"github.com/felixlog/felix/broker/placed"
	"github.com/felixlog/felix/wire"
)

// A Directory knows which brokers there are and which shards they serve. Its
// methods are called while requests are served: they must not block. A node
// without one stands alone and owns all.
type Directory interface {
	// Owner of a shard as assigned now; false where no broker is.
	Owner(kind wire.ShardKind, tenant, namespace, name string, shard uint32) (Owner, bool)
	// Brokers are those that serve clients, for topology (wire 15): draining
	// ones are left out.
	Brokers() []BrokerAddr
}

// An Owner is the broker a shard is assigned to.
type Owner struct {
	NodeID string
	// Addr is its client listener as ip:port, "" where that is not known.
	Addr string
	// Generation is that of the assignment.
	Generation uint64
	// Local says that it is this node.
	Local bool
}

// A BrokerAddr is a broker that serves clients.
type BrokerAddr struct {
	NodeID, Addr string
}

// owner is who serves a shard; false where nobody does or the node stands
// alone.
func (s *Server) owner(kind wire.ShardKind, tenant, namespace, name string, shard uint32) (Owner, bool) {
	if s.cfg.Directory == nil {
		return Owner{}, false
	}
	return s.cfg.Directory.Owner(kind, tenant, namespace, name, shard)
}

// elsewhere is the other broker that serves a shard which this one does not.
func (s *Server) elsewhere(shard placed.Shard) (Owner, bool) {
	kind := wire.KindStream
	if shard.Kind == wire.KindCache.String() {
		kind = wire.KindCache
	}
	o, known := s.owner(kind, shard.Tenant, shard.Namespace, shard.Name, shard.Index)
	return o, known && !o.Local
}

// notLeader names the owner to a client (wire 7.2).
func (o Owner) notLeader() *wire.NotLeader {
	return &wire.NotLeader{NodeID: o.NodeID, Addr: optText(o.Addr), Generation: o.Generation}
}

func optText(s string) wire.Optional[string] {
	return wire.Optional[string]{Value: s, Set: s != ""}
}
