package stream

// A Shape is the set of optional fields an event frame carries (wire 4.5).
type Shape uint8

const (
	// WithOffsets adds the base offset.
	WithOffsets Shape = 1 << iota
	// WithSkipped adds the count of offsets before the batch that hold no
	// deliverable record.
	WithSkipped
	// WithPublisher adds who published the batch.
	WithPublisher
	// WithTimestamps adds a time before every record, so that such a frame's
	// body is not the block.
	WithTimestamps

	shapeCount = 1 << iota
)

// An Encoder writes event frames. The core knows no protocol: the room that
// does supplies one. It must be safe for concurrent use and must not keep dst
// or the envelope.
type Encoder interface {
	// Headroom is how many bytes are kept free before every block. A head of
	// at most that length makes a frame in place, without a copy.
	Headroom() int
	// AppendHead appends what goes before the block in a frame of shape s,
	// which never has WithTimestamps: the frame is head and block.
	AppendHead(dst []byte, e *Envelope, s Shape) []byte
	// AppendFrame appends the whole frame of a shape with WithTimestamps.
	AppendFrame(dst []byte, e *Envelope, s Shape) []byte
}

// bareBlock is the Encoder of a broker nobody reads over a wire: the frame is
// the block.
type bareBlock struct{}

func (bareBlock) Headroom() int { return 0 }

func (bareBlock) AppendHead(dst []byte, _ *Envelope, _ Shape) []byte { return dst }

func (bareBlock) AppendFrame(dst []byte, e *Envelope, _ Shape) []byte {
	return append(dst, e.Block()...)
}
