package store

import (
	"errors"
	"fmt"
)

// What a store refuses. Anything else it returns is unexpected: the operation
// may or may not have happened.

// A NotFoundError says that what an operation names does not exist.
type NotFoundError struct {
	What string // "tenant", "stream", ...: a kind, not a name
}

func (e *NotFoundError) Error() string { return e.What + " not found" }

// ConflictReason tells conflicts apart where a caller decides.
type ConflictReason string

// The reasons of conflicts.
const (
	Exists         ConflictReason = "exists"          // a record of that name is there
	AddressTaken   ConflictReason = "address_taken"   // another node advertises it
	OldIncarnation ConflictReason = "old_incarnation" // a heartbeat of an earlier registration
	BadLifecycle   ConflictReason = "bad_lifecycle"   // a node cannot go there from where it is
	InUse          ConflictReason = "in_use"          // a node that serves, or is named by an assignment
	CurrentKey     ConflictReason = "current_key"     // the key that signs cannot be retired
	TooManyKeys    ConflictReason = "too_many_keys"   // a tenant has at most MaxSigningKeys
	Bootstrapped   ConflictReason = "bootstrapped"    // a tenant is initialised once
	LacksFeature   ConflictReason = "lacks_feature"   // a node without an enabled feature of the fleet
	NotEmpty       ConflictReason = "not_empty"       // an import into a store that has held something
	BadAssignment  ConflictReason = "bad_assignment"  // an assignment that breaks a rule of control plane 7.9
)

// A ConflictError says that an operation does not fit what is there.
type ConflictError struct {
	Reason ConflictReason
	What   string // a sentence for people
}

func (e *ConflictError) Error() string { return e.What }

// Conflict makes a [*ConflictError].
func Conflict(reason ConflictReason, format string, args ...any) error {
	return &ConflictError{Reason: reason, What: fmt.Sprintf(format, args...)}
}

// An UnavailableError says that the store did not answer in time. The operation
// may still happen (control plane 2.1).
type UnavailableError struct {
	Err error
}

func (e *UnavailableError) Error() string {
	return fmt.Sprintf("the store did not answer in time, the operation may still happen: %v", e.Err)
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// ErrClosed is what a store answers after Close.
var ErrClosed = errors.New("store is closed")
