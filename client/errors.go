package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Code names what a broker refused, or how (wire 16.2). Codes this version
// does not know are kept by name.
type Code string

// The codes brokers send.
const (
	CodeUnauthenticated  Code = "unauthenticated"
	CodeForbidden        Code = "forbidden"
	CodeNotFound         Code = "not_found"
	CodeInvalidRequest   Code = "invalid_request"
	CodeShardUnavailable Code = "shard_unavailable"
	CodeNotLeader        Code = "not_leader"
	CodeQuorumTimeout    Code = "quorum_timeout"
	CodeLeadershipLost   Code = "leadership_lost"
	CodeUnacknowledged   Code = "unacknowledged"
	CodeOverloaded       Code = "overloaded"
	CodeLimitExceeded    Code = "limit_exceeded"
	CodeDraining         Code = "draining"
	CodeInternal         Code = "internal"
	CodeStorage          Code = "storage"
	CodeStaleClaim       Code = "stale_claim"
)

// A RetryClass says what may be done after a failure (wire 16.1). It is the
// field to branch on.
type RetryClass uint8

const (
	// RetryUnspecified: the broker named no class, or the failure is local.
	RetryUnspecified RetryClass = 0
	// RetryNow: nothing was applied; the request may be sent again.
	RetryNow RetryClass = 1
	// RetryLater: nothing was applied; wait first, at least [Error.RetryAfter].
	RetryLater RetryClass = 2
	// RetryElsewhere: nothing was applied; another broker owns the shard.
	RetryElsewhere RetryClass = 3
	// RetryUnknown: the request may or may not have been applied.
	RetryUnknown RetryClass = 4
	// RetryNever: the request would fail the same way again.
	RetryNever RetryClass = 5
)

// String is the class's name on the wire.
func (r RetryClass) String() string {
	switch r {
	case RetryUnspecified:
		return "unspecified"
	case RetryNow:
		return "retry"
	case RetryLater:
		return "retry_after"
	case RetryElsewhere:
		return "redirect"
	case RetryUnknown:
		return "outcome_unknown"
	default:
		return "fatal"
	}
}

// An Error is a request that failed: refused by a broker, or given up here
// because its connection was lost. Use errors.As to reach it, errors.Is with
// the sentinels of this package to decide.
type Error struct {
	// Op is the call that failed, such as "publish" or "cache get".
	Op string
	// Code is the broker's; empty when it sent none, or when the failure is
	// a lost connection.
	Code Code
	// Retry is the class of the failure.
	Retry RetryClass
	// Reason narrows the code, such as "publish_queue_full"; often empty.
	Reason string
	// RetryAfter is the wait the broker suggests; zero for no suggestion.
	RetryAfter time.Duration
	// Message is the broker's sentence. Do not match on it.
	Message string
	// RequestID is the request's number on its stream, zero where requests
	// carry none.
	RequestID uint64
	// Broker is the address of the broker that answered or was lost.
	Broker string
	// Err is the local cause, if any: a lost connection, an ended context.
	Err error
}

func (e *Error) Error() string {
	var b strings.Builder
	if e.Op != "" {
		b.WriteString(e.Op)
		b.WriteString(": ")
	}
	switch {
	case e.Message != "":
		b.WriteString(e.Message)
	case e.Err != nil:
		b.WriteString(e.Err.Error())
	case e.Code != "":
		b.WriteString(string(e.Code))
	default:
		b.WriteString("failed")
	}
	var notes []string
	if e.Code != "" {
		notes = append(notes, string(e.Code))
	}
	if e.Reason != "" {
		notes = append(notes, e.Reason)
	}
	if e.Retry == RetryUnknown {
		notes = append(notes, "outcome unknown")
	}
	if e.RetryAfter > 0 {
		notes = append(notes, "retry after "+e.RetryAfter.String())
	}
	if len(notes) > 0 {
		b.WriteString(" (")
		b.WriteString(strings.Join(notes, ", "))
		b.WriteString(")")
	}
	return b.String()
}

// Unwrap is the local cause.
func (e *Error) Unwrap() error { return e.Err }

// OutcomeUnknown says that the request may have been applied.
func (e *Error) OutcomeUnknown() bool { return e.Retry == RetryUnknown }

// Retryable says that nothing was applied and that sending the request again
// may help.
func (e *Error) Retryable() bool {
	return e.Retry == RetryNow || e.Retry == RetryLater || e.Retry == RetryElsewhere
}

// Is matches the sentinels of this package.
func (e *Error) Is(target error) bool {
	switch t := target.(type) {
	case codeSentinel:
		return e.Code == Code(t)
	case reasonSentinel:
		return e.Reason == string(t)
	case outcomeSentinel:
		return e.Retry == RetryUnknown
	default:
		return false
	}
}

