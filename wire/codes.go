package wire

import "strconv"

// A Code says why a request was refused (wire 16.2). Codes are an open set: an
// unknown one is kept and its retry class acted upon.
type Code uint16

// The codes. Zero is never sent and stands for "no code".
const (
	CodeUnauthenticated  Code = 1
	CodeForbidden        Code = 2
	CodeNotFound         Code = 3
	CodeInvalidRequest   Code = 4
	CodeShardUnavailable Code = 5
	CodeNotLeader        Code = 6
	CodeQuorumTimeout    Code = 7
	CodeLeadershipLost   Code = 8
	CodeUnacknowledged   Code = 9
	CodeOverloaded       Code = 10
	CodeLimitExceeded    Code = 11
	CodeDraining         Code = 12
	CodeInternal         Code = 13
	CodeStorage          Code = 14
	CodeStaleClaim       Code = 15
)

// String is the name used in JSON, or "code_<n>" for an unknown code.
func (c Code) String() string {
	switch c {
	case CodeUnauthenticated:
		return "unauthenticated"
	case CodeForbidden:
		return "forbidden"
	case CodeNotFound:
		return "not_found"
	case CodeInvalidRequest:
		return "invalid_request"
	case CodeShardUnavailable:
		return "shard_unavailable"
	case CodeNotLeader:
		return "not_leader"
	case CodeQuorumTimeout:
		return "quorum_timeout"
	case CodeLeadershipLost:
		return "leadership_lost"
	case CodeUnacknowledged:
		return "unacknowledged"
	case CodeOverloaded:
		return "overloaded"
	case CodeLimitExceeded:
		return "limit_exceeded"
	case CodeDraining:
		return "draining"
	case CodeInternal:
		return "internal"
	case CodeStorage:
		return "storage"
	case CodeStaleClaim:
		return "stale_claim"
	}
	return "code_" + strconv.Itoa(int(c))
}

// CodeByName is the code with that JSON name, and whether it is known.
func CodeByName(name string) (Code, bool) {
	for c := CodeUnauthenticated; c <= CodeStaleClaim; c++ {
		if c.String() == name {
			return c, true
		}
	}
	return 0, false
}

// A RetryClass says what a client may do about a refusal (wire 16.1). The class
// on the wire decides, not the code's default.
type RetryClass uint8

// The retry classes. Zero stands for "none sent".
const (
	Retry          RetryClass = 1 // nothing applied: send again
	RetryAfter     RetryClass = 2 // nothing applied: wait, then send again
	Redirect       RetryClass = 3 // nothing applied: go to the owner
	OutcomeUnknown RetryClass = 4 // may have been applied
	Fatal          RetryClass = 5 // will fail the same way again
)

// Known reports whether the class is defined at this level.
func (c RetryClass) Known() bool { return c >= Retry && c <= Fatal }

// Effective is the class to act upon: an unknown one is [Fatal].
func (c RetryClass) Effective() RetryClass {
	if c.Known() {
		return c
	}
	return Fatal
}

// String is the name used in JSON; an unknown class reads "fatal".
func (c RetryClass) String() string {
	switch c {
	case Retry:
		return "retry"
	case RetryAfter:
		return "retry_after"
	case Redirect:
		return "redirect"
	case OutcomeUnknown:
		return "outcome_unknown"
	}
	return "fatal"
}

// RetryClassByName is the class with that JSON name; an unknown name is [Fatal].
func RetryClassByName(name string) RetryClass {
	for c := Retry; c < Fatal; c++ {
		if c.String() == name {
			return c
		}
	}
	return Fatal
}

// DefaultClass is the class a code is sent with unless its sender knows better
// (wire 16.2); [Fatal] for an unknown code.
func DefaultClass(c Code) RetryClass {
	switch c {
	case CodeNotFound, CodeOverloaded:
		return RetryAfter
	case CodeShardUnavailable, CodeDraining, CodeStaleClaim:
		return Retry
	case CodeNotLeader:
		return Redirect
	case CodeQuorumTimeout, CodeLeadershipLost, CodeUnacknowledged, CodeInternal, CodeStorage:
		return OutcomeUnknown
	}
	return Fatal
}

// A Detail narrows a code down (wire 7.1, 16.2). Zero fields are left out.
type Detail struct {
	Reason       string // such as "publish_queue_full" or "moving"
	RetryAfterMS uint64 // suggested wait in milliseconds
}
