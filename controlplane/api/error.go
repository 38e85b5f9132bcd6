package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/felixlog/felix/controlplane/store"
)

// The codes of [ErrorBody] that this package gives by itself (control plane
// 2.1). Others come with the refusals of auth and planner.
const (
	codeValidation  = "validation_error"
	codeForbidden   = "forbidden"
	codeNotFound    = "not_found"
	codeMethod      = "method_not_allowed"
	codeTooLarge    = "too_large"
	codeExists      = "already_exists"
	codeConflict    = "conflict"
	codeRateLimited = "rate_limited"
	codeInternal    = "internal"
	codeNotReady    = "not_ready"
	codeUnavailable = "unavailable"
)

// An ErrorBody is the body of every answer that is not a success.
type ErrorBody struct {
	Code      string `json:"code" doc:"What went wrong, for programs."`
	Message   string `json:"message" doc:"What went wrong and what to do, for people."`
	RequestID string `json:"request_id" doc:"The id of the request, as in the header X-Request-Id and in the service's log."`
}

// An Error refuses a request.
type Error struct {
	Status     int
	Code       string
	Message    string
	RetryAfter time.Duration // 0 is none
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// GetStatus is the status of the answer.
func (e *Error) GetStatus() int { return e.Status }

// GetHeaders are what the answer carries besides.
func (e *Error) GetHeaders() http.Header {
	if e.RetryAfter <= 0 {
		return nil
	}
	secs := (e.RetryAfter + time.Second - 1) / time.Second
	return http.Header{"Retry-After": {strconv.Itoa(int(secs))}}
}

func invalid(format string, a ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Code: codeValidation, Message: fmt.Sprintf(format, a...)}
}

func conflict(format string, a ...any) *Error {
	return &Error{Status: http.StatusConflict, Code: codeConflict, Message: fmt.Sprintf(format, a...)}
}

// unavailableRetry is when a caller may ask a store again that did not answer.
const unavailableRetry = time.Second

// refusalOf turns what a handler returned into an answer. Nil says that the
// error is unexpected: it is logged and not shown.
func refusalOf(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if e, ok := authRefusal(err); ok {
		return e
	}
	if e, ok := moveRefusal(err); ok {
		return e
	}
	if e, ok := errors.AsType[*store.NotFoundError](err); ok {
		return &Error{Status: http.StatusNotFound, Code: codeNotFound, Message: e.Error()}
	}
	if e, ok := errors.AsType[*store.ConflictError](err); ok {
		return conflict("%s", e.Error())
	}
	_, silent := errors.AsType[*store.UnavailableError](err)
	if silent || errors.Is(err, store.ErrClosed) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return &Error{
			Status: http.StatusServiceUnavailable, Code: codeUnavailable, RetryAfter: unavailableRetry,
			Message: "the store did not answer in time; a write may still happen, so look before you repeat it",
		}
	}
	return nil
}

// existing gives the conflict of a record that is there the code of tenants and
// namespaces.
func existing(err error) error {
	if e, ok := errors.AsType[*store.ConflictError](err); ok && e.Reason == store.Exists {
		return &Error{Status: http.StatusConflict, Code: codeExists, Message: e.Error()}
	}
	return err
}
