package queue

import (
	"errors"
	"fmt"
	"strings"

	"github.com/felixlog/felix/broker/keyed"
)

// ErrClosed answers what comes after [Store.Close].
var ErrClosed = errors.New("groups closed")

// A Reason says why a group is unavailable.
type Reason = keyed.Reason

const (
	// Opening: its logs are being read; the same request succeeds soon.
	Opening = keyed.Opening
	// Failed: its logs cannot be opened or do not make sense. Err says more.
	Failed = keyed.Failed
	// NoStorage: the broker has no storage, and so no groups.
	NoStorage = keyed.NoStorage
)

// An UnavailableError refuses a request to a group that cannot be used now.
// Nothing was changed, and other shards are not concerned.
type UnavailableError struct {
	// Shard is the shard's full name: tenant/namespace/stream/index.
	Shard  string
	Reason Reason
	Err    error // of Failed
}

func (e *UnavailableError) Error() string {
	s := fmt.Sprintf("groups of shard %s are unavailable: %s", e.Shard, e.Reason)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// A RecordError says that what is on disk of a group does not make sense. The
// group is refused, and others serve on.
type RecordError struct {
	Group string
	// Key and Offset are those of the record in the log of the groups or of
	// the dead letters.
	Key    string
	Offset uint64
	Err    error
}

func (e *RecordError) Error() string {
	return fmt.Sprintf("group %s: record at offset %d with key %q: %v", e.Group, e.Offset, e.Key, e.Err)
}

func (e *RecordError) Unwrap() error { return e.Err }

// A NotListedError refuses what only a dead letter allows (wire 12.2). Nothing
// changed.
type NotListedError struct {
	Group  string
	Offset uint64
	// Trimmed: it is listed, and the record is no longer kept.
	Trimmed bool
}

func (e *NotListedError) Error() string {
	if e.Trimmed {
		return fmt.Sprintf("offset %d of group %s cannot be handed out again: retention has taken the record; discard the dead letter", e.Offset, e.Group)
	}
	return fmt.Sprintf("offset %d is not among the dead letters of group %s", e.Offset, e.Group)
}

// A GroupLimitError refuses a group because as many as may be are in use.
type GroupLimitError struct{ Limit int }

func (e *GroupLimitError) Error() string {
	return fmt.Sprintf("%d groups are in use, and no more than that may be", e.Limit)
}

// A NameError refuses a name that no group can have.
type NameError struct{ Name string }

func (e *NameError) Error() string { return fmt.Sprintf("no group can have the name %q", e.Name) }

// checkName refuses what would not be told apart on disk.
func checkName(group string) error {
	if group == "" || strings.IndexByte(group, separator) >= 0 {
		return &NameError{Name: group}
	}
	return nil
}

// An EndsEarlyError says that the log of the stream serves no more what it
// served before, because its disk failed.
type EndsEarlyError struct{ Offset uint64 }

func (e *EndsEarlyError) Error() string {
	return fmt.Sprintf("the log ends before offset %d, which it had committed", e.Offset)
}
