package wire

// NotLeader sends a request to the shard's owner, to a peer with
// [FeatureRedirect] (wire 7.2, 15).
type NotLeader struct {
	NodeID     string
	Addr       Optional[string] // host:port of the owner's client listener
	Generation uint64           // assignment epoch
}

// MessageType implements [Message].
func (*NotLeader) MessageType() string { return "not_leader" }

func (m *NotLeader) appendFields(o object) object {
	o = o.text("node_id", m.NodeID)
	o = o.optText("addr", m.Addr)
	return o.u64("generation", m.Generation)
}

func (m *NotLeader) readFields(f *fields) {
	f.text("node_id", &m.NodeID)
	f.optText("addr", &m.Addr)
	f.u64("generation", &m.Generation)
}

// Topology asks for the brokers of a cluster (wire 7.2). It has no request id.
type Topology struct{}

// MessageType implements [Message].
func (*Topology) MessageType() string { return "topology" }

func (*Topology) appendFields(o object) object { return o }

func (*Topology) readFields(*fields) {}

// TopologyView lists brokers that can serve; it may be empty (wire 7.2).
type TopologyView struct {
	Brokers []TopologyBroker
}

// MessageType implements [Message].
func (*TopologyView) MessageType() string { return "topology_view" }

func (m *TopologyView) appendFields(o object) object {
	return appendObjects(o, "brokers", m.Brokers)
}

func (m *TopologyView) readFields(f *fields) {
	if f.must("brokers") {
		readObjects(f, "brokers", &m.Brokers)
	}
}

// TopologyBroker is one broker of a topology_view.
type TopologyBroker struct {
	NodeID string
	Addr   string // host:port of its client listener
}

func (m *TopologyBroker) appendFields(o object) object {
	o = o.text("node_id", m.NodeID)
	return o.text("addr", m.Addr)
}

func (m *TopologyBroker) readFields(f *fields) {
	f.text("node_id", &m.NodeID)
	f.text("addr", &m.Addr)
}

// StreamShards asks for a stream's shard count (wire 7.2).
type StreamShards struct {
	Tenant    string
	Namespace string
	Stream    string
	RequestID uint64
}

// MessageType implements [Message].
func (*StreamShards) MessageType() string { return "stream_shards" }

func (m *StreamShards) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("namespace", m.Namespace)
	o = o.text("stream", m.Stream)
	return o.u64("request_id", m.RequestID)
}

func (m *StreamShards) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("namespace", &m.Namespace)
	f.text("stream", &m.Stream)
	f.u64("request_id", &m.RequestID)
}

// StreamShardsView answers stream_shards (wire 7.2).
type StreamShardsView struct {
	Shards    uint32 // 0: unknown stream
	RequestID uint64
	Routing   Routing // left out when it is Modulo
}

// MessageType implements [Message].
func (*StreamShardsView) MessageType() string { return "stream_shards_view" }

func (m *StreamShardsView) appendFields(o object) object {
	o = o.u32("shards", m.Shards)
	o = o.u64("request_id", m.RequestID)
	if m.Routing != Modulo {
		o = o.text("routing", m.Routing.String())
	}
	return o
}

func (m *StreamShardsView) readFields(f *fields) {
	f.u32("shards", &m.Shards)
	f.u64("request_id", &m.RequestID)
	if f.maybe("routing") {
		word(f, "routing", &m.Routing, RoutingByName)
	}
}

// CacheShards asks for a cache's shard count (wire 7.2).
type CacheShards struct {
	Tenant    string
	Namespace string
	Cache     string
	RequestID uint64
}

// MessageType implements [Message].
func (*CacheShards) MessageType() string { return "cache_shards" }

func (m *CacheShards) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("namespace", m.Namespace)
	o = o.text("cache", m.Cache)
	return o.u64("request_id", m.RequestID)
}

func (m *CacheShards) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("namespace", &m.Namespace)
	f.text("cache", &m.Cache)
	f.u64("request_id", &m.RequestID)
}

// CacheShardsView answers cache_shards (wire 7.2).
type CacheShardsView struct {
	Shards    uint32 // 0: unknown cache
	RequestID uint64
}

// MessageType implements [Message].
func (*CacheShardsView) MessageType() string { return "cache_shards_view" }

func (m *CacheShardsView) appendFields(o object) object {
	o = o.u32("shards", m.Shards)
	return o.u64("request_id", m.RequestID)
}

func (m *CacheShardsView) readFields(f *fields) {
	f.u32("shards", &m.Shards)
	f.u64("request_id", &m.RequestID)
}

// ShardOwners asks who owns each shard of a stream or cache (wire 7.2).
type ShardOwners struct {
	Tenant    string
	Namespace string
	Name      string
	Kind      ShardKind
	RequestID uint64
}

// MessageType implements [Message].
func (*ShardOwners) MessageType() string { return "shard_owners" }

func (m *ShardOwners) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("namespace", m.Namespace)
	o = o.text("name", m.Name)
	o = o.text("kind", m.Kind.String())
	return o.u64("request_id", m.RequestID)
}

func (m *ShardOwners) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("namespace", &m.Namespace)
	f.text("name", &m.Name)
	if f.must("kind") {
		word(f, "kind", &m.Kind, shardKindByName)
	}
	f.u64("request_id", &m.RequestID)
}

// ShardOwnersView answers shard_owners in shard order; it is empty for an
// unknown name (wire 7.2).
type ShardOwnersView struct {
	Owners    []ShardOwner
	RequestID uint64
}

// MessageType implements [Message].
func (*ShardOwnersView) MessageType() string { return "shard_owners_view" }

func (m *ShardOwnersView) appendFields(o object) object {
	o = appendObjects(o, "owners", m.Owners)
	return o.u64("request_id", m.RequestID)
}

func (m *ShardOwnersView) readFields(f *fields) {
	if f.must("owners") {
		readObjects(f, "owners", &m.Owners)
	}
	f.u64("request_id", &m.RequestID)
}

// ShardOwner is one shard of a shard_owners_view.
type ShardOwner struct {
	Shard       uint32
	NodeID      Optional[string]
	Addr        Optional[string]
	Generation  uint64
	Unavailable Optional[string] // why the shard has no owner to go to
}

func (m *ShardOwner) appendFields(o object) object {
	o = o.u32("shard", m.Shard)
	o = o.optText("node_id", m.NodeID)
	o = o.optText("addr", m.Addr)
	o = o.u64("generation", m.Generation)
	return o.optText("unavailable", m.Unavailable)
}

func (m *ShardOwner) readFields(f *fields) {
	f.u32("shard", &m.Shard)
	f.optText("node_id", &m.NodeID)
	f.optText("addr", &m.Addr)
	f.u64("generation", &m.Generation)
	f.optText("unavailable", &m.Unavailable)
}
