package wire

// SubscriptionsList asks for a broker's subscriptions, with [FeatureInspect]
// (wire 7.8).
type SubscriptionsList struct {
	RequestID uint64
	Filter    Optional[SubscriptionsFilter]
	Limit     Optional[uint32] // absent: DefaultListLimit; at most MaxListLimit
	Cursor    Optional[SubscriptionsCursor]
}

// MessageType implements [Message].
func (*SubscriptionsList) MessageType() string { return "subscriptions_list" }

func (m *SubscriptionsList) appendFields(o object) object {
	o = o.u64("request_id", m.RequestID)
	if m.Filter.Set {
		o = o.object("filter", &m.Filter.Value)
	}
	o = o.optU32("limit", m.Limit)
	if m.Cursor.Set {
		o = o.object("cursor", &m.Cursor.Value)
	}
	return o
}

func (m *SubscriptionsList) readFields(f *fields) {
	f.u64("request_id", &m.RequestID)
	optObject(f, "filter", &m.Filter)
	f.optU32("limit", &m.Limit)
	optObject(f, "cursor", &m.Cursor)
}

// SubscriptionsFilter narrows a subscriptions_list down.
type SubscriptionsFilter struct {
	Tenant    Optional[string]
	Namespace Optional[string]
	Stream    Optional[string]
	Shard     Optional[uint32]
	Principal Optional[string]
	Dropping  bool // only those that lost records
}

func (m *SubscriptionsFilter) appendFields(o object) object {
	o = o.optText("tenant_id", m.Tenant)
	o = o.optText("namespace", m.Namespace)
	o = o.optText("stream", m.Stream)
	o = o.optU32("shard", m.Shard)
	o = o.optText("principal", m.Principal)
	return o.zeroBoolean("dropping", m.Dropping)
}

func (m *SubscriptionsFilter) readFields(f *fields) {
	f.optText("tenant_id", &m.Tenant)
	f.optText("namespace", &m.Namespace)
	f.optText("stream", &m.Stream)
	f.optU32("shard", &m.Shard)
	f.optText("principal", &m.Principal)
	f.zeroBoolean("dropping", &m.Dropping)
}

// SubscriptionsCursor is where a page of subscriptions_list begins.
type SubscriptionsCursor struct {
	Tenant       string
	Namespace    string
	Stream       string
	Shard        uint32
	SubscriberID uint64
}

func (m *SubscriptionsCursor) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("namespace", m.Namespace)
	o = o.text("stream", m.Stream)
	o = o.u32("shard", m.Shard)
	return o.u64("subscriber_id", m.SubscriberID)
}

func (m *SubscriptionsCursor) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("namespace", &m.Namespace)
	f.text("stream", &m.Stream)
	f.u32("shard", &m.Shard)
	f.u64("subscriber_id", &m.SubscriberID)
}

// SubscriptionsListInfo answers subscriptions_list (wire 7.8).
type SubscriptionsListInfo struct {
	RequestID     uint64
	NodeID        string
	Subscriptions []SubscriptionInfo
	NextCursor    Optional[SubscriptionsCursor] // absent on the last page
}

// MessageType implements [Message].
func (*SubscriptionsListInfo) MessageType() string { return "subscriptions_list_info" }

func (m *SubscriptionsListInfo) appendFields(o object) object {
	o = o.u64("request_id", m.RequestID)
	o = o.text("node_id", m.NodeID)
	o = appendObjects(o, "subscriptions", m.Subscriptions)
	if m.NextCursor.Set {
		o = o.object("next_cursor", &m.NextCursor.Value)
	}
	return o
}

func (m *SubscriptionsListInfo) readFields(f *fields) {
	f.u64("request_id", &m.RequestID)
	f.text("node_id", &m.NodeID)
	if f.must("subscriptions") {
		readObjects(f, "subscriptions", &m.Subscriptions)
	}
	optObject(f, "next_cursor", &m.NextCursor)
}

// SubscriptionInfo is one subscription of a broker.
type SubscriptionInfo struct {
	Tenant         string
	Namespace      string
	Stream         string
	Shard          uint32
	SubscriberID   uint64
	SubscriptionID Optional[uint64]
	Connection     Optional[uint64]
	Peer           Optional[string] // address
	Principal      Optional[string]
	Policy         string // block, drop_new, drop_old
	Depth          uint64 // queued batches
	Capacity       uint64 // batches
	Dropped        uint64
	Position       Optional[uint64]
	Tail           uint64
	AgeMS          uint64 // milliseconds
}

func (m *SubscriptionInfo) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("namespace", m.Namespace)
	o = o.text("stream", m.Stream)
	o = o.u32("shard", m.Shard)
	o = o.u64("subscriber_id", m.SubscriberID)
	o = o.optU64("subscription_id", m.SubscriptionID)
	o = o.optU64("connection", m.Connection)
	o = o.optText("peer", m.Peer)
	o = o.optText("principal", m.Principal)
	o = o.text("policy", m.Policy)
	o = o.u64("depth", m.Depth)
	o = o.u64("capacity", m.Capacity)
	o = o.u64("dropped", m.Dropped)
	o = o.optU64("position", m.Position)
	o = o.u64("tail", m.Tail)
	return o.u64("age_ms", m.AgeMS)
}

func (m *SubscriptionInfo) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("namespace", &m.Namespace)
	f.text("stream", &m.Stream)
	f.u32("shard", &m.Shard)
	f.u64("subscriber_id", &m.SubscriberID)
	f.optU64("subscription_id", &m.SubscriptionID)
	f.optU64("connection", &m.Connection)
	f.optText("peer", &m.Peer)
	f.optText("principal", &m.Principal)
	f.text("policy", &m.Policy)
	f.u64("depth", &m.Depth)
	f.u64("capacity", &m.Capacity)
	f.u64("dropped", &m.Dropped)
	f.optU64("position", &m.Position)
	f.u64("tail", &m.Tail)
	f.u64("age_ms", &m.AgeMS)
}
