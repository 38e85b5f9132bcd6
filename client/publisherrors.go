package client

import (
	"fmt"

	"github.com/felixlog/felix/wire"
)

// A RefusalReason is why a broker refused a batch of a [Producer].
type RefusalReason string

const (
	// UnknownProducer: the broker remembers nothing of the producer, and the
	// batch is not its first.
	UnknownProducer RefusalReason = "unknown_producer"
	// SequenceExpired: the batch's number is older than what the broker
	// remembers; whether it was stored cannot be told any longer.
	SequenceExpired RefusalReason = "sequence_expired"
	// SequenceReused: another batch was stored under the number.
	SequenceReused RefusalReason = "sequence_reused"
	// SequenceGap: batches before this one are missing.
	SequenceGap RefusalReason = "sequence_gap"
	// RefusedNotLeader: another broker leads the shard. A [Producer] follows
	// it there by itself, and reports this only when it found no one.
	RefusedNotLeader RefusalReason = "not_leader"
)

// A RefusedError is a batch of a [Producer] that the broker refused by its
// number (wire 9.6). Nothing was written. It is the cause inside the
// [*Error] that the call reports.
type RefusedError struct {
	// Reason says why.
	Reason RefusalReason
	// Sequence is the number of the batch in its shard.
	Sequence uint64
	// Expected is the number the broker waits for, with SequenceGap.
	Expected uint64
	// NodeID and Addr name the leader, with RefusedNotLeader; Addr is empty
	// when it is not published.
	NodeID, Addr string
}

func (e *RefusedError) Error() string {
	switch e.Reason {
	case SequenceGap:
		return fmt.Sprintf("batch %d refused: the broker waits for batch %d", e.Sequence, e.Expected)
	case RefusedNotLeader:
		return fmt.Sprintf("batch %d refused: the shard is led by %s", e.Sequence, e.NodeID)
	case UnknownProducer:
		return fmt.Sprintf("batch %d refused: the broker does not know the producer any longer", e.Sequence)
	case SequenceExpired:
		return fmt.Sprintf("batch %d refused: too old to tell whether it was stored", e.Sequence)
	case SequenceReused:
		return fmt.Sprintf("batch %d refused: another batch was stored under its number", e.Sequence)
	default:
		return fmt.Sprintf("batch %d refused: %s", e.Sequence, e.Reason)
	}
}

// refusedBatch makes an Error of a publish_refused.
func refusedBatch(addr string, m *wire.PublishRefused) *Error {
	e := &Error{Op: "publish", Retry: RetryNever, RequestID: m.RequestID, Broker: addr}
	if m.Reason.Kind == wire.RefusedNotLeader {
		e.Code, e.Retry = CodeNotLeader, RetryElsewhere
	}
	e.Err = &RefusedError{
		Reason:   RefusalReason(m.Reason.Kind.String()),
		Expected: m.Reason.Expected,
		NodeID:   m.Reason.NodeID,
		Addr:     m.Reason.Addr.Or(""),
	}
	return e
}

// An OffsetMismatchError says that a conditional publish or commit was
// refused because the shard does not end where it was expected to. Nothing
// was written.
type OffsetMismatchError struct {
	// Expected is the offset that was asked for.
	Expected uint64
	// Tail is the offset that the next record gets. It counts the records
	// that mark a new leader, which readers do not see.
	Tail uint64
}

func (e *OffsetMismatchError) Error() string {
	return fmt.Sprintf("the shard ends at offset %d, not at %d as expected", e.Tail, e.Expected)
}

// A ProducerError says that a [Producer] takes no more batches: one of them
// could not be delivered, and what comes behind it must not be stored
// without it. A new producer starts afresh.
type ProducerError struct {
	// Err is why that batch failed.
	Err error
}

func (e *ProducerError) Error() string {
	return "producer stopped: an earlier batch failed: " + e.Err.Error()
}

// Unwrap is the failure of the earlier batch.
func (e *ProducerError) Unwrap() error { return e.Err }
