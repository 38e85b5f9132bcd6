package session

import (
	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/wire"
)

// Encoder writes the event frames the core shares between subscribers
// (wire 4.5). A frame of the shared form is a head and the record block as
// the publisher sent it.
type Encoder struct{}

// eventHeadroom holds the head of every shape without a publisher.
const eventHeadroom = wire.HeaderSize + 8 + 8

// Headroom implements [stream.Encoder].
func (Encoder) Headroom() int { return eventHeadroom }

// AppendHead implements [stream.Encoder].
func (Encoder) AppendHead(dst []byte, e *stream.Envelope, s stream.Shape) []byte {
	m := e.Meta()
	return wire.AppendEventHead(dst, flagsOf(s), 0, m.BaseOffset, m.Skipped, []byte(m.Publisher), len(e.Block()))
}

// AppendFrame implements [stream.Encoder] for frames with a time a record,
// which are not made of the block.
func (Encoder) AppendFrame(dst []byte, e *stream.Envelope, s stream.Shape) []byte {
	m, block := e.Meta(), wire.Block(e.Block())
	dst = wire.AppendEventHead(dst, flagsOf(s), 0, m.BaseOffset, m.Skipped, []byte(m.Publisher), wire.TimedSize(block))
	return wire.AppendTimed(dst, block, m.TimestampMicros)
}

func flagsOf(s stream.Shape) wire.Flags {
	f := wire.FlagEventBatchShared
	for _, bit := range [...]struct {
		shape stream.Shape
		flag  wire.Flags
	}{
		{stream.WithOffsets, wire.FlagEventOffsets},
		{stream.WithSkipped, wire.FlagEventSkipped},
		{stream.WithPublisher, wire.FlagEventPublisher},
		{stream.WithTimestamps, wire.FlagEventTimestamps},
	} {
		if s&bit.shape != 0 {
			f |= bit.flag
		}
	}
	return f
}

// shapeFor is the fields of an event frame that a client with offer o reads.
func shapeFor(o wire.Offer) stream.Shape {
	var s stream.Shape
	if o.HasFlag(wire.FlagEventOffsets) {
		s |= stream.WithOffsets
		if o.HasFlag(wire.FlagEventSkipped) {
			s |= stream.WithSkipped
		}
	}
	if o.HasFlag(wire.FlagEventPublisher) {
		s |= stream.WithPublisher
	}
	if o.HasFlag(wire.FlagEventTimestamps) {
		s |= stream.WithTimestamps
	}
	return s
}
