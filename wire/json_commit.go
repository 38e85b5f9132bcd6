package wire

// Commit writes one event and keyed state changes as one record (wire 7.6,
// 13).
type Commit struct {
	Tenant         string
	Namespace      string
	Stream         string
	EntityKey      []byte
	Event          []byte
	Changes        []StateChange
	RequestID      uint64
	ExpectedOffset Optional[uint64] // with FeaturePublishConditional
}

// MessageType implements [Message].
func (*Commit) MessageType() string { return "commit" }

func (m *Commit) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("namespace", m.Namespace)
	o = o.text("stream", m.Stream)
	o = o.base64("entity_key", m.EntityKey)
	o = o.base64("event", m.Event)
	o = appendObjects(o, "changes", m.Changes)
	o = o.u64("request_id", m.RequestID)
	return o.optU64("expected_offset", m.ExpectedOffset)
}

func (m *Commit) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("namespace", &m.Namespace)
	f.text("stream", &m.Stream)
	f.base64("entity_key", &m.EntityKey)
	f.base64("event", &m.Event)
	if f.at("changes") {
		readObjects(f, "changes", &m.Changes)
	}
	f.u64("request_id", &m.RequestID)
	f.optU64("expected_offset", &m.ExpectedOffset)
}

// A StateChange is one keyed change of a commit (wire 7.6).
type StateChange struct {
	Delete bool // the key is deleted, and has no Value
	Key    []byte
	Value  []byte
}

func (c *StateChange) appendFields(o object) object {
	if c.Delete {
		return o.text("op", "delete").key("key", c.Key)
	}
	return o.text("op", "put").key("key", c.Key).base64("value", c.Value)
}

func (c *StateChange) readFields(f *fields) {
	if f.must("op") {
		word(f, "op", &c.Delete, func(op string) (bool, bool) {
			return op == "delete", op == "delete" || op == "put"
		})
	}
	f.key("key", &c.Key)
	if f.maybe("value") {
		f.readBase64("value", &c.Value)
	}
	if f.complete() && c.Delete {
		c.Value = nil
	} else if f.complete() && c.Value == nil {
		f.fail("value", badMissing)
	}
}

// CommitOK answers commit (wire 7.6).
type CommitOK struct {
	RequestID uint64
	Offset    uint64 // of the event, and the version of every key
}

// MessageType implements [Message].
func (*CommitOK) MessageType() string { return "commit_ok" }

func (m *CommitOK) appendFields(o object) object {
	o = o.u64("request_id", m.RequestID)
	return o.u64("offset", m.Offset)
}

func (m *CommitOK) readFields(f *fields) {
	f.u64("request_id", &m.RequestID)
	f.u64("offset", &m.Offset)
}

// StateGet reads one key of an entity's state (wire 7.6, 13).
type StateGet struct {
	Tenant    string
	Namespace string
	Stream    string
	EntityKey []byte
	Key       []byte
	RequestID uint64
}

// MessageType implements [Message].
func (*StateGet) MessageType() string { return "state_get" }

func (m *StateGet) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("namespace", m.Namespace)
	o = o.text("stream", m.Stream)
	o = o.base64("entity_key", m.EntityKey)
	o = o.key("key", m.Key)
	return o.u64("request_id", m.RequestID)
}

func (m *StateGet) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("namespace", &m.Namespace)
	f.text("stream", &m.Stream)
	f.base64("entity_key", &m.EntityKey)
	f.key("key", &m.Key)
	f.u64("request_id", &m.RequestID)
}

// StateValue answers state_get (wire 7.6, 13).
type StateValue struct {
	Value     Optional[[]byte] // absent: written as null
	Version   Optional[uint64]
	AsOf      Optional[uint64] // the last commit it reflects
	RequestID uint64
}

// MessageType implements [Message].
func (*StateValue) MessageType() string { return "state_value" }

func (m *StateValue) appendFields(o object) object {
	o = o.nullBase64("value", m.Value)
	o = o.optU64("version", m.Version)
	o = o.optU64("as_of", m.AsOf)
	return o.u64("request_id", m.RequestID)
}

func (m *StateValue) readFields(f *fields) {
	f.nullBase64("value", &m.Value)
	f.optU64("version", &m.Version)
	f.optU64("as_of", &m.AsOf)
	f.u64("request_id", &m.RequestID)
}
