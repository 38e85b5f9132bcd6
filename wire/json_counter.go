package wire

// CounterAdd adds to a counter (wire 7.5, 11).
type CounterAdd struct {
	Tenant    string
	Namespace string
	Cache     string
	Key       []byte
	Delta     int64
	RequestID uint64
}

// MessageType implements [Message].
func (*CounterAdd) MessageType() string { return "counter_add" }

func (m *CounterAdd) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("namespace", m.Namespace)
	o = o.text("cache", m.Cache)
	o = o.key("key", m.Key)
	o = o.i64("delta", m.Delta)
	return o.u64("request_id", m.RequestID)
}

func (m *CounterAdd) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("namespace", &m.Namespace)
	f.text("cache", &m.Cache)
	f.key("key", &m.Key)
	f.i64("delta", &m.Delta)
	f.u64("request_id", &m.RequestID)
}

// CounterGet reads a counter (wire 7.5, 11).
type CounterGet struct {
	Tenant    string
	Namespace string
	Cache     string
	Key       []byte
	RequestID uint64
}

// MessageType implements [Message].
func (*CounterGet) MessageType() string { return "counter_get" }

func (m *CounterGet) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("namespace", m.Namespace)
	o = o.text("cache", m.Cache)
	o = o.key("key", m.Key)
	return o.u64("request_id", m.RequestID)
}

func (m *CounterGet) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("namespace", &m.Namespace)
	f.text("cache", &m.Cache)
	f.key("key", &m.Key)
	f.u64("request_id", &m.RequestID)
}

// CounterValue answers counter_add and counter_get (wire 7.5).
type CounterValue struct {
	Value     Optional[int64] // absent: never written
	RequestID uint64
}

// MessageType implements [Message].
func (*CounterValue) MessageType() string { return "counter_value" }

func (m *CounterValue) appendFields(o object) object {
	o = o.optI64("value", m.Value)
	return o.u64("request_id", m.RequestID)
}

func (m *CounterValue) readFields(f *fields) {
	f.optI64("value", &m.Value)
	f.u64("request_id", &m.RequestID)
}
