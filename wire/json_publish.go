package wire

// JSONPublish is the JSON form of a publish of one record (wire 7.3, 9).
// Without Ack it is per_message.
type JSONPublish struct {
	Tenant    string
	Namespace string
	Stream    string
	Payload   []byte
	Key       Optional[[]byte] // an empty key is a key
	RequestID Optional[uint64]
	Ack       Optional[AckMode]
}

// MessageType implements [Message].
func (*JSONPublish) MessageType() string { return "publish" }

func (m *JSONPublish) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("namespace", m.Namespace)
	o = o.text("stream", m.Stream)
	o = o.base64("payload", m.Payload)
	o = o.optBase64("key", m.Key)
	o = o.optU64("request_id", m.RequestID)
	if m.Ack.Set {
		o = o.text("ack", m.Ack.Value.String())
	}
	return o
}

func (m *JSONPublish) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("namespace", &m.Namespace)
	f.text("stream", &m.Stream)
	f.base64("payload", &m.Payload)
	f.optBase64("key", &m.Key)
	f.optU64("request_id", &m.RequestID)
	if f.maybe("ack") {
		m.Ack.Set = true
		word(f, "ack", &m.Ack.Value, ackModeByName)
	}
}

// JSONPublishBatch is the JSON form of a publish batch (wire 7.3, 9). Without
// Ack it is per_batch.
type JSONPublishBatch struct {
	Tenant    string
	Namespace string
	Stream    string
	Payloads  Block
	Key       Optional[[]byte] // an empty key is a key
	RequestID Optional[uint64]
	Ack       Optional[AckMode]
}

// MessageType implements [Message].
func (*JSONPublishBatch) MessageType() string { return "publish_batch" }

func (m *JSONPublishBatch) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("namespace", m.Namespace)
	o = o.text("stream", m.Stream)
	o = o.block("payloads", m.Payloads)
	o = o.optBase64("key", m.Key)
	o = o.optU64("request_id", m.RequestID)
	if m.Ack.Set {
		o = o.text("ack", m.Ack.Value.String())
	}
	return o
}

func (m *JSONPublishBatch) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("namespace", &m.Namespace)
	f.text("stream", &m.Stream)
	f.block("payloads", &m.Payloads)
	f.optBase64("key", &m.Key)
	f.optU64("request_id", &m.RequestID)
	if f.maybe("ack") {
		m.Ack.Set = true
		word(f, "ack", &m.Ack.Value, ackModeByName)
	}
}

// PublishOK acknowledges a publish (wire 7.3, 9.2).
type PublishOK struct {
	RequestID uint64
	// Offset is that of the first record: sent to a peer with [FlagAckOffset] and
	// only for an ack given after the write.
	Offset Optional[uint64]
}

// MessageType implements [Message].
func (*PublishOK) MessageType() string { return "publish_ok" }

func (m *PublishOK) appendFields(o object) object {
	o = o.u64("request_id", m.RequestID)
	return o.optU64("offset", m.Offset)
}

func (m *PublishOK) readFields(f *fields) {
	f.u64("request_id", &m.RequestID)
	f.optU64("offset", &m.Offset)
}

// PublishError refuses a publish (wire 7.3, 16).
type PublishError struct {
	RequestID uint64
	Message   string // prose
	ErrorInfo
}

// MessageType implements [Message].
func (*PublishError) MessageType() string { return "publish_error" }

func (m *PublishError) appendFields(o object) object {
	o = o.u64("request_id", m.RequestID)
	o = o.text("message", m.Message)
	return m.ErrorInfo.appendFields(o)
}

func (m *PublishError) readFields(f *fields) {
	f.u64("request_id", &m.RequestID)
	f.text("message", &m.Message)
	m.ErrorInfo.readFields(f)
}

// ProducerInit asks for a producer id (wire 7.3, 9.6).
type ProducerInit struct {
	RequestID uint64
}

// MessageType implements [Message].
func (*ProducerInit) MessageType() string { return "producer_init" }

func (m *ProducerInit) appendFields(o object) object {
	return o.u64("request_id", m.RequestID)
}

func (m *ProducerInit) readFields(f *fields) {
	f.u64("request_id", &m.RequestID)
}

// ProducerInitOK answers producer_init (wire 7.3).
type ProducerInitOK struct {
	RequestID  uint64
	ProducerID uint64 // 64 random bits
}

// MessageType implements [Message].
func (*ProducerInitOK) MessageType() string { return "producer_init_ok" }

func (m *ProducerInitOK) appendFields(o object) object {
	o = o.u64("request_id", m.RequestID)
	return o.u64("producer_id", m.ProducerID)
}

func (m *ProducerInitOK) readFields(f *fields) {
	f.u64("request_id", &m.RequestID)
	f.u64("producer_id", &m.ProducerID)
}

// PublishIdempotent is the JSON form of an idempotent batch (wire 7.3, 9.6).
type PublishIdempotent struct {
	Tenant     string
	Namespace  string
	Stream     string
	Payloads   Block
	Key        Optional[[]byte]
	RequestID  uint64
	ProducerID uint64
	Sequence   uint64
}

// MessageType implements [Message].
func (*PublishIdempotent) MessageType() string { return "publish_idempotent" }

func (m *PublishIdempotent) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("namespace", m.Namespace)
	o = o.text("stream", m.Stream)
	o = o.block("payloads", m.Payloads)
	o = o.optBase64("key", m.Key)
	o = o.u64("request_id", m.RequestID)
	o = o.u64("producer_id", m.ProducerID)
	return o.u64("sequence", m.Sequence)
}

func (m *PublishIdempotent) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("namespace", &m.Namespace)
	f.text("stream", &m.Stream)
	f.block("payloads", &m.Payloads)
	f.optBase64("key", &m.Key)
	f.u64("request_id", &m.RequestID)
	f.u64("producer_id", &m.ProducerID)
	f.u64("sequence", &m.Sequence)
}

// PublishIf appends a batch only if it starts at ExpectedOffset (wire 7.3,
// 9.7).
type PublishIf struct {
	Tenant         string
	Namespace      string
	Stream         string
	Payloads       Block
	Key            Optional[[]byte]
	ExpectedOffset uint64
	RequestID      uint64
}

// MessageType implements [Message].
func (*PublishIf) MessageType() string { return "publish_if" }

func (m *PublishIf) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("namespace", m.Namespace)
	o = o.text("stream", m.Stream)
	o = o.block("payloads", m.Payloads)
	o = o.optBase64("key", m.Key)
	o = o.u64("expected_offset", m.ExpectedOffset)
	return o.u64("request_id", m.RequestID)
}

func (m *PublishIf) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("namespace", &m.Namespace)
	f.text("stream", &m.Stream)
	f.block("payloads", &m.Payloads)
	f.optBase64("key", &m.Key)
	f.u64("expected_offset", &m.ExpectedOffset)
	f.u64("request_id", &m.RequestID)
}

// PublishRefused refuses an idempotent or conditional batch (wire 7.3).
type PublishRefused struct {
	RequestID uint64
	Reason    RefusedReason
	Message   string // prose
}

// MessageType implements [Message].
func (*PublishRefused) MessageType() string { return "publish_refused" }

func (m *PublishRefused) appendFields(o object) object {
	o = o.u64("request_id", m.RequestID)
	o = m.Reason.append(o, "reason")
	return o.text("message", m.Message)
}

func (m *PublishRefused) readFields(f *fields) {
	f.u64("request_id", &m.RequestID)
	if f.must("reason") {
		m.Reason.read(f, "reason")
	}
	f.text("message", &m.Message)
}