type codeSentinel Code

func (s codeSentinel) Error() string { return strings.ReplaceAll(string(s), "_", " ") }

type reasonSentinel string

func (s reasonSentinel) Error() string { return strings.ReplaceAll(string(s), "_", " ") }

type outcomeSentinel struct{}

func (outcomeSentinel) Error() string { return "outcome unknown" }

// Sentinels for errors.Is.
var (
	// ErrClosed: the client, publisher or subscription was closed.
	ErrClosed = errors.New("felix client closed")
	// ErrEnded: the broker ended the subscription, and everything was
	// delivered.
	ErrEnded = errors.New("subscription ended")
	// ErrDeleted: the stream was deleted by somebody's order, and so the
	// subscription is over.
	ErrDeleted = errors.New("the stream was deleted")
	// ErrUnsupported: the broker does not advertise what the call needs.
	// Nothing was sent. The error is an [*UnsupportedError].
	ErrUnsupported = errors.New("not supported by the broker")
	// ErrOutcomeUnknown: the request may or may not have been applied.
	ErrOutcomeUnknown error = outcomeSentinel{}
	// ErrUnauthenticated: the token was refused, or none could be had.
	ErrUnauthenticated error = codeSentinel(CodeUnauthenticated)
	// ErrForbidden: the token does not grant this.
	ErrForbidden error = codeSentinel(CodeForbidden)
	// ErrNotFound: no such tenant, namespace, stream or cache. A missing
	// cache key is not an error.
	ErrNotFound error = codeSentinel(CodeNotFound)
	// ErrInvalidRequest: the broker could not make sense of the request.
	ErrInvalidRequest error = codeSentinel(CodeInvalidRequest)
	// ErrShardUnavailable: no broker serves the shard just now.
	ErrShardUnavailable error = codeSentinel(CodeShardUnavailable)
	// ErrOverloaded: no room at the broker; wait and send again.
	ErrOverloaded error = codeSentinel(CodeOverloaded)
	// ErrStorageFull: the broker's disk is full and nothing was written; it
	// takes writes again by itself once there is space. Also [ErrOverloaded].
	ErrStorageFull error = reasonSentinel("storage_full")
	// ErrStorage: the broker's disk failed. Where it failed a write, that may
	// have happened, and the error is [ErrOutcomeUnknown] too.
	ErrStorage error = codeSentinel(CodeStorage)
	// ErrDraining: the broker shuts down.
	ErrDraining error = codeSentinel(CodeDraining)
	// ErrLimitExceeded: a limit that waiting does not lift.
	ErrLimitExceeded error = codeSentinel(CodeLimitExceeded)
)

// IsRetryable says that err means "nothing was applied, sending again may
// help". An outcome that is unknown is not retryable in this sense.
func IsRetryable(err error) bool {
	var e *Error
	if errors.As(err, &e) && !errors.As(err, new(*UnreachableError)) {
		return e.Retryable()
	}
	var u *UnreachableError
	return errors.As(err, &u) && !u.permanent
}

// IsOutcomeUnknown says that the failed request may have been applied.
func IsOutcomeUnknown(err error) bool { return errors.Is(err, ErrOutcomeUnknown) }

// An UnsupportedError is a call this broker cannot serve: it did not
// advertise the feature, so nothing was sent (wire 5.4).
type UnsupportedError struct {
	// Feature is the name of the feature on the wire, such as "CACHE_DELETE".
	Feature string
	// Broker is the address asked.
	Broker string
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("broker %s does not support %s", e.Broker, e.Feature)
}

// Is matches [ErrUnsupported].
func (e *UnsupportedError) Is(target error) bool { return target == ErrUnsupported }

// An UnreachableError says that no broker could be connected to. Err joins
// one error per address tried.
type UnreachableError struct {
	// Endpoints are the addresses tried.
	Endpoints []string
	// Err holds the reasons.
	Err error

	permanent bool // no reason is one that passes
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("no broker reachable at %s: %v", strings.Join(e.Endpoints, ", "), e.Err)
}

// Unwrap is the joined reasons.
func (e *UnreachableError) Unwrap() error { return e.Err }

// A NameError is a name or key that breaks the grammar of names; nothing was
// sent.
type NameError struct {
	// Kind is what was named: "tenant", "stream", "cache key", ...
	Kind string
	// Name is the offending value.
	Name string
	// Err says what is wrong with it.
	Err error
}

func (e *NameError) Error() string { return fmt.Sprintf("invalid %s %q: %v", e.Kind, e.Name, e.Err) }

// Unwrap says what is wrong.
func (e *NameError) Unwrap() error { return e.Err }

// isContext says that err is the end of a context.
func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
