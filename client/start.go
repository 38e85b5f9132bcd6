package client

import (
	"strconv"

	"github.com/felixlog/felix/wire"
)

// A Start is a position to subscribe from. The zero value is [Latest].
type Start struct{ w wire.Start }

// Latest starts with the next record published.
func Latest() Start { return Start{wire.Start{Kind: wire.StartLatest}} }

// Earliest starts with the oldest record held.
func Earliest() Start { return Start{wire.Start{Kind: wire.StartEarliest}} }

// Offset starts at an offset, that of the first record not yet seen. One
// past the end of the stream, or no longer held, is a [*CursorError].
func Offset(n uint64) Start { return Start{wire.StartAt(n)} }

// String is "latest", "earliest" or "offset N".
func (s Start) String() string {
	switch s.w.Kind {
	case wire.StartEarliest:
		return "earliest"
	case wire.StartOffset:
		return "offset " + strconv.FormatUint(s.w.Offset, 10)
	default:
		return "latest"
	}
}
