package wire

// OffsetForTime asks for the first record not older than a time (wire 7.6).
type OffsetForTime struct {
	Tenant    string
	Namespace string
	Stream    string
	Shard     uint32
	AtMicros  uint64 // Unix microseconds
	RequestID uint64
}

// MessageType implements [Message].
func (*OffsetForTime) MessageType() string { return "offset_for_time" }

func (m *OffsetForTime) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("namespace", m.Namespace)
	o = o.text("stream", m.Stream)
	o = o.u32("shard", m.Shard)
	o = o.u64("at_micros", m.AtMicros)
	return o.u64("request_id", m.RequestID)
}

func (m *OffsetForTime) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("namespace", &m.Namespace)
	f.text("stream", &m.Stream)
	f.u32("shard", &m.Shard)
	f.u64("at_micros", &m.AtMicros)
	f.u64("request_id", &m.RequestID)
}

// OffsetValue answers offset_for_time (wire 7.6).
type OffsetValue struct {
	Offset    Optional[uint64] // absent: nothing that recent yet
	RequestID uint64
}

// MessageType implements [Message].
func (*OffsetValue) MessageType() string { return "offset_value" }

func (m *OffsetValue) appendFields(o object) object {
	o = o.optU64("offset", m.Offset)
	return o.u64("request_id", m.RequestID)
}

func (m *OffsetValue) readFields(f *fields) {
	f.optU64("offset", &m.Offset)
	f.u64("request_id", &m.RequestID)
}

// StreamRead asks for one page of committed records (wire 7.6, 10).
type StreamRead struct {
	Tenant     string
	Namespace  string
	Stream     string
	Shard      uint32
	From       uint64
	End        Optional[uint64] // first offset not wanted
	MaxRecords uint32           // 0: the broker's cap
	MaxBytes   uint64           // 0: the broker's cap
	RequestID  uint64
}

// MessageType implements [Message].
func (*StreamRead) MessageType() string { return "stream_read" }

func (m *StreamRead) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("namespace", m.Namespace)
	o = o.text("stream", m.Stream)
	o = o.u32("shard", m.Shard)
	o = o.u64("from", m.From)
	o = o.optU64("end", m.End)
	o = o.zeroU32("max_records", m.MaxRecords)
	o = o.zeroU64("max_bytes", m.MaxBytes)
	return o.u64("request_id", m.RequestID)
}

func (m *StreamRead) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("namespace", &m.Namespace)
	f.text("stream", &m.Stream)
	f.u32("shard", &m.Shard)
	f.u64("from", &m.From)
	f.optU64("end", &m.End)
	f.zeroU32("max_records", &m.MaxRecords)
	f.zeroU64("max_bytes", &m.MaxBytes)
	f.u64("request_id", &m.RequestID)
}

// StreamRecords answers stream_read (wire 7.6, 10).
type StreamRecords struct {
	Records    []StreamRecord
	NextOffset uint64 // where to continue
	RequestID  uint64
}

// MessageType implements [Message].
func (*StreamRecords) MessageType() string { return "stream_records" }

func (m *StreamRecords) appendFields(o object) object {
	o = appendObjects(o, "records", m.Records)
	o = o.u64("next_offset", m.NextOffset)
	return o.u64("request_id", m.RequestID)
}

func (m *StreamRecords) readFields(f *fields) {
	if f.must("records") {
		readObjects(f, "records", &m.Records)
	}
	f.u64("next_offset", &m.NextOffset)
	f.u64("request_id", &m.RequestID)
}

// StreamRecord is one record of stream_records.
type StreamRecord struct {
	Offset          uint64
	Payload         []byte
	Publisher       Optional[string]
	TimestampMicros uint64 // append time, Unix microseconds
}

func (m *StreamRecord) appendFields(o object) object {
	o = o.u64("offset", m.Offset)
	o = o.base64("payload", m.Payload)
	o = o.optText("publisher", m.Publisher)
	return o.u64("timestamp_micros", m.TimestampMicros)
}

func (m *StreamRecord) readFields(f *fields) {
	f.u64("offset", &m.Offset)
	f.base64("payload", &m.Payload)
	f.optText("publisher", &m.Publisher)
	f.u64("timestamp_micros", &m.TimestampMicros)
}
