package wire

// MaxAckBatch is the most offsets of one [GroupAckBatch], as many as one poll
// may give.
const MaxAckBatch = 1000

// GroupAckBatch finishes records of one shard in one request. It is a request
// of Felix's own: a broker that serves it says so in [AuthOK]. Answer:
// group_acked, once every offset of it is answered for.
type GroupAckBatch struct {
	GroupRef
	Offsets   []uint64 // 1 to MaxAckBatch
	RequestID uint64
}

// MessageType implements [Message].
func (*GroupAckBatch) MessageType() string { return "group_ack_batch" }

func (m *GroupAckBatch) appendFields(o object) object {
	o = m.GroupRef.appendFields(o)
	o = appendNumbers(o, "offsets", m.Offsets)
	return o.u64("request_id", m.RequestID)
}

func (m *GroupAckBatch) readFields(f *fields) {
	m.GroupRef.readFields(f)
	if f.must("offsets") {
		unsignedList(f, "offsets", &m.Offsets)
	}
	f.u64("request_id", &m.RequestID)
}

// GroupAcked answers group_ack_batch: what is not in Failed is finished, as
// group_ack says it.
type GroupAcked struct {
	Failed    []GroupAckFailure // left out when empty
	RequestID uint64
}

// MessageType implements [Message].
func (*GroupAcked) MessageType() string { return "group_acked" }

func (m *GroupAcked) appendFields(o object) object {
	if len(m.Failed) > 0 {
		o = appendObjects(o, "failed", m.Failed)
	}
	return o.u64("request_id", m.RequestID)
}

func (m *GroupAcked) readFields(f *fields) {
	if f.maybe("failed") {
		readObjects(f, "failed", &m.Failed)
	}
	f.u64("request_id", &m.RequestID)
}

// GroupAckFailure is why one record of a batch is not finished, in the words
// that [Error] would have for a group_ack of it.
type GroupAckFailure struct {
	Offset uint64
	Error
}

func (m *GroupAckFailure) appendFields(o object) object {
	o = o.u64("offset", m.Offset)
	return m.Error.appendFields(o)
}

func (m *GroupAckFailure) readFields(f *fields) {
	f.u64("offset", &m.Offset)
	m.Error.readFields(f)
}
