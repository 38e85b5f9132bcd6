package session

import (
	"context"
	"errors"
	"time"

	"github.com/felixlog/felix/broker/placed"
	"github.com/felixlog/felix/broker/queue"
	"github.com/felixlog/felix/broker/queue/tracker"
	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/wire"
)

// The reasons of refusals that come from groups, beside those of wire 16.2.
const (
	reasonPolls  = "group_polls" // too many polls of one connection
	reasonGroups = "group_limit" // too many groups in memory

	pollsRetry  = 100 * time.Millisecond
	groupsRetry = time.Second
)

// asGroupRefusal words the errors of consumer groups and of the logs under
// them (wire 12.2).
func asGroupRefusal(err error) *refusal {
	var r *refusal
	var stale *tracker.StaleError
	var invalid *tracker.InvalidError
	var unlisted *queue.NotListedError
	var limit *queue.GroupLimitError
	var unavailable *queue.UnavailableError
	var name *queue.NameError
	var ended *queue.EndsEarlyError
	var cursor *stream.CursorError
	var unserved *placed.NotServedError
	switch {
	case errors.As(err, &r):
		return r
	case errors.As(err, &unserved):
		return notServed(unserved)
	case errors.As(err, &stale):
		r := refuse(wire.CodeStaleClaim, err.Error())
		if !stale.Retry {
			r.Class = wire.Fatal
		}
		return r
	case errors.As(err, &invalid), errors.As(err, &cursor), errors.As(err, &name):
		return invalidRequest(err.Error())
	case errors.As(err, &unlisted):
		r := refuse(wire.CodeNotFound, err.Error())
		r.Class = wire.Fatal // the list has been read: nothing there is still to come
		return r
	case errors.As(err, &limit):
		r := refuse(wire.CodeOverloaded, err.Error())
		r.Detail = wire.Detail{Reason: reasonGroups, RetryAfterMS: milliseconds(groupsRetry)}
		return r
	case errors.As(err, &unavailable):
		return unavailableAs(err, unavailable.Reason == queue.Opening)
	case errors.As(err, &ended):
		return unavailableAs(err, false)
	case errors.Is(err, queue.ErrClosed):
		return errDraining
	case errors.Is(err, context.DeadlineExceeded):
		return unavailableAs(errors.New("the logs of the group are being opened"), true)
	}
	if r := asLogRefusal(err); r != nil {
		return r
	}
	return asRefusal(err)
}

// errSlowLog is the answer to a look at a group whose logs do not answer.
var errSlowLog = unavailableAs(errors.New("the logs of the group do not answer in time"), true)

// retried is an error of a request that changes nothing: whatever became of
// it, it may be sent again.
func retried(err error) error {
	r := asGroupRefusal(err)
	switch {
	case r == errUnconfirmed:
		return errSlowLog
	case r.Class != wire.OutcomeUnknown:
		return r
	}
	again := *r
	again.Class = wire.Retry
	return &again
}
