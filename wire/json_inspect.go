package wire

// ShardInspect asks for one shard's state, with [FeatureInspect] (wire 7.8).
type ShardInspect struct {
	Tenant    string
	Namespace string
	Name      string
	Kind      ShardKind
	Shard     uint32
	RequestID uint64
}

// MessageType implements [Message].
func (*ShardInspect) MessageType() string { return "shard_inspect" }

func (m *ShardInspect) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("namespace", m.Namespace)
	o = o.text("name", m.Name)
	o = o.text("kind", m.Kind.String())
	o = o.u32("shard", m.Shard)
	return o.u64("request_id", m.RequestID)
}

func (m *ShardInspect) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("namespace", &m.Namespace)
	f.text("name", &m.Name)
	if f.must("kind") {
		word(f, "kind", &m.Kind, shardKindByName)
	}
	f.u32("shard", &m.Shard)
	f.u64("request_id", &m.RequestID)
}

// ShardInspectInfo answers shard_inspect (wire 7.8).
type ShardInspectInfo struct {
	RequestID uint64
	View      ShardView
}

// MessageType implements [Message].
func (*ShardInspectInfo) MessageType() string { return "shard_inspect_info" }

func (m *ShardInspectInfo) appendFields(o object) object {
	o = o.u64("request_id", m.RequestID)
	return o.object("view", &m.View)
}

func (m *ShardInspectInfo) readFields(f *fields) {
	f.u64("request_id", &m.RequestID)
	if f.must("view") {
		f.object("view", &m.View)
	}
}

// ShardView is a shard as one broker sees it (wire 7.8). Its words are open
// sets.
type ShardView struct {
	NodeID string // empty outside a cluster
	Shards uint32 // 0: unknown name
	Role   string // leader, follower, none
	// unassigned, opening, fencing, active, draining, closed, failed
	Phase              string
	Serving            bool
	Reason             Optional[string] // why it is not serving
	Detail             Optional[string] // a sentence
	Generation         Optional[uint64]
	Assignment         Optional[ShardAssignment]
	Fence              Optional[ShardFence]
	Lease              Optional[ShardLease]
	Tail               Optional[uint64]
	Committed          Optional[uint64]
	AcceptedGeneration Optional[uint64]
	Replicas           []ShardReplica // left out when empty
}

func (m *ShardView) appendFields(o object) object {
	o = o.text("node_id", m.NodeID)
	o = o.u32("shards", m.Shards)
	o = o.text("role", m.Role)
	o = o.text("phase", m.Phase)
	o = o.boolean("serving", m.Serving)
	o = o.optText("reason", m.Reason)
	o = o.optText("detail", m.Detail)
	o = o.optU64("generation", m.Generation)
	if m.Assignment.Set {
		o = o.object("assignment", &m.Assignment.Value)
	}
	if m.Fence.Set {
		o = o.object("fence", &m.Fence.Value)
	}
	if m.Lease.Set {
		o = o.object("lease", &m.Lease.Value)
	}
	o = o.optU64("tail", m.Tail)
	o = o.optU64("committed", m.Committed)
	o = o.optU64("accepted_generation", m.AcceptedGeneration)
	if len(m.Replicas) > 0 {
		o = appendObjects(o, "replicas", m.Replicas)
	}
	return o
}

func (m *ShardView) readFields(f *fields) {
	f.text("node_id", &m.NodeID)
	f.u32("shards", &m.Shards)
	f.text("role", &m.Role)
	f.text("phase", &m.Phase)
	f.boolean("serving", &m.Serving)
	f.optText("reason", &m.Reason)
	f.optText("detail", &m.Detail)
	f.optU64("generation", &m.Generation)
	optObject(f, "assignment", &m.Assignment)
	optObject(f, "fence", &m.Fence)
	optObject(f, "lease", &m.Lease)
	f.optU64("tail", &m.Tail)
	f.optU64("committed", &m.Committed)
	f.optU64("accepted_generation", &m.AcceptedGeneration)
	if f.maybe("replicas") {
		readObjects(f, "replicas", &m.Replicas)
	}
}

// ShardAssignment is what the control plane decided for a shard.
type ShardAssignment struct {
	Generation uint64
	Leader     string
	Replicas   []string
	Draining   bool
	Successor  Optional[string]
}

func (m *ShardAssignment) appendFields(o object) object {
	o = o.u64("generation", m.Generation)
	o = o.text("leader", m.Leader)
	o = o.texts("replicas", m.Replicas)
	o = o.zeroBoolean("draining", m.Draining)
	return o.optText("successor", m.Successor)
}

func (m *ShardAssignment) readFields(f *fields) {
	f.u64("generation", &m.Generation)
	f.text("leader", &m.Leader)
	f.texts("replicas", &m.Replicas)
	f.zeroBoolean("draining", &m.Draining)
	f.optText("successor", &m.Successor)
}

// ShardFence is how far a new leader is with fencing its predecessor.
type ShardFence struct {
	Took      []string
	Pending   []string
	Attempts  uint32
	RetryInMS Optional[uint64]
}

func (m *ShardFence) appendFields(o object) object {
	o = o.texts("took", m.Took)
	o = o.texts("pending", m.Pending)
	o = o.u32("attempts", m.Attempts)
	return o.optU64("retry_in_ms", m.RetryInMS)
}

func (m *ShardFence) readFields(f *fields) {
	f.texts("took", &m.Took)
	f.texts("pending", &m.Pending)
	f.u32("attempts", &m.Attempts)
	f.optU64("retry_in_ms", &m.RetryInMS)
}

// ShardLease is the leader's lease.
type ShardLease struct {
	Held        bool
	RemainingMS uint64
}

func (m *ShardLease) appendFields(o object) object {
	o = o.boolean("held", m.Held)
	return o.u64("remaining_ms", m.RemainingMS)
}

func (m *ShardLease) readFields(f *fields) {
	f.boolean("held", &m.Held)
	f.u64("remaining_ms", &m.RemainingMS)
}

// ShardReplica is a follower as the leader sees it.
type ShardReplica struct {
	NodeID     string
	Role       string // follower, learner
	NextOffset Optional[uint64]
	Lag        Optional[uint64] // records
	Fence      Optional[bool]
	State      string           // shipping, stalled, copying, rebuilding, halted, fencing
	Halted     Optional[string] // why
}

func (m *ShardReplica) appendFields(o object) object {
	o = o.text("node_id", m.NodeID)
	o = o.text("role", m.Role)
	o = o.optU64("next_offset", m.NextOffset)
	o = o.optU64("lag", m.Lag)
	o = o.optBoolean("fence", m.Fence)
	o = o.text("state", m.State)
	return o.optText("halted", m.Halted)
}

func (m *ShardReplica) readFields(f *fields) {
	f.text("node_id", &m.NodeID)
	f.text("role", &m.Role)
	f.optU64("next_offset", &m.NextOffset)
	f.optU64("lag", &m.Lag)
	f.optBoolean("fence", &m.Fence)
	f.text("state", &m.State)
	f.optText("halted", &m.Halted)
}
