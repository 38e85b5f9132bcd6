package apiclient

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
)

// The codes of errors that callers decide on (control plane 2.1).
const (
	CodeNotFound      = "not_found"
	CodeConflict      = "conflict"
	CodeAlreadyExists = "already_exists"
	CodeUnauthorized  = "unauthorized"
	CodeForbidden     = "forbidden"
	CodeValidation    = "validation_error"
	CodeUnavailable   = "unavailable"
	CodeNotReady      = "not_ready"
	CodeCannotVerify  = "cannot_verify"
	CodeRateLimited   = "rate_limited"
)

// An Error is a refusal of the control plane (control plane 2.1).
type Error struct {
	Status     int           // of HTTP
	Code       string        // empty where the answer was none of the API's
	Message    string        // for people
	RequestID  string        // finds the request in the control plane's log
	RetryAfter time.Duration // 0 where none was given
}

func (e *Error) Error() string {
	text := fmt.Sprintf("control plane answered %d", e.Status)
	if e.Code != "" {
		text += " " + e.Code
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.RequestID != "" {
		text += " (request " + e.RequestID + ")"
	}
	return text
}

// Final says that the same call will be refused again: a 4xx that is neither
// a matter of time nor of the rate of calls.
func (e *Error) Final() bool {
	return e.Status >= 400 && e.Status < 500 && e.Status != 408 && e.Status != 425 && e.Status != 429
}

// An UnreachableError says that no base URL gave an answer.
type UnreachableError struct {
	Err error // of the last attempt
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("control plane is unreachable: %v", e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// An AnswerError is an answer that is not what the API answers: no JSON, cut
// off, too large, or without a field that is always there. What it said is not
// repeated.
type AnswerError struct {
	Status int
	What   string
}

func (e *AnswerError) Error() string {
	return fmt.Sprintf("answer with status %d does not come from a control plane of this version: %s", e.Status, e.What)
}

// StatusOf is the HTTP status of a refusal, 0 for any other error.
func StatusOf(err error) int {
	var refused *Error
	if errors.As(err, &refused) {
		return refused.Status
	}
	return 0
}

// CodeOf is the code of a refusal, "" for any other error.
func CodeOf(err error) string {
	var refused *Error
	if errors.As(err, &refused) {
		return refused.Code
	}
	return ""
}

// maxMessage bounds what is kept of a message.
const maxMessage = 1024

// printable makes a text of the other side fit for a log line.
func printable(text string) string {
	text = strings.ToValidUTF8(text, "?")
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, text)
	if len(text) > maxMessage {
		text = strings.ToValidUTF8(text[:maxMessage], "") + "..."
	}
	return text
}
