package wire

// GroupRef names a consumer group of one shard. Every group request begins
// with it (wire 7.7).
type GroupRef struct {
	Tenant    string
	Namespace string
	Stream    string
	Shard     uint32
	Group     string
}

func (m *GroupRef) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("namespace", m.Namespace)
	o = o.text("stream", m.Stream)
	o = o.u32("shard", m.Shard)
	return o.text("group", m.Group)
}

func (m *GroupRef) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("namespace", &m.Namespace)
	f.text("stream", &m.Stream)
	f.u32("shard", &m.Shard)
	f.text("group", &m.Group)
}

// GroupPoll claims records (wire 7.7, 12.2). Answer: group_records.
type GroupPoll struct {
	GroupRef
	MaxRecords   uint32
	WaitMS       uint64 // milliseconds to wait for the first record
	RequestID    uint64
	Consumer     Optional[string] // with FeatureGroupConsumer
	Reclaim      bool             // take over this member's earlier claims
	VisibilityMS uint64           // milliseconds a claim stands; 0: the default
}

// MessageType implements [Message].
func (*GroupPoll) MessageType() string { return "group_poll" }

func (m *GroupPoll) appendFields(o object) object {
	o = m.GroupRef.appendFields(o)
	o = o.u32("max_records", m.MaxRecords)
	o = o.u64("wait_ms", m.WaitMS)
	o = o.u64("request_id", m.RequestID)
	o = o.optText("consumer", m.Consumer)
	o = o.zeroBoolean("reclaim", m.Reclaim)
	return o.zeroU64("visibility_ms", m.VisibilityMS)
}

func (m *GroupPoll) readFields(f *fields) {
	m.GroupRef.readFields(f)
	f.u32("max_records", &m.MaxRecords)
	f.zeroU64("wait_ms", &m.WaitMS)
	f.u64("request_id", &m.RequestID)
	f.optText("consumer", &m.Consumer)
	f.zeroBoolean("reclaim", &m.Reclaim)
	f.zeroU64("visibility_ms", &m.VisibilityMS)
}

// GroupAck finishes a record (wire 7.7, 12.2). Answer: cache_ok.
type GroupAck struct {
	GroupRef
	Offset    uint64
	RequestID uint64
}

// MessageType implements [Message].
func (*GroupAck) MessageType() string { return "group_ack" }

func (m *GroupAck) appendFields(o object) object {
	o = m.GroupRef.appendFields(o)
	o = o.u64("offset", m.Offset)
	return o.u64("request_id", m.RequestID)
}

func (m *GroupAck) readFields(f *fields) {
	m.GroupRef.readFields(f)
	f.u64("offset", &m.Offset)
	f.u64("request_id", &m.RequestID)
}

// GroupNack hands a record back (wire 7.7, 12.2). Answer: cache_ok.
type GroupNack struct {
	GroupRef
	Offset    uint64
	RequestID uint64
	DelayMS   uint64 // milliseconds before it is handed out again
	Attempts  uint32 // the delivery meant; 0 names none
}

// MessageType implements [Message].
func (*GroupNack) MessageType() string { return "group_nack" }

func (m *GroupNack) appendFields(o object) object {
	o = m.GroupRef.appendFields(o)
	o = o.u64("offset", m.Offset)
	o = o.u64("request_id", m.RequestID)
	o = o.zeroU64("delay_ms", m.DelayMS)
	return o.zeroU32("attempts", m.Attempts)
}

func (m *GroupNack) readFields(f *fields) {
	m.GroupRef.readFields(f)
	f.u64("offset", &m.Offset)
	f.u64("request_id", &m.RequestID)
	f.zeroU64("delay_ms", &m.DelayMS)
	f.zeroU32("attempts", &m.Attempts)
}

// GroupExtend prolongs a claim (wire 7.7, 12.2). Answer: group_extended.
type GroupExtend struct {
	GroupRef
	Offset    uint64
	Attempts  uint32 // the delivery meant
	ExtendMS  uint64 // milliseconds from receipt
	RequestID uint64
}

// MessageType implements [Message].
func (*GroupExtend) MessageType() string { return "group_extend" }

func (m *GroupExtend) appendFields(o object) object {
	o = m.GroupRef.appendFields(o)
	o = o.u64("offset", m.Offset)
	o = o.u32("attempts", m.Attempts)
	o = o.u64("extend_ms", m.ExtendMS)
	return o.u64("request_id", m.RequestID)
}

func (m *GroupExtend) readFields(f *fields) {
	m.GroupRef.readFields(f)
	f.u64("offset", &m.Offset)
	f.u32("attempts", &m.Attempts)
	f.u64("extend_ms", &m.ExtendMS)
	f.u64("request_id", &m.RequestID)
}

// GroupDeadLetter puts a record on the dead-letter list (wire 7.7, 12.2).
// Answer: cache_ok.
type GroupDeadLetter struct {
	GroupRef
	Offset    uint64
	RequestID uint64
}

// MessageType implements [Message].
func (*GroupDeadLetter) MessageType() string { return "group_dead_letter" }

