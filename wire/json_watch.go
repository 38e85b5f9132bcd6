package wire

// CacheWatch asks for the changes of one key or of the keys with a prefix;
// exactly one of the two is given (wire 7.5, 11).
type CacheWatch struct {
	Tenant         string
	Namespace      string
	Cache          string
	Key            Optional[[]byte]
	Prefix         Optional[[]byte] // empty: every key of the shard
	Shard          Optional[uint32]
	FromOffset     Optional[uint64] // first change not seen
	Retained       bool             // current values first
	SubscriptionID Optional[uint64]
}

// MessageType implements [Message].
func (*CacheWatch) MessageType() string { return "cache_watch" }

func (m *CacheWatch) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("namespace", m.Namespace)
	o = o.text("cache", m.Cache)
	o = o.optKey("key", m.Key)
	o = o.optKey("prefix", m.Prefix)
	o = o.optU32("shard", m.Shard)
	o = o.optU64("from_offset", m.FromOffset)
	o = o.zeroBoolean("retained", m.Retained)
	return o.optU64("subscription_id", m.SubscriptionID)
}

func (m *CacheWatch) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("namespace", &m.Namespace)
	f.text("cache", &m.Cache)
	f.optKey("key", &m.Key)
	f.optKey("prefix", &m.Prefix)
	f.optU32("shard", &m.Shard)
	f.optU64("from_offset", &m.FromOffset)
	f.zeroBoolean("retained", &m.Retained)
	f.optU64("subscription_id", &m.SubscriptionID)
}

// CacheWatchStarted answers cache_watch (wire 7.5, 11).
type CacheWatchStarted struct {
	SubscriptionID uint64
	ResumeOffset   uint64
	Resnapshot     bool             // changes were compacted away; current values follow
	RetainedCount  Optional[uint64] // exactly when retained was asked
}

// MessageType implements [Message].
func (*CacheWatchStarted) MessageType() string { return "cache_watch_started" }

func (m *CacheWatchStarted) appendFields(o object) object {
	o = o.u64("subscription_id", m.SubscriptionID)
	o = o.u64("resume_offset", m.ResumeOffset)
	o = o.boolean("resnapshot", m.Resnapshot)
	return o.optU64("retained_count", m.RetainedCount)
}

func (m *CacheWatchStarted) readFields(f *fields) {
	f.u64("subscription_id", &m.SubscriptionID)
	f.u64("resume_offset", &m.ResumeOffset)
	f.zeroBoolean("resnapshot", &m.Resnapshot)
	f.optU64("retained_count", &m.RetainedCount)
}

// CacheEvent is one change on a watch's event stream (wire 7.5, 11).
type CacheEvent struct {
	Key             []byte
	Value           Optional[[]byte] // absent: deleted
	Offset          uint64
	ExpiresAtMillis uint64 // Unix milliseconds; 0 never
	// Expired tells a delete by the broker, because the entry's time was over,
	// from a client's. It is ours: left out when false, and clients that do not
	// know the member ignore it (wire 6, rule 2) and see a delete.
	Expired bool
}

// MessageType implements [Message].
func (*CacheEvent) MessageType() string { return "cache_event" }

func (m *CacheEvent) appendFields(o object) object {
	o = o.key("key", m.Key)
	o = o.optBase64("value", m.Value)
	o = o.u64("offset", m.Offset)
	o = o.u64("expires_at_millis", m.ExpiresAtMillis)
	return o.zeroBoolean("expired", m.Expired)
}

func (m *CacheEvent) readFields(f *fields) {
	f.key("key", &m.Key)
	f.optBase64("value", &m.Value)
	f.u64("offset", &m.Offset)
	f.zeroU64("expires_at_millis", &m.ExpiresAtMillis)
	f.zeroBoolean("expired", &m.Expired)
}

// CacheWatchLagged ends a watch whose queue was full (wire 7.5, 11).
type CacheWatchLagged struct {
	ResumeFrom uint64
}

// MessageType implements [Message].
func (*CacheWatchLagged) MessageType() string { return "cache_watch_lagged" }

func (m *CacheWatchLagged) appendFields(o object) object {
	return o.u64("resume_from", m.ResumeFrom)
}

func (m *CacheWatchLagged) readFields(f *fields) {
	f.u64("resume_from", &m.ResumeFrom)
}
