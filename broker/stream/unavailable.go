package stream

import "fmt"

// An UnavailableReason says why a shard does not serve a request now.
type UnavailableReason string

const (
	// Opening: the shard's log is being opened; come again.
	Opening UnavailableReason = "opening"
	// Failed: the log was refused when it was opened, or its disk failed
	// since. Reads of what is durable may still be served.
	Failed UnavailableReason = "failed"
	// Closed: the stream was removed or the broker stops.
	Closed UnavailableReason = "closed"
)

// An UnavailableError refuses a request to one shard of a durable stream.
// Nothing was kept; other shards serve on.
type UnavailableError struct {
	// Shard is the shard's full name: tenant/namespace/stream/index.
	Shard  string
	Reason UnavailableReason
	// Err says more; of a refused log it names file and position.
	Err error
}

func (e *UnavailableError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("shard %s is unavailable: %s", e.Shard, e.Reason)
	}
	return fmt.Sprintf("shard %s is unavailable: %s: %v", e.Shard, e.Reason, e.Err)
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// A StorageFullError refuses a publish for which the disk has no room. Nothing
// was kept; it may be sent again.
type StorageFullError struct {
	Shard string
	Err   error
}

func (e *StorageFullError) Error() string {
	return fmt.Sprintf("shard %s: storage is full: %v", e.Shard, e.Err)
}

func (e *StorageFullError) Unwrap() error { return e.Err }

// A StorageFailedError says that the disk failed under a publish: whether it
// was kept is unknown until the shard's log has been opened again.
type StorageFailedError struct {
	Shard string
	Err   error
}

func (e *StorageFailedError) Error() string {
	return fmt.Sprintf("shard %s: storage failed, the outcome is unknown: %v", e.Shard, e.Err)
}

func (e *StorageFailedError) Unwrap() error { return e.Err }

// A NeedsLogError refuses what only a durable stream can do.
type NeedsLogError struct {
	// Stream is the stream's full name and Request what was asked of it.
	Stream, Request string
}

func (e *NeedsLogError) Error() string {
	return fmt.Sprintf("%s needs a durable stream, and %s is in memory", e.Request, e.Stream)
}

// An OffsetMismatchError refuses a conditional publish (wire 9.7). Nothing was
// written.
type OffsetMismatchError struct {
	// Expected is the offset asked for, Tail the shard's next one.
	Expected, Tail uint64
}

func (e *OffsetMismatchError) Error() string {
	return fmt.Sprintf("expected offset %d, the tail is %d", e.Expected, e.Tail)
}

// A LaggedError ends a subscription with EndOnDrop at its first loss, after
// what was queued before it.
type LaggedError struct {
	// ResumeFrom is the offset of the first record lost.
	ResumeFrom uint64
}

func (e *LaggedError) Error() string {
	return fmt.Sprintf("subscription lagged: resume from offset %d", e.ResumeFrom)
}
