package memory

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/felixlog/felix/controlplane/store"
)

// CommandVersion is the newest version of commands that a [State] applies.
const CommandVersion = 1

// A Command is one logical write (control plane 12.1). Its form is stored in
// logs: fields may be added, and never change their meaning.
type Command struct {
	V int `json:"v"`
	// RID names the write, over retries and forwarding. A repeat is answered with
	// the first result. Empty is never a repeat.
	RID string `json:"rid"`
	Op  string `json:"op"`
	// At is the store's clock, in milliseconds, stamped by whoever accepts the
	// command: never by its author.
	At   uint64          `json:"at"`
	Body json.RawMessage `json:"body"`
}

// Check says why a command cannot be applied here, so that a log can refuse it
// before it is in. The error is that of the result that Apply would give.
func (c Command) Check() error {
	if c.V < 1 || c.V > CommandVersion {
		return fmt.Errorf("command %q has version %d, this program knows versions up to %d: upgrade it", c.Op, c.V, CommandVersion)
	}
	if _, ok := operations[c.Op]; !ok {
		return fmt.Errorf("command %q is not known to this program: upgrade it", c.Op)
	}
	return nil
}

// The kinds of results that are not named after their value.
const (
	KindDone  = "done"  // nothing to tell
	KindError = "error" // refused: Error says why, and nothing was changed
)

// A Result is what became of a command: a tagged value or an error.
type Result struct {
	Kind  string          `json:"kind"`
	Value json.RawMessage `json:"value,omitempty"`
	Error *ResultError    `json:"error,omitempty"`
}

// Err is the error that a caller of the store gets; nil if there is none.
func (r Result) Err() error {
	if r.Error == nil {
		return nil
	}
	return r.Error.Err()
}

// The kinds of errors in a result.
const (
	ErrorNotFound    = "not_found"
	ErrorConflict    = "conflict"
	ErrorInternal    = "internal"
	ErrorUnsupported = "unsupported" // the member that applied it does not know the command
)

// A ResultError is an error that travels.
type ResultError struct {
	Kind   string               `json:"error"`
	Reason store.ConflictReason `json:"reason,omitempty"` // of a conflict
	Detail string               `json:"detail"`
}

// Err is the error as the store's interface has it: a [*store.NotFoundError], a
// [*store.ConflictError], or another.
func (e *ResultError) Err() error {
	switch e.Kind {
	case ErrorNotFound:
		return &store.NotFoundError{What: e.Detail}
	case ErrorConflict:
		return &store.ConflictError{Reason: e.Reason, What: e.Detail}
	default:
		return fmt.Errorf("%s: %s", e.Kind, e.Detail)
	}
}

// refused makes a result of an error.
func refused(err error) Result {
	var missing *store.NotFoundError
	var conflict *store.ConflictError
	e := &ResultError{Kind: ErrorInternal, Detail: err.Error()}
	switch {
	case errors.As(err, &missing):
		e = &ResultError{Kind: ErrorNotFound, Detail: missing.What}
	case errors.As(err, &conflict):
		e = &ResultError{Kind: ErrorConflict, Reason: conflict.Reason, Detail: conflict.What}
	}
	return Result{Kind: KindError, Error: e}
}
