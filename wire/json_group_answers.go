package wire

// GroupRecords answers group_poll; it may be empty (wire 7.7, 12.2).
type GroupRecords struct {
	Records   []GroupRecord
	RequestID uint64
}

// MessageType implements [Message].
func (*GroupRecords) MessageType() string { return "group_records" }

func (m *GroupRecords) appendFields(o object) object {
	o = appendObjects(o, "records", m.Records)
	return o.u64("request_id", m.RequestID)
}

func (m *GroupRecords) readFields(f *fields) {
	if f.must("records") {
		readObjects(f, "records", &m.Records)
	}
	f.u64("request_id", &m.RequestID)
}

// GroupRecord is one claimed record.
type GroupRecord struct {
	Offset          uint64
	Payload         []byte
	Attempts        uint32 // deliveries including this one; 0: not reported
	SkippedBefore   uint64 // offsets directly below that hold nothing to deliver
	Publisher       Optional[string]
	TimestampMicros Optional[uint64] // append time, Unix microseconds
}

func (m *GroupRecord) appendFields(o object) object {
	o = o.u64("offset", m.Offset)
	o = o.base64("payload", m.Payload)
	o = o.u32("attempts", m.Attempts)
	o = o.zeroU64("skipped_before", m.SkippedBefore)
	o = o.optText("publisher", m.Publisher)
	return o.optU64("timestamp_micros", m.TimestampMicros)
}

func (m *GroupRecord) readFields(f *fields) {
	f.u64("offset", &m.Offset)
	f.base64("payload", &m.Payload)
	f.zeroU32("attempts", &m.Attempts)
	f.zeroU64("skipped_before", &m.SkippedBefore)
	f.optText("publisher", &m.Publisher)
	f.optU64("timestamp_micros", &m.TimestampMicros)
}

// GroupDeadLetterList answers group_dead_letters (wire 7.7).
type GroupDeadLetterList struct {
	Offsets   []uint64 // ascending
	RequestID uint64
}

// MessageType implements [Message].
func (*GroupDeadLetterList) MessageType() string { return "group_dead_letter_list" }

func (m *GroupDeadLetterList) appendFields(o object) object {
	o = appendNumbers(o, "offsets", m.Offsets)
	return o.u64("request_id", m.RequestID)
}

func (m *GroupDeadLetterList) readFields(f *fields) {
	if f.must("offsets") {
		unsignedList(f, "offsets", &m.Offsets)
	}
	f.u64("request_id", &m.RequestID)
}

// GroupExtended answers group_extend (wire 7.7).
type GroupExtended struct {
	VisibleMS uint64 // milliseconds granted
	RequestID uint64
}

// MessageType implements [Message].
func (*GroupExtended) MessageType() string { return "group_extended" }

func (m *GroupExtended) appendFields(o object) object {
	o = o.u64("visible_ms", m.VisibleMS)
	return o.u64("request_id", m.RequestID)
}

func (m *GroupExtended) readFields(f *fields) {
	f.u64("visible_ms", &m.VisibleMS)
	f.u64("request_id", &m.RequestID)
}

// GroupPosition answers group_seek (wire 7.7).
type GroupPosition struct {
	Offset    uint64
	Moved     bool
	RequestID uint64
}

// MessageType implements [Message].
func (*GroupPosition) MessageType() string { return "group_position" }

func (m *GroupPosition) appendFields(o object) object {
	o = o.u64("offset", m.Offset)
	o = o.boolean("moved", m.Moved)
	return o.u64("request_id", m.RequestID)
}

func (m *GroupPosition) readFields(f *fields) {
	f.u64("offset", &m.Offset)
	f.boolean("moved", &m.Moved)
	f.u64("request_id", &m.RequestID)
}

// GroupInfo answers group_describe (wire 7.7, 12.2). What follows RequestID is
// ours, and a client that does not know it passes over it; absent, the broker
// does not say.
type GroupInfo struct {
	Committed   Optional[uint64] // absent: no cursor yet
	Tail        uint64           // committed tail of the shard
	InFlight    uint64
	Owed        uint64
	DeadLetters uint64
	RequestID   uint64

	HighWater       Optional[uint64]    // the next offset never handed out
	Trimmed         uint64              // records that retention took before they were finished
	MaxAttempts     uint32              // deliveries after which a record is a dead letter
	First           Optional[GroupHeld] // the record that holds the cursor
	NextLapseMicros Optional[uint64]    // when the next claim or delay ends, Unix microseconds
	Held            []GroupHeld         // ascending; left out when empty
	HeldNext        Optional[uint64]    // held_from of the next page; absent on the last
}

// MessageType implements [Message].
func (*GroupInfo) MessageType() string { return "group_info" }

func (m *GroupInfo) appendFields(o object) object {
	o = o.optU64("committed", m.Committed)
	o = o.u64("tail", m.Tail)
	o = o.u64("in_flight", m.InFlight)
	o = o.u64("owed", m.Owed)
	o = o.u64("dead_letters", m.DeadLetters)
	o = o.u64("request_id", m.RequestID)
	o = o.optU64("high_water", m.HighWater)
	o = o.zeroU64("trimmed", m.Trimmed)
	o = o.zeroU32("max_attempts", m.MaxAttempts)
	if m.First.Set {
		o = o.object("first", &m.First.Value)
	}
	o = o.optU64("next_lapse_micros", m.NextLapseMicros)
	if len(m.Held) > 0 {
		o = appendObjects(o, "held", m.Held)
	}
	return o.optU64("held_next", m.HeldNext)
}

func (m *GroupInfo) readFields(f *fields) {
	f.optU64("committed", &m.Committed)
	f.u64("tail", &m.Tail)
	f.u64("in_flight", &m.InFlight)
	f.u64("owed", &m.Owed)
	f.u64("dead_letters", &m.DeadLetters)
	f.u64("request_id", &m.RequestID)
	f.optU64("high_water", &m.HighWater)
	f.zeroU64("trimmed", &m.Trimmed)
	f.zeroU32("max_attempts", &m.MaxAttempts)
	optObject(f, "first", &m.First)
	f.optU64("next_lapse_micros", &m.NextLapseMicros)
	if f.maybe("held") {
		readObjects(f, "held", &m.Held)
	}
	f.optU64("held_next", &m.HeldNext)
}

// GroupDeleted answers group_delete (wire 7.7).
type GroupDeleted struct {
	Existed   bool
	RequestID uint64
}

// MessageType implements [Message].
func (*GroupDeleted) MessageType() string { return "group_deleted" }

func (m *GroupDeleted) appendFields(o object) object {
	o = o.boolean("existed", m.Existed)
	return o.u64("request_id", m.RequestID)
}

func (m *GroupDeleted) readFields(f *fields) {
	f.boolean("existed", &m.Existed)
	f.u64("request_id", &m.RequestID)
}
