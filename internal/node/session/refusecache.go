package session

import (
	"context"
	"errors"

	"github.com/felixlog/felix/broker/cache"
	"github.com/felixlog/felix/broker/placed"
	"github.com/felixlog/felix/storage/shardlog"
	"github.com/felixlog/felix/wire"
)

// asCacheRefusal words the errors of the cache room and of the logs under it.
func asCacheRefusal(err error) *refusal {
	var r *refusal
	var ttl *cache.InvalidTTLError
	var size *cache.TooLargeError
	var needsLog *cache.NeedsLogError
	var shard *cache.ShardError
	var watch *cache.InvalidWatchError
	var overflow *cache.CounterOverflowError
	var unavailable *cache.UnavailableError
	var busy *cache.WatchBusyError
	var unserved *placed.NotServedError
	switch {
	case errors.As(err, &r):
		return r
	case errors.As(err, &unserved):
		return notServed(unserved)
	case errors.As(err, &ttl), errors.As(err, &size), errors.As(err, &needsLog), errors.As(err, &shard),
		errors.As(err, &watch), errors.As(err, &overflow):
		return invalidRequest(err.Error())
	case errors.Is(err, cache.ErrRemoved):
		return refuse(wire.CodeNotFound, err.Error())
	case errors.As(err, &unavailable):
		return unavailableAs(err, unavailable.Reason == cache.Opening)
	case errors.Is(err, context.DeadlineExceeded):
		return unavailableAs(errors.New("the cache's log is being opened"), true)
	case errors.As(err, &busy):
		return busyAs(err)
	}
	if r := asLogRefusal(err); r != nil {
		return r
	}
	return asRefusal(err)
}

// asLogRefusal words the errors of the logs under caches and groups; nil for
// others.
func asLogRefusal(err error) *refusal {
	var full *shardlog.FullError
	var io *shardlog.IOError
	var lost *shardlog.SyncFailedError
	switch {
	case errors.As(err, &full):
		return storageFull(err)
	case errors.Is(err, shardlog.ErrBusy):
		return busyAs(err)
	case errors.As(err, &lost) && lost.Unknown:
		return refuse(wire.CodeStorage, err.Error())
	case errors.As(err, &lost), errors.As(err, &io):
		return unavailableAs(err, false)
	case errors.Is(err, shardlog.ErrClosed):
		return errDraining
	}
	return nil
}

func busyAs(err error) *refusal {
	r := refuse(wire.CodeOverloaded, err.Error())
	r.Detail.RetryAfterMS = milliseconds(openingRetry)
	return r
}
