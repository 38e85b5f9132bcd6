package session

import (
	"errors"
	"time"

	"github.com/felixlog/felix/broker"
	"github.com/felixlog/felix/broker/placed"
	"github.com/felixlog/felix/broker/stream"
	"github.com/felixlog/felix/storage/shardlog"
	"github.com/felixlog/felix/wire"
)

// A refusal is what a client is told about a request that was not served
// (wire 16). Its wording is safe to show a person.
type refusal struct {
	wire.Failure
	// unserved is set where the shard is not served here: another broker may be
	// named instead (see Server.located).
	unserved *placed.NotServedError
}

func (r *refusal) Error() string { return r.Message }

func refuse(code wire.Code, message string) *refusal {
	return &refusal{Failure: wire.Failure{Code: code, Class: wire.DefaultClass(code), Message: message}}
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
	errUnconfirmed    = refuse(wire.CodeUnacknowledged, "write not confirmed in time; it may have been applied")
	errExpired        = unauthenticated("token expired; authenticate again with a fresh one")
	errTenantRemoved  = unauthenticated("the tenant of this token was removed")
	errNoRecords      = invalidRequest("a numbered or conditional batch needs records")
	errTenant         = refuse(wire.CodeForbidden, "tenant mismatch")
	errForbidden      = refuse(wire.CodeForbidden, "forbidden")
)

// asRefusal words any error of the core for a client. An error nobody
// foresaw is internal and its outcome unknown.
func asRefusal(err error) *refusal {
	var r *refusal
	var full *broker.OverloadedError
	var missing *broker.NotFoundError
	var unserved *placed.NotServedError
	switch {
	case errors.As(err, &r):
		return r
	case errors.As(err, &unserved):
		return notServed(unserved)
	case errors.As(err, &full):
		return overloaded(full)
	case errors.As(err, &missing):
		return refuse(wire.CodeNotFound, missing.Error())
	case errors.Is(err, stream.ErrRemoved):
		return refuse(wire.CodeNotFound, err.Error())
	case errors.Is(err, broker.ErrClosed):
		return errDraining
	}
	if r := asStorageRefusal(err); r != nil {
		return r
	}
	return refuse(wire.CodeInternal, "internal error: "+err.Error())
}

// The reasons of refusals that come from the log, beside those of wire 16.2.
const (
	reasonNotReady    = "not_ready"     // the log is being opened
	reasonFailed      = "failed"        // the log is refused, or its disk failed
	reasonStorageFull = "storage_full"  // the disk is
	storageFullRetry  = 1 * time.Second // how soon to come again then
)

// asStorageRefusal words the errors of the log, of streams and caches alike;
// nil for others. A disk without room is told from one that failed: of the
// first nothing was kept, of the second nobody knows.
func asStorageRefusal(err error) *refusal {
	var unavailable *stream.UnavailableError
	var full *stream.StorageFullError
	var failed *stream.StorageFailedError
	var needsLog *stream.NeedsLogError
	switch {
	case errors.As(err, &unavailable):
		return unavailableAs(err, unavailable.Reason == stream.Opening)
	case errors.As(err, &full):
		return storageFull(err)
	case errors.As(err, &failed):
		return refuse(wire.CodeStorage, err.Error())
	case errors.As(err, &needsLog), errors.Is(err, broker.ErrCommitShape), errors.Is(err, shardlog.ErrInvalid):
		return invalidRequest(err.Error())
	}
	return nil
}

// unavailableAs refuses a request to a shard that is being opened, or whose
// log is refused or has failed. Nothing was done; other shards serve on.
func unavailableAs(err error, opening bool) *refusal {
	r := refuse(wire.CodeShardUnavailable, err.Error())
	r.Detail.Reason = reasonFailed
	if opening {
		r.Detail = wire.Detail{Reason: reasonNotReady, RetryAfterMS: milliseconds(openingRetry)}
	}
	return r
}

// openingRetry is how soon a shard that is being opened may be asked again.
const openingRetry = 100 * time.Millisecond

func storageFull(err error) *refusal {
	r := refuse(wire.CodeOverloaded, err.Error())
	r.Detail = wire.Detail{Reason: reasonStorageFull, RetryAfterMS: milliseconds(storageFullRetry)}
	return r
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

// refuse answers the request in hand with an `error` message, behind the
// answers that are owed: it names no request (wire 8.1).
func (s *control) refuse(r *refusal) {
	if s.turns.idle() {
		s.answer(s.c.srv.refusalTo(s.offer, r))
		return
	}
	if p := s.owe(formRefusal, wire.Optional[uint64]{}); p != nil {
		p.accept(r)
	}
}

// answer appends one message to the answers of the round.
func (s *control) answer(m wire.Message) {
	s.out.end(wire.AppendMessage(s.out.begin(), m))
}
