package wire

import "encoding/json"

// Auth is the first message on every stream a client opens (wire 7.1, 5).
// Tenant must be that of the token.
type Auth struct {
	Tenant           string
	Token            string          // a Felix JWT (wire 17)
	ClientFlags      Optional[Flags] // presence asks for auth_ok
	ClientFeatures   Optional[Features]
	ClientFeaturesHi Optional[FeaturesHi] // only with FeatureExtended
}

// MessageType implements [Message].
func (*Auth) MessageType() string { return "auth" }

func (m *Auth) appendFields(o object) object {
	o = o.text("tenant_id", m.Tenant)
	o = o.text("token", m.Token)
	if m.ClientFlags.Set {
		o = o.u64("client_flags", uint64(m.ClientFlags.Value))
	}
	if m.ClientFeatures.Set {
		o = o.u64("client_features", uint64(m.ClientFeatures.Value))
	}
	if m.ClientFeaturesHi.Set {
		o = o.u64("client_features_hi", uint64(m.ClientFeaturesHi.Value))
	}
	return o
}

func (m *Auth) readFields(f *fields) {
	f.text("tenant_id", &m.Tenant)
	f.text("token", &m.Token)
	optUnsigned(f, "client_flags", &m.ClientFlags)
	optUnsigned(f, "client_features", &m.ClientFeatures)
	optUnsigned(f, "client_features_hi", &m.ClientFeaturesHi)
}

// AuthOK answers an auth that offered flags (wire 7.1).
type AuthOK struct {
	ServerFlags      Flags
	ServerFeatures   Optional[Features]   // absent is 0; Felix always writes it
	ServerFeaturesHi Optional[FeaturesHi] // only with FeatureExtended
	ListenerPorts    []uint16             // all UDP ports of the broker; left out when empty (wire 2.6)
	PublishWindow    Optional[uint32]     // meaningful with FeaturePublishPipeline (wire 9.5)
	GroupAckBatch    uint32               // most offsets of a group_ack_batch, of Felix's own; 0: not served
}

// MessageType implements [Message].
func (*AuthOK) MessageType() string { return "auth_ok" }

func (m *AuthOK) appendFields(o object) object {
	o = o.u64("server_flags", uint64(m.ServerFlags))
	if m.ServerFeatures.Set {
		o = o.u64("server_features", uint64(m.ServerFeatures.Value))
	}
	if m.ServerFeaturesHi.Set {
		o = o.u64("server_features_hi", uint64(m.ServerFeaturesHi.Value))
	}
	if len(m.ListenerPorts) > 0 {
		o = appendNumbers(o, "listener_ports", m.ListenerPorts)
	}
	o = o.optU32("publish_window", m.PublishWindow)
	return o.zeroU32("group_ack_batch", m.GroupAckBatch)
}

func (m *AuthOK) readFields(f *fields) {
	if f.must("server_flags") {
		readUnsigned(f, "server_flags", &m.ServerFlags)
	}
	optUnsigned(f, "server_features", &m.ServerFeatures)
	optUnsigned(f, "server_features_hi", &m.ServerFeaturesHi)
	if f.maybe("listener_ports") {
		unsignedList(f, "listener_ports", &m.ListenerPorts)
	}
	f.optU32("publish_window", &m.PublishWindow)
	f.zeroU32("group_ack_batch", &m.GroupAckBatch)
}

// OK answers an auth without flags, and a cache_put without request id (wire
// 7.1).
type OK struct{}

// MessageType implements [Message].
func (*OK) MessageType() string { return "ok" }

func (*OK) appendFields(o object) object { return o }

func (*OK) readFields(*fields) {}

// Error says that a request failed (wire 7.1). It carries no request id: it
// answers the oldest unanswered request of a one-request stream, or ends the
// stream.
type Error struct {
	Message string // prose
	ErrorInfo
}

// MessageType implements [Message].
func (*Error) MessageType() string { return "error" }

func (m *Error) appendFields(o object) object {
	o = o.text("message", m.Message)
	return m.ErrorInfo.appendFields(o)
}

func (m *Error) readFields(f *fields) {
	f.text("message", &m.Message)
	m.ErrorInfo.readFields(f)
}

// ErrorInfo is the part of an error meant for programs, sent to peers with
// [FeatureErrorCodes] (wire 16). The words are open sets and kept as sent;
// [Error.Failure] reads them.
type ErrorInfo struct {
	Code   Optional[string]
	Retry  Optional[string]
	Detail Optional[Detail]
}

func (m *ErrorInfo) appendFields(o object) object {
	o = o.optText("code", m.Code)
	o = o.optText("retry", m.Retry)
	if m.Detail.Set {
		o = o.object("detail", &m.Detail.Value)
	}
	return o
}

func (m *ErrorInfo) readFields(f *fields) {
	f.optText("code", &m.Code)
	f.optText("retry", &m.Retry)
	optObject(f, "detail", &m.Detail)
}

func (d *Detail) appendFields(o object) object {
	if d.Reason != "" {
		o = o.text("reason", d.Reason)
	}
	return o.zeroU64("retry_after_ms", d.RetryAfterMS)
}

func (d *Detail) readFields(f *fields) {
	if f.maybe("reason") {
		f.readText("reason", &d.Reason)
	}
	if f.maybe("retry_after_ms") {
		readUnsigned(f, "retry_after_ms", &d.RetryAfterMS)
	}
}

// Unsupported answers a request of a type the broker does not serve, to a peer
// with [FeatureUnsupported] (wire 7.1).
type Unsupported struct {
	RequestType string           // "extension" for an extension request
	Extension   Optional[string] // the name of that extension
	RequestID   Optional[uint64]
}

// MessageType implements [Message].
func (*Unsupported) MessageType() string { return "unsupported" }

func (m *Unsupported) appendFields(o object) object {
	o = o.text("request_type", m.RequestType)
	o = o.optText("extension", m.Extension)
	return o.optU64("request_id", m.RequestID)
}

func (m *Unsupported) readFields(f *fields) {
	f.text("request_type", &m.RequestType)
	f.optText("extension", &m.Extension)
	f.optU64("request_id", &m.RequestID)
}

// Extension is the area for messages outside this protocol (wire 7.1). None
// exists.
type Extension struct {
	Name      string
	RequestID Optional[uint64]
	// Body is any one JSON value, kept byte for byte, and nil for null. One that
	// is no JSON value is left out when it is written.
	Body json.RawMessage
}

// MessageType implements [Message].
func (*Extension) MessageType() string { return "extension" }

func (m *Extension) appendFields(o object) object {
	o = o.text("name", m.Name)
	o = o.optU64("request_id", m.RequestID)
	return o.raw("body", m.Body)
}

func (m *Extension) readFields(f *fields) {
	f.text("name", &m.Name)
	f.optU64("request_id", &m.RequestID)
	f.raw("body", &m.Body)
}
