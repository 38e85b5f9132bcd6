package stream

// A Start says where a subscription begins. The zero value is the tail.
type Start struct {
	at     startAt
	offset uint64
}

type startAt uint8

const (
	atLatest startAt = iota
	atEarliest
	atOffset
)

// Latest starts at the tail: live batches only.
func Latest() Start { return Start{} }

// Earliest starts at the oldest record held; never an error.
func Earliest() Start { return Start{at: atEarliest} }

// FromOffset starts at n, the first record not yet seen. The tail itself is
// valid.
func FromOffset(n uint64) Start { return Start{at: atOffset, offset: n} }

// resolve turns s into an offset within [oldest, tail].
func (s Start) resolve(oldest, tail uint64) (uint64, error) {
	switch s.at {
	case atEarliest:
		return oldest, nil
	case atOffset:
		if s.offset < oldest {
			return 0, &CursorError{Reason: TooOld, Requested: s.offset, Available: oldest}
		}
		if s.offset > tail {
			return 0, &CursorError{Reason: InFuture, Requested: s.offset, Available: tail}
		}
		return s.offset, nil
	default:
		return tail, nil
	}
}
