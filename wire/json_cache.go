package wire

// CachePut stores a value (wire 7.5, 11). Without a RequestID it is answered
// ok and ends the stream.
type CachePut struct {
	Tenant    string
	Namespace string
	Cache     string
	Key       []byte
	Value     []byte
	RequestID Optional[uint64]
	TTLMS     Optional[uint64] // milliseconds; absent never expires
}

// MessageType implements [Message].
func (*CachePut) MessageType() string { return "cache_put" }

func (m *CachePut) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("namespace", m.Namespace)
	o = o.text("cache", m.Cache)
	o = o.key("key", m.Key)
	o = o.base64("value", m.Value)
	o = o.optU64("request_id", m.RequestID)
	return o.nullU64("ttl_ms", m.TTLMS)
}

func (m *CachePut) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("namespace", &m.Namespace)
	f.text("cache", &m.Cache)
	f.key("key", &m.Key)
	f.base64("value", &m.Value)
	f.optU64("request_id", &m.RequestID)
	f.optU64("ttl_ms", &m.TTLMS)
}

// CacheGet reads a value (wire 7.5, 11).
type CacheGet struct {
	Tenant    string
	Namespace string
	Cache     string
	Key       []byte
	RequestID Optional[uint64]
}

// MessageType implements [Message].
func (*CacheGet) MessageType() string { return "cache_get" }

func (m *CacheGet) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("namespace", m.Namespace)
	o = o.text("cache", m.Cache)
	o = o.key("key", m.Key)
	return o.optU64("request_id", m.RequestID)
}

func (m *CacheGet) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("namespace", &m.Namespace)
	f.text("cache", &m.Cache)
	f.key("key", &m.Key)
	f.optU64("request_id", &m.RequestID)
}

// CacheDelete removes a value and returns it (wire 7.5, 11).
type CacheDelete struct {
	Tenant    string
	Namespace string
	Cache     string
	Key       []byte
	RequestID Optional[uint64]
}

// MessageType implements [Message].
func (*CacheDelete) MessageType() string { return "cache_delete" }

func (m *CacheDelete) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("namespace", m.Namespace)
	o = o.text("cache", m.Cache)
	o = o.key("key", m.Key)
	return o.optU64("request_id", m.RequestID)
}

func (m *CacheDelete) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("namespace", &m.Namespace)
	f.text("cache", &m.Cache)
	f.key("key", &m.Key)
	f.optU64("request_id", &m.RequestID)
}

// CacheValue answers cache_get and cache_delete (wire 7.5, 11).
type CacheValue struct {
	Tenant    string
	Namespace string
	Cache     string
	Key       []byte
	Value     Optional[[]byte] // absent: a miss, written as null
	RequestID Optional[uint64]
	Version   Optional[uint64] // hits of a get, with FeatureCacheConditional
}

// MessageType implements [Message].
func (*CacheValue) MessageType() string { return "cache_value" }

func (m *CacheValue) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("namespace", m.Namespace)
	o = o.text("cache", m.Cache)
	o = o.key("key", m.Key)
	o = o.nullBase64("value", m.Value)
	o = o.optU64("request_id", m.RequestID)
	return o.optU64("version", m.Version)
}

func (m *CacheValue) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("namespace", &m.Namespace)
	f.text("cache", &m.Cache)
	f.key("key", &m.Key)
	f.nullBase64("value", &m.Value)
	f.optU64("request_id", &m.RequestID)
	f.optU64("version", &m.Version)
}

// CacheOK is the success of cache_put and of several group requests (wire
// 7.5).
type CacheOK struct {
	RequestID uint64
}

// MessageType implements [Message].
func (*CacheOK) MessageType() string { return "cache_ok" }

func (m *CacheOK) appendFields(o object) object {
	return o.u64("request_id", m.RequestID)
}

func (m *CacheOK) readFields(f *fields) {
	f.u64("request_id", &m.RequestID)
}

// CachePutIf stores a value if a condition holds (wire 7.5, 11).
type CachePutIf struct {
	Tenant    string
	Namespace string
	Cache     string
	Key       []byte
	Value     []byte
	TTLMS     Optional[uint64] // milliseconds; absent never expires
	Condition Condition
	RequestID uint64
}

// MessageType implements [Message].
func (*CachePutIf) MessageType() string { return "cache_put_if" }

func (m *CachePutIf) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("namespace", m.Namespace)
	o = o.text("cache", m.Cache)
	o = o.key("key", m.Key)
	o = o.base64("value", m.Value)
	o = o.optU64("ttl_ms", m.TTLMS)
	o = m.Condition.append(o, "condition")
	return o.u64("request_id", m.RequestID)
}

func (m *CachePutIf) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("namespace", &m.Namespace)
	f.text("cache", &m.Cache)
	f.key("key", &m.Key)
	f.base64("value", &m.Value)
	f.optU64("ttl_ms", &m.TTLMS)
	if f.must("condition") {
		m.Condition.read(f, "condition")
	}
	f.u64("request_id", &m.RequestID)
}

// CacheDeleteIf removes a value that has this version (wire 7.5, 11).
type CacheDeleteIf struct {
	Tenant    string
	Namespace string
	Cache     string
	Key       []byte
	Version   uint64
	RequestID uint64
}

// MessageType implements [Message].
func (*CacheDeleteIf) MessageType() string { return "cache_delete_if" }

func (m *CacheDeleteIf) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("namespace", m.Namespace)
	o = o.text("cache", m.Cache)
	o = o.key("key", m.Key)
	o = o.u64("version", m.Version)
	return o.u64("request_id", m.RequestID)
}

func (m *CacheDeleteIf) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("namespace", &m.Namespace)
	f.text("cache", &m.Cache)
	f.key("key", &m.Key)
	f.u64("version", &m.Version)
	f.u64("request_id", &m.RequestID)
}

// CacheConditionResult answers cache_put_if and cache_delete_if (wire 7.5,
// 11).
type CacheConditionResult struct {
	Applied   bool
	Version   Optional[uint64] // the new version, else the current one
	RequestID uint64
}

// MessageType implements [Message].
func (*CacheConditionResult) MessageType() string { return "cache_condition_result" }

func (m *CacheConditionResult) appendFields(o object) object {
	o = o.boolean("applied", m.Applied)
	o = o.optU64("version", m.Version)
	return o.u64("request_id", m.RequestID)
}

func (m *CacheConditionResult) readFields(f *fields) {
	f.boolean("applied", &m.Applied)
	f.optU64("version", &m.Version)
	f.u64("request_id", &m.RequestID)
}
