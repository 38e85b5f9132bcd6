package shardlog

import (
	"errors"
	"fmt"

	"github.com/felixlog/felix/storage/producer"
)

// ErrBusy refuses an append because MaxPendingBytes, or very many batches, are
// claimed and not yet committed, or because the log is being cut. Nothing was kept; Room tells when
// to try again.
var ErrBusy = errors.New("log busy: too many bytes wait for the disk")

// ErrClosed is what every *ClosedError matches.
var ErrClosed = errors.New("log closed")

// ErrInvalid refuses an entry that cannot be a batch.
var ErrInvalid = errors.New("invalid batch")

// ClosedError answers every call on a log that was closed. Opening it again
// may succeed.
type ClosedError struct{ Log string }

func (e *ClosedError) Error() string { return fmt.Sprintf("log %s: closed", e.Log) }

// Is matches ErrClosed.
func (e *ClosedError) Is(target error) bool { return target == ErrClosed }

// FullError means the disk or a quota is full: nothing was kept, and the log
// takes appends again as soon as there is room.
type FullError struct {
	Log string
	Op  string // what was refused: append, roll, ...
	Err error
}

func (e *FullError) Error() string { return fmt.Sprintf("log %s: %s: %v", e.Log, e.Op, e.Err) }

// Unwrap is the error of the file system.
func (e *FullError) Unwrap() error { return e.Err }

// IOError is another failure of the file system. Nothing was kept.
type IOError struct {
	Log string
	Op  string
	Err error
}

func (e *IOError) Error() string { return fmt.Sprintf("log %s: %s: %v", e.Log, e.Op, e.Err) }

// Unwrap is the error of the file system.
func (e *IOError) Unwrap() error { return e.Err }

// SyncFailedError says that durability could not be confirmed. The log is
// poisoned: it refuses writes until it is opened again, and its readers stop at
// Durable (storage 8.2).
type SyncFailedError struct {
	Log string
	Op  string // the first operation that failed
	Err error
	// Unknown: this batch may or may not survive a restart. Otherwise it was
	// never written.
	Unknown bool
}

func (e *SyncFailedError) Error() string {
	if e.Unknown {
		return fmt.Sprintf("log %s: %s: %v: outcome unknown, the log takes no more writes", e.Log, e.Op, e.Err)
	}
	return fmt.Sprintf("log %s: takes no more writes since %s failed: %v", e.Log, e.Op, e.Err)
}

// Unwrap is the error of the file system.
func (e *SyncFailedError) Unwrap() error { return e.Err }

// TrimmedError answers a read below the oldest offset kept.
type TrimmedError struct{ Requested, Oldest uint64 }

func (e *TrimmedError) Error() string {
	return fmt.Sprintf("offset %d is no longer kept, the oldest is %d", e.Requested, e.Oldest)
}

// OffsetMismatchError refuses a conditional append: the log ends elsewhere.
type OffsetMismatchError struct {
	Expected uint64
	Tail     uint64 // the offset the next record gets
}

func (e *OffsetMismatchError) Error() string {
	return fmt.Sprintf("expected offset %d, the log ends at %d", e.Expected, e.Tail)
}

// RefusedError refuses a batch of an idempotent producer.
type RefusedError struct{ Verdict producer.Verdict }

func (e *RefusedError) Error() string {
	return fmt.Sprintf("producer batch refused: %v, expected sequence %d", e.Verdict.Outcome, e.Verdict.Expected)
}

// BelowCommitError refuses a cut that would drop committed records.
type BelowCommitError struct{ Offset, Commit uint64 }

func (e *BelowCommitError) Error() string {
	return fmt.Sprintf("cut at offset %d is below the commit offset %d", e.Offset, e.Commit)
}

// SplitBatchError refuses a cut inside a batch: bytes are never rewritten.
type SplitBatchError struct{ Offset, First, End uint64 }

func (e *SplitBatchError) Error() string {
	return fmt.Sprintf("cut at offset %d falls inside the batch [%d, %d)", e.Offset, e.First, e.End)
}

// GenerationError refuses a generation: a newer one, or another leader of the
// same one, was accepted before (storage 13).
type GenerationError struct {
	Generation, Accepted uint64
	Leader, Promised     string
}

func (e *GenerationError) Error() string {
	if e.Generation == e.Accepted {
		return fmt.Sprintf("generation %d of %q: promised to %q", e.Generation, e.Leader, e.Promised)
	}
	return fmt.Sprintf("generation %d: %d was accepted before", e.Generation, e.Accepted)
}
