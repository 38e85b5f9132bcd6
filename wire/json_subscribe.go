package wire

// Subscribe asks for the events of one shard (wire 7.4, 10).
type Subscribe struct {
	Tenant         string
	Namespace      string
	Stream         string
	SubscriptionID Optional[uint64] // normally left to the broker
	Start          Optional[Start]  // absent is the tail
	Shard          Optional[uint32] // absent is 0
	QueueCapacity  Optional[uint32] // batches; with FeatureSubscribeQueue
}

// MessageType implements [Message].
func (*Subscribe) MessageType() string { return "subscribe" }

func (m *Subscribe) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("namespace", m.Namespace)
	o = o.text("stream", m.Stream)
	o = o.optU64("subscription_id", m.SubscriptionID)
	if m.Start.Set {
		o = m.Start.Value.append(o, "start")
	}
	o = o.optU32("shard", m.Shard)
	return o.optU32("queue_capacity", m.QueueCapacity)
}

func (m *Subscribe) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("namespace", &m.Namespace)
	f.text("stream", &m.Stream)
	f.optU64("subscription_id", &m.SubscriptionID)
	if f.maybe("start") {
		m.Start.Set = true
		m.Start.Value.read(f, "start")
	}
	f.optU32("shard", &m.Shard)
	f.optU32("queue_capacity", &m.QueueCapacity)
}

// Subscribed answers subscribe (wire 7.4, 10).
type Subscribed struct {
	SubscriptionID uint64
	StartOffset    Optional[uint64] // durable stream and FlagEventOffsets only
	LiveOffset     Optional[uint64] // likewise
	QueueCapacity  Optional[uint32] // what was granted, in batches
}

// MessageType implements [Message].
func (*Subscribed) MessageType() string { return "subscribed" }

func (m *Subscribed) appendFields(o object) object {
	o = o.u64("subscription_id", m.SubscriptionID)
	o = o.optU64("start_offset", m.StartOffset)
	o = o.optU64("live_offset", m.LiveOffset)
	return o.optU32("queue_capacity", m.QueueCapacity)
}

func (m *Subscribed) readFields(f *fields) {
	f.u64("subscription_id", &m.SubscriptionID)
	f.optU64("start_offset", &m.StartOffset)
	f.optU64("live_offset", &m.LiveOffset)
	f.optU32("queue_capacity", &m.QueueCapacity)
}

// SubscribeCursorError refuses a start offset (wire 7.4, 10).
type SubscribeCursorError struct {
	Reason    CursorReason
	Requested uint64
	Available uint64 // the oldest offset kept, or the tail
}

// MessageType implements [Message].
func (*SubscribeCursorError) MessageType() string { return "subscribe_cursor_error" }

func (m *SubscribeCursorError) appendFields(o object) object {
	o = o.text("reason", m.Reason.String())
	o = o.u64("requested", m.Requested)
	return o.u64("available", m.Available)
}

func (m *SubscribeCursorError) readFields(f *fields) {
	if f.must("reason") {
		word(f, "reason", &m.Reason, cursorReasonByName)
	}
	f.u64("requested", &m.Requested)
	f.u64("available", &m.Available)
}

// EventStreamHello is the first frame of every event stream (wire 7.4).
type EventStreamHello struct {
	SubscriptionID uint64
}

// MessageType implements [Message].
func (*EventStreamHello) MessageType() string { return "event_stream_hello" }

func (m *EventStreamHello) appendFields(o object) object {
	return o.u64("subscription_id", m.SubscriptionID)
}

func (m *EventStreamHello) readFields(f *fields) {
	f.u64("subscription_id", &m.SubscriptionID)
}

// JSONEvent is one event in its first form, which clients still accept (wire
// 7.4).
type JSONEvent struct {
	Tenant    string
	Namespace string
	Stream    string
	Payload   []byte
	Offset    Optional[uint64]
}

// MessageType implements [Message].
func (*JSONEvent) MessageType() string { return "event" }

func (m *JSONEvent) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("namespace", m.Namespace)
	o = o.text("stream", m.Stream)
	o = o.base64("payload", m.Payload)
	return o.optU64("offset", m.Offset)
}

func (m *JSONEvent) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("namespace", &m.Namespace)
	f.text("stream", &m.Stream)
	f.base64("payload", &m.Payload)
	f.optU64("offset", &m.Offset)
}

// JSONEventBatch is an event batch in its first form, which clients still
// accept (wire 7.4).
type JSONEventBatch struct {
	Tenant     string
	Namespace  string
	Stream     string
	Payloads   Block
	BaseOffset Optional[uint64]
}

// MessageType implements [Message].
func (*JSONEventBatch) MessageType() string { return "event_batch" }

func (m *JSONEventBatch) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("namespace", m.Namespace)
	o = o.text("stream", m.Stream)
	o = o.block("payloads", m.Payloads)
	return o.optU64("base_offset", m.BaseOffset)
}

func (m *JSONEventBatch) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("namespace", &m.Namespace)
	f.text("stream", &m.Stream)
	f.block("payloads", &m.Payloads)
	f.optU64("base_offset", &m.BaseOffset)
}

// ShardMoved ends an event stream whose shard has another owner, to a peer
// with [FeatureShardMoved] (wire 7.4, 15).
type ShardMoved struct {
	SubscriptionID uint64
	ResumeFrom     Optional[uint64]
	NodeID         Optional[string]
	Addr           Optional[string]
	Generation     uint64
}

// MessageType implements [Message].
func (*ShardMoved) MessageType() string { return "shard_moved" }

func (m *ShardMoved) appendFields(o object) object {
	o = o.u64("subscription_id", m.SubscriptionID)
	o = o.optU64("resume_from", m.ResumeFrom)
	o = o.optText("node_id", m.NodeID)
	o = o.optText("addr", m.Addr)
	return o.u64("generation", m.Generation)
}

func (m *ShardMoved) readFields(f *fields) {
	f.u64("subscription_id", &m.SubscriptionID)
	f.optU64("resume_from", &m.ResumeFrom)
	f.optText("node_id", &m.NodeID)
	f.optText("addr", &m.Addr)
	f.u64("generation", &m.Generation)
}

// StreamDeleted ends an event stream whose stream was deleted by somebody's
// order. It is negotiated by nothing: the published clients take it as they are,
// and those that do not know it see their subscription end in error.
type StreamDeleted struct {
	SubscriptionID uint64
}

// MessageType implements [Message].
func (*StreamDeleted) MessageType() string { return "stream_deleted" }

func (m *StreamDeleted) appendFields(o object) object {
	return o.u64("subscription_id", m.SubscriptionID)
}

func (m *StreamDeleted) readFields(f *fields) { f.u64("subscription_id", &m.SubscriptionID) }

// SubscriptionLagged ends an event stream at the first drop, to a peer with
// [FeatureSubscriptionLagged] (wire 7.4, 10).
type SubscriptionLagged struct {
	SubscriptionID uint64
	ResumeFrom     uint64 // the first offset that was not delivered
}

// MessageType implements [Message].
func (*SubscriptionLagged) MessageType() string { return "subscription_lagged" }

func (m *SubscriptionLagged) appendFields(o object) object {
	o = o.u64("subscription_id", m.SubscriptionID)
	return o.u64("resume_from", m.ResumeFrom)
}

func (m *SubscriptionLagged) readFields(f *fields) {
	f.u64("subscription_id", &m.SubscriptionID)
	f.u64("resume_from", &m.ResumeFrom)
}
