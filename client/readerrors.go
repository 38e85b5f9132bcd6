package client

import "fmt"

// A CursorError says that a subscription, a watch or a read cannot start
// where it was asked to (wire 10.6).
type CursorError struct {
	// Reason is "too_old" or "in_future".
	Reason string
	// Requested is the offset asked for.
	Requested uint64
	// Available is the oldest offset still held when too_old, the tail when
	// in_future.
	Available uint64
}

// TooOld says that records from Requested on are no longer all held;
// Available is the oldest that is.
func (e *CursorError) TooOld() bool { return e.Reason == "too_old" }

func (e *CursorError) Error() string {
	switch e.Reason {
	case "too_old":
		return fmt.Sprintf("offset %d is no longer held, the oldest is %d", e.Requested, e.Available)
	case "in_future":
		return fmt.Sprintf("offset %d is past the end, the next record will be %d", e.Requested, e.Available)
	default:
		return fmt.Sprintf("cannot start at offset %d: %s (available %d)", e.Requested, e.Reason, e.Available)
	}
}

// A LaggedError says that a subscription fell so far behind that the broker
// ended it (wire 7.4) and that it could not be resumed without loss.
type LaggedError struct {
	// Shard is the shard that lagged.
	Shard uint32
	// ResumeFrom is the first offset not delivered.
	ResumeFrom uint64
	// Err is why resuming failed, often a [*CursorError].
	Err error
}

func (e *LaggedError) Error() string {
	return fmt.Sprintf("subscription lagged at offset %d of shard %d and could not resume: %v", e.ResumeFrom, e.Shard, e.Err)
}

// Unwrap is why resuming failed.
func (e *LaggedError) Unwrap() error { return e.Err }

// A SubscriptionLostError says that a subscription or a watch was lost and
// cannot be resumed without an unknown loss: no offset is known to resume at, or the
// broker no longer holds it.
type SubscriptionLostError struct {
	// Shard is the shard that was lost.
	Shard uint32
	// Next is the offset that would have come next, if HasNext.
	Next    uint64
	HasNext bool
	// Err is the cause.
	Err error
}

func (e *SubscriptionLostError) Error() string {
	if e.HasNext {
		return fmt.Sprintf("subscription to shard %d lost before offset %d: %v", e.Shard, e.Next, e.Err)
	}
	return fmt.Sprintf("subscription to shard %d lost at an unknown position: %v", e.Shard, e.Err)
}

// Unwrap is the cause.
func (e *SubscriptionLostError) Unwrap() error { return e.Err }
