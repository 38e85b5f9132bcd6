package stream

import (
	"errors"
	"fmt"
)

// ErrRemoved is the answer of a handle whose stream was removed, also after a
// stream of the same name was registered again: resolve the name once more.
var ErrRemoved = errors.New("stream removed")

// ErrSubscriptionClosed ends [Subscription.Next] after [Subscription.Close].
var ErrSubscriptionClosed = errors.New("subscription closed")

// A CursorReason says why a start offset cannot be served.
type CursorReason uint8

const (
	// TooOld: the offset is below the oldest one held.
	TooOld CursorReason = iota + 1
	// InFuture: the offset is above the tail.
	InFuture
)

func (r CursorReason) String() string {
	switch r {
	case TooOld:
		return "too_old"
	case InFuture:
		return "in_future"
	}
	return fmt.Sprintf("CursorReason(%d)", uint8(r))
}

// A CursorError refuses a start offset (wire 10, point 6).
type CursorError struct {
	Reason CursorReason
	// Requested is the offset asked for.
	Requested uint64
	// Available is the nearest offset that can be served: the oldest held
	// for TooOld, the tail for InFuture.
	Available uint64
}

func (e *CursorError) Error() string {
	if e.Reason == TooOld {
		return fmt.Sprintf("offset %d is too old: the oldest held is %d", e.Requested, e.Available)
	}
	return fmt.Sprintf("offset %d is in the future: the tail is %d", e.Requested, e.Available)
}
