package session

import (
	"errors"
	"time"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/wire"
)

// A refusal is what a client is told about a request that was not served
// (wire 16). Its wording is safe to show a person.
type refusal struct {
	wire.Failure
}

func (r *refusal) Error() string { return r.Message }

func refuse(code wire.Code, message string) *refusal {
	return &refusal{wire.Failure{Code: code, Class: wire.DefaultClass(code), Message: message}}
}

func invalidRequest(message string) *refusal {
	return refuse(wire.CodeInvalidRequest, message)
}

func unauthenticated(message string) *refusal {
	return refuse(wire.CodeUnauthenticated, message)
}

// Refusals whose wording never varies.
var (
	errDraining       = refuse(wire.CodeDraining, "broker is shutting down; connect to another or try again shortly")
	errUnacknowledged = refuse(wire.CodeUnacknowledged, "publish not confirmed in time; it may have been applied")
	errExpired        = unauthenticated("token expired; authenticate again with a fresh one")
	errTenant         = refuse(wire.CodeForbidden, "tenant mismatch")
	errForbidden      = refuse(wire.CodeForbidden, "forbidden")
)

// asRefusal words any error of the core for a client. An error nobody
// foresaw is internal and its outcome unknown.
func asRefusal(err error) *refusal {
	var r *refusal
	var full *broker.OverloadedError
	var missing *broker.NotFoundError
	switch {
	case errors.As(err, &r):
		return r
	case errors.As(err, &full):
		return overloaded(full)
	case errors.As(err, &missing):
		return refuse(wire.CodeNotFound, missing.Error())
	case errors.Is(err, stream.ErrRemoved):
		return refuse(wire.CodeNotFound, err.Error())
	case errors.Is(err, broker.ErrClosed):
		return errDraining
	}
	return refuse(wire.CodeInternal, "internal error: "+err.Error())
}

func overloaded(e *broker.OverloadedError) *refusal {
	r := refuse(wire.CodeOverloaded, e.Error())
	r.Detail = wire.Detail{Reason: string(e.Reason), RetryAfterMS: milliseconds(e.RetryAfter)}
	return r
}

// milliseconds rounds up: a client told 0 would not wait at all.
func milliseconds(d time.Duration) uint64 {
	return uint64((max(d, 0) + time.Millisecond - 1) / time.Millisecond)
}

// refuse answers the request in hand with an `error` message.
func (s *control) refuse(r *refusal) {
	s.answer(s.offer.Error(r.Failure))
}

// answer appends one message to the answers of the round.
func (s *control) answer(m wire.Message) {
	s.out.end(wire.AppendMessage(s.out.begin(), m))
}
