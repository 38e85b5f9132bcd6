package client

import (
	"fmt"
	"time"
)

// ErrStaleClaim: the claim does not stand any longer: it lapsed, the record
// was handed out again, or the group was moved. The error is an [*Error] whose
// class says whether asking again may help (wire 12.2).
var ErrStaleClaim error = codeSentinel(CodeStaleClaim)

// A ClaimError is what became of one claim of a call about several, such as
// [Group.Ack].
type ClaimError struct {
	Claim Claim
	// Err is the broker's refusal, or a lost connection.
	Err error
}

func (e *ClaimError) Error() string {
	return fmt.Sprintf("claim %d:%d:%d: %v", e.Claim.Shard, e.Claim.Offset, e.Claim.Attempts, e.Err)
}

// Unwrap is the reason.
func (e *ClaimError) Unwrap() error { return e.Err }

// A ClaimLostError is the cause with which the context of a handler ends whose
// claim does not stand any longer: the record is somebody else's now, or will
// be. It is [ErrStaleClaim].
type ClaimLostError struct {
	Claim Claim
	// Err is the broker's refusal to extend the claim.
	Err error
}

func (e *ClaimLostError) Error() string {
	return fmt.Sprintf("claim %d:%d:%d lost: %v", e.Claim.Shard, e.Claim.Offset, e.Claim.Attempts, e.Err)
}

// Unwrap is the refusal.
func (e *ClaimLostError) Unwrap() error { return e.Err }

// A PanicError is the error of a handler that panicked.
type PanicError struct {
	// Value is what it panicked with; nil when its goroutine was ended
	// instead.
	Value any
	// Stack is where, as text.
	Stack []byte
}

func (e *PanicError) Error() string {
	if e.Value == nil {
		return "handler ended its goroutine"
	}
	return fmt.Sprintf("handler panicked: %v", e.Value)
}

// Unwrap is the value, if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// A DrainError says that [Client.Consume] could not end as it should within
// its drain timeout (see [ConsumeDrain]). What it counts is handed out again
// when the claims lapse.
type DrainError struct {
	// Cut is the number of handlers whose context had to be ended.
	Cut int
	// Running is the number of those that run on regardless.
	Running int
	// Unsettled is the number of finished records of which the broker could
	// not be told.
	Unsettled int
	// Cause is why the consumer ended, if not at the caller's wish.
	Cause error
}

func (e *DrainError) Error() string {
	s := fmt.Sprintf("drain timed out: %d handlers cut short, %d still running, %d records not settled", e.Cut, e.Running, e.Unsettled)
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap is the cause.
func (e *DrainError) Unwrap() error { return e.Cause }

// DeadLetter wraps the error of a handler that gives the record up: it goes to
// the dead letters of the group at once, instead of being handed out again.
func DeadLetter(err error) error { return &verdictError{err: err, dead: true} }

// RetryAfter wraps the error of a handler that wants the record to be handed
// out again after d, instead of the back-off of the consumer.
func RetryAfter(d time.Duration, err error) error { return &verdictError{err: err, delay: d} }

// A verdictError is a handler's error with what to do.
type verdictError struct {
	err   error
	dead  bool
	delay time.Duration
}

func (e *verdictError) Error() string {
	what := "retry after " + e.delay.String()
	if e.dead {
		what = "given up"
	}
	if e.err == nil {
		return what
	}
	return what + ": " + e.err.Error()
}

func (e *verdictError) Unwrap() error { return e.err }
