package kvlog

import (
	"errors"
	"fmt"
)

// ErrClosed answers calls on a projection that was closed.
var ErrClosed = errors.New("key index closed")

// ErrReloading answers calls while the index is read anew. Trying again helps.
var ErrReloading = errors.New("key index is being read anew")

// A CorruptionError says that a committed record does not decode, or is not
// the one the index expects there. The projection is refused, never guessed.
type CorruptionError struct {
	// Offset is that of the record.
	Offset uint64
	Detail string
}

func (e *CorruptionError) Error() string {
	return fmt.Sprintf("record at offset %d: %s", e.Offset, e.Detail)
}

// A RecordError says why bytes are not a record of this kind of log.
type RecordError struct{ Detail string }

func (e *RecordError) Error() string { return "malformed record: " + e.Detail }

// An InvalidWriteError refuses a write before anything is staged.
type InvalidWriteError struct{ Detail string }

func (e *InvalidWriteError) Error() string { return e.Detail }

// An OverflowError refuses a delta: the sum would leave the range of int64.
// Nothing was written.
type OverflowError struct {
	// Sum is the counter's value, staged deltas included.
	Sum, Delta int64
}

func (e *OverflowError) Error() string {
	return fmt.Sprintf("counter at %d: adding %d leaves the range of a 64-bit integer", e.Sum, e.Delta)
}
