package wire

// An Offer is what one side of a connection has said it understands (wire 5).
// The zero value is a side that understands nothing; [LegacyOffer] is one that
// says nothing.
type Offer struct {
	Flags Flags
	// Features includes FeatureExtended when the side has set that marker.
	Features   Features
	FeaturesHi FeaturesHi
	// HasFlags: the side speaks negotiation at all. Without it the offer's
	// flags are OriginalFlags.
	HasFlags bool
}

// LegacyOffer is what a peer without negotiation understands (wire 5.1, 21).
func LegacyOffer() Offer { return Offer{Flags: OriginalFlags} }

// Offer is what the client offers. Features count even without flags; the
// second word counts only with its marker (wire 5.1, 5.3).
func (m *Auth) Offer() Offer {
	o := Offer{
		Flags:      m.ClientFlags.Or(OriginalFlags),
		Features:   m.ClientFeatures.Value,
		FeaturesHi: m.ClientFeaturesHi.Value,
		HasFlags:   m.ClientFlags.Set,
	}
	return o.withoutUnmarked()
}

// Offer is what the broker offers (wire 5.1, 5.3).
func (m *AuthOK) Offer() Offer {
	o := Offer{
		Flags:      m.ServerFlags,
		Features:   m.ServerFeatures.Value,
		FeaturesHi: m.ServerFeaturesHi.Value,
		HasFlags:   true,
	}
	return o.withoutUnmarked()
}

func (o Offer) withoutUnmarked() Offer {
	if !o.Has(FeatureExtended) {
		o.FeaturesHi = 0
	}
	return o
}

// Has reports whether all features of f are offered.
func (o Offer) Has(f Features) bool { return o.Features&f == f }

// HasHi reports whether all features of f are offered.
func (o Offer) HasHi(f FeaturesHi) bool { return o.FeaturesHi&f == f }

// HasFlag reports whether all flags of f may be sent to this side. The original
// flags need no offer (wire 3.3).
func (o Offer) HasFlag(f Flags) bool { return (o.Flags | OriginalFlags).Has(f) }

// Pipelined reports whether this client may be granted a publish window
// (wire 9.5).
func (o Offer) Pipelined() bool { return o.HasFlags && o.Has(FeaturePublishPipeline) }

// Auth is the message with which a client makes this offer.
func (o Offer) Auth(tenant, token string) *Auth {
	m := &Auth{Tenant: tenant, Token: token}
	if !o.HasFlags {
		return m
	}
	m.ClientFlags = Some(o.Flags)
	m.ClientFeatures = Some(o.Features)
	if o.FeaturesHi != 0 {
		m.ClientFeatures.Value |= FeatureExtended
		m.ClientFeaturesHi = Some(o.FeaturesHi)
	}
	return m
}

// AuthOK is the message with which a broker makes this offer to a client that
// offered flags. The second word goes only to a client that set the marker
// (wire 5.3). The caller adds listener ports and publish window.
func (o Offer) AuthOK(client Offer) *AuthOK {
	m := &AuthOK{ServerFlags: o.Flags, ServerFeatures: Some(o.Features &^ FeatureExtended)}
	if o.FeaturesHi != 0 && client.Has(FeatureExtended) {
		m.ServerFeatures.Value |= FeatureExtended
		m.ServerFeaturesHi = Some(o.FeaturesHi)
	}
	return m
}

// EventFlags is f, the flags of an event batch with all that is known about it,
// without what this client has not offered (wire 10).
func (o Offer) EventFlags(f Flags) Flags {
	f &= o.Flags | FlagEventBatch | FlagEventBatchShared
	if !f.Has(FlagEventOffsets) {
		f &^= FlagEventSkipped
	}
	return f
}

// ShapeAck takes from an ack what this client has not offered (wire 16.3). The
// caller fills in all it knows.
func (o Offer) ShapeAck(a *Ack) {
	a.HasCode = a.HasCode && o.HasFlag(FlagAckCode)
	a.HasDetail = a.HasDetail && a.HasCode && o.HasFlag(FlagAckDetail)
	a.HasOwner = a.HasOwner && o.HasFlag(FlagAckOwner)
	a.HasOffset = a.HasOffset && o.HasFlag(FlagAckOffset)
}

// FailedAck is the binary refusal of an acked publish, shaped for this client.
func (o Offer) FailedAck(requestID uint64, f Failure) Ack {
	a := Ack{
		RequestID: requestID,
		Failed:    true,
		Message:   f.Message,
		HasCode:   f.Code != 0,
		Code:      f.Code,
		Retry:     f.class(),
		HasDetail: f.Detail != Detail{},
		Detail:    f.Detail,
	}
	o.ShapeAck(&a)
	return a
}

// AckOffset is the offset of a publish_ok, absent unless this client offered
// to read it (wire 16.3).
func (o Offer) AckOffset(offset uint64) Optional[uint64] {
	if !o.HasFlag(FlagAckOffset) {
		return Optional[uint64]{}
	}
	return Some(offset)
}

// Error is the error message of a refusal, shaped for this client (wire 16.3).
func (o Offer) Error(f Failure) *Error {
	return &Error{Message: f.Message, ErrorInfo: o.errorInfo(f)}
}

// PublishError is the refusal of a JSON publish, shaped for this client.
func (o Offer) PublishError(requestID uint64, f Failure) *PublishError {
	return &PublishError{RequestID: requestID, Message: f.Message, ErrorInfo: o.errorInfo(f)}
}

func (o Offer) errorInfo(f Failure) ErrorInfo {
	if f.Code == 0 || !o.Has(FeatureErrorCodes) {
		return ErrorInfo{}
	}
	info := ErrorInfo{Code: Some(f.Code.String()), Retry: Some(f.class().String())}
	if f.Detail != (Detail{}) {
		info.Detail = Some(f.Detail)
	}
	return info
}

// NotLeader sends a request elsewhere: by m itself to a client that reads it,
// otherwise by an error that names the owner (wire 15, 21).
func (o Offer) NotLeader(m *NotLeader) Message {
	if o.Has(FeatureRedirect) {
		return m
	}
	text := "not the leader of this shard; it is " + m.NodeID
	if m.Addr.Set {
		text += " at " + m.Addr.Value
	}
	return o.Error(Failure{Code: CodeNotLeader, Message: text})
}

// Unsupported answers a request of an unknown type, and reports whether this
// client reads the answer; otherwise its stream is closed (wire 19).
func (o Offer) Unsupported(m *Unknown) (*Unsupported, bool) {
	answer := &Unsupported{
		RequestType: cutText(m.Type, MaxName), // what the peer sent must not make a long answer
		RequestID:   Optional[uint64]{Value: m.RequestID, Set: m.HasRequestID},
	}
	return answer, o.Has(FeatureUnsupported)
}

// UnsupportedExtension likewise answers an extension request (wire 7.1).
func (o Offer) UnsupportedExtension(m *Extension) (*Unsupported, bool) {
	answer := &Unsupported{
		RequestType: m.MessageType(),
		Extension:   Some(cutText(m.Name, MaxName)),
		RequestID:   m.RequestID,
	}
	return answer, o.Has(FeatureUnsupported)
}
