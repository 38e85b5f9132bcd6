package wire

// Flags say what a frame's payload is (wire 3.3).
type Flags uint16

// The flag registry (wire 3.3). Three bits and the ack bit are bases; the
// others modify one of them.
const (
	// FlagPublishBatch is a publish batch, client to broker.
	FlagPublishBatch Flags = 0x0001
	// FlagEventBatch is an event batch that names its subscription.
	FlagEventBatch Flags = 0x0002
	// FlagEventBatchShared is an event batch without a subscription id.
	FlagEventBatchShared Flags = 0x0004
	// FlagPublishAcked adds the correlation prefix; an ack is owed.
	FlagPublishAcked Flags = 0x0008
	// FlagPublishAck is the acknowledgement of a publish, broker to client.
	FlagPublishAck Flags = 0x0010
	// FlagEventOffsets adds the base offset to an event batch.
	FlagEventOffsets Flags = 0x0020
	// FlagPublishKeyed adds a routing key to a publish.
	FlagPublishKeyed Flags = 0x0040
	// FlagAckOwner names the shard's owner in an ack.
	FlagAckOwner Flags = 0x0080
	// FlagPublishIdempotent adds producer id and sequence to an acked publish.
	FlagPublishIdempotent Flags = 0x0100
	// FlagAckCode adds code and retry class to a failed ack.
	FlagAckCode Flags = 0x0200
	// FlagAckDetail adds reason and suggested wait to a failed ack with a code.
	FlagAckDetail Flags = 0x0400
	// FlagEventSkipped adds the count of skipped offsets to an event batch
	// with offsets.
	FlagEventSkipped Flags = 0x0800
	// FlagAckOffset adds the first record's offset to a successful ack. Offered
	// by a client it also unlocks the offset of publish_ok.
	FlagAckOffset Flags = 0x1000
	// FlagEventPublisher adds the publishing principal to an event batch.
	FlagEventPublisher Flags = 0x2000
	// FlagEventTimestamps adds an append time to every event.
	FlagEventTimestamps Flags = 0x4000

	// OriginalFlags is what a peer that advertises nothing understands.
	OriginalFlags Flags = 0x0007
	// KnownFlags is every bit of this level.
	KnownFlags Flags = 0x7FFF
)

const (
	publishModifiers = FlagPublishAcked | FlagPublishKeyed | FlagPublishIdempotent
	ackModifiers     = FlagAckOwner | FlagAckCode | FlagAckDetail | FlagAckOffset
	eventModifiers   = FlagEventOffsets | FlagEventSkipped | FlagEventPublisher | FlagEventTimestamps
)

// A FrameKind is the layout a legal combination of flags selects.
type FrameKind uint8

// The layouts.
const (
	FrameIllegal FrameKind = iota // no legal combination: refuse the frame
	FrameJSON                     // one JSON message
	FramePublish                  // [ParsePublish]
	FrameAck                      // [ParseAck]
	FrameEvents                   // [ParseEventBatch]
)

// Kind is the layout the flags select, or [FrameIllegal] when they are no
// combination of wire 3.4.
func (f Flags) Kind() FrameKind {
	switch {
	case f == 0:
		return FrameJSON
	case f&^publishModifiers == FlagPublishBatch:
		if f.Has(FlagPublishIdempotent) && !f.Has(FlagPublishAcked) {
			return FrameIllegal
		}
		return FramePublish
	case f&^ackModifiers == FlagPublishAck:
		if f.Has(FlagAckDetail) && !f.Has(FlagAckCode) || f.Has(FlagAckCode|FlagAckOffset) {
			return FrameIllegal
		}
		return FrameAck
	case f&^eventModifiers == FlagEventBatch, f&^eventModifiers == FlagEventBatchShared:
		if f.Has(FlagEventSkipped) && !f.Has(FlagEventOffsets) {
			return FrameIllegal
		}
		return FrameEvents
	}
	return FrameIllegal
}

// Has reports whether all bits of want are set.
func (f Flags) Has(want Flags) bool { return f&want == want }
