package wire

// Unknown is a message whose type this level does not know (wire 6 rule 6, 19).
// Its other members have been skipped.
type Unknown struct {
	Type string
	// RequestID is set when the message has a request_id that is a JSON number
	// and fits.
	RequestID    uint64
	HasRequestID bool
}

// MessageType implements [Message].
func (m *Unknown) MessageType() string { return m.Type }

func (m *Unknown) appendFields(o object) object {
	if !m.HasRequestID {
		return o
	}
	return o.u64("request_id", m.RequestID)
}

func (m *Unknown) readFields(f *fields) {
	if !f.at("request_id") {
		return
	}
	start := f.s.pos
	id, p := f.s.unsigned(^uint64(0))
	if p == "" {
		m.RequestID, m.HasRequestID = id, true
	} else {
		f.s.pos = start
		p = f.s.skip()
	}
	f.done("request_id", p)
}