func (m *GroupDeadLetter) appendFields(o object) object {
	o = m.GroupRef.appendFields(o)
	o = o.u64("offset", m.Offset)
	return o.u64("request_id", m.RequestID)
}

func (m *GroupDeadLetter) readFields(f *fields) {
	m.GroupRef.readFields(f)
	f.u64("offset", &m.Offset)
	f.u64("request_id", &m.RequestID)
}

// GroupDeadLetters asks for the dead-letter list (wire 7.7, 12.2). Answer:
// group_dead_letter_list.
type GroupDeadLetters struct {
	GroupRef
	RequestID uint64
}

// MessageType implements [Message].
func (*GroupDeadLetters) MessageType() string { return "group_dead_letters" }

func (m *GroupDeadLetters) appendFields(o object) object {
	o = m.GroupRef.appendFields(o)
	return o.u64("request_id", m.RequestID)
}

func (m *GroupDeadLetters) readFields(f *fields) {
	m.GroupRef.readFields(f)
	f.u64("request_id", &m.RequestID)
}

// GroupDiscard drops a record from the dead-letter list (wire 7.7, 12.2).
// Answer: cache_ok.
type GroupDiscard struct {
	GroupRef
	Offset    uint64
	RequestID uint64
}

// MessageType implements [Message].
func (*GroupDiscard) MessageType() string { return "group_discard" }

func (m *GroupDiscard) appendFields(o object) object {
	o = m.GroupRef.appendFields(o)
	o = o.u64("offset", m.Offset)
	return o.u64("request_id", m.RequestID)
}

func (m *GroupDiscard) readFields(f *fields) {
	m.GroupRef.readFields(f)
	f.u64("offset", &m.Offset)
	f.u64("request_id", &m.RequestID)
}

// GroupRedrive makes a dead letter owed again (wire 7.7, 12.2). Answer:
// cache_ok.
type GroupRedrive struct {
	GroupRef
	Offset    uint64
	RequestID uint64
}

// MessageType implements [Message].
func (*GroupRedrive) MessageType() string { return "group_redrive" }

func (m *GroupRedrive) appendFields(o object) object {
	o = m.GroupRef.appendFields(o)
	o = o.u64("offset", m.Offset)
	return o.u64("request_id", m.RequestID)
}

func (m *GroupRedrive) readFields(f *fields) {
	m.GroupRef.readFields(f)
	f.u64("offset", &m.Offset)
	f.u64("request_id", &m.RequestID)
}

// GroupSeek moves a group (wire 7.7, 12.2). Answer: group_position.
type GroupSeek struct {
	GroupRef
	Start     Start
	IfNew     bool // only if the group does not exist yet
	RequestID uint64
}

// MessageType implements [Message].
func (*GroupSeek) MessageType() string { return "group_seek" }

func (m *GroupSeek) appendFields(o object) object {
	o = m.GroupRef.appendFields(o)
	o = m.Start.append(o, "start")
	o = o.zeroBoolean("if_new", m.IfNew)
	return o.u64("request_id", m.RequestID)
}

func (m *GroupSeek) readFields(f *fields) {
	m.GroupRef.readFields(f)
	if f.must("start") {
		m.Start.read(f, "start")
	}
	f.zeroBoolean("if_new", &m.IfNew)
	f.u64("request_id", &m.RequestID)
}

// GroupDescribe asks where a group stands (wire 7.7, 12.2). Answer:
// group_info. What follows RequestID is ours: a broker that does not know it
// answers without what it asks for.
type GroupDescribe struct {
	GroupRef
	RequestID uint64
	Held      bool   // list the records that are handed out or owed
	HeldFrom  uint64 // from this offset on
	HeldLimit uint32 // most of them; 0: the broker's choice
}

// MessageType implements [Message].
func (*GroupDescribe) MessageType() string { return "group_describe" }

func (m *GroupDescribe) appendFields(o object) object {
	o = m.GroupRef.appendFields(o)
	o = o.u64("request_id", m.RequestID)
	o = o.zeroBoolean("held", m.Held)
	o = o.zeroU64("held_from", m.HeldFrom)
	return o.zeroU32("held_limit", m.HeldLimit)
}

func (m *GroupDescribe) readFields(f *fields) {
	m.GroupRef.readFields(f)
	f.u64("request_id", &m.RequestID)
	f.zeroBoolean("held", &m.Held)
	f.zeroU64("held_from", &m.HeldFrom)
	f.zeroU32("held_limit", &m.HeldLimit)
}

// GroupDelete removes all state of a group (wire 7.7, 12.2). Answer:
// group_deleted.
type GroupDelete struct {
	GroupRef
	RequestID uint64
}

// MessageType implements [Message].
func (*GroupDelete) MessageType() string { return "group_delete" }

func (m *GroupDelete) appendFields(o object) object {
	o = m.GroupRef.appendFields(o)
	return o.u64("request_id", m.RequestID)
}

func (m *GroupDelete) readFields(f *fields) {
	m.GroupRef.readFields(f)
	f.u64("request_id", &m.RequestID)
}
