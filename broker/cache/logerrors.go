package cache

import (
	"errors"
	"fmt"

	"github.com/felixlog/felix/broker/keyed"
)

// ErrWatchClosed ends [Watch.Next] after [Watch.Close].
var ErrWatchClosed = errors.New("watch closed")

// A NeedsLogError refuses what a cache in memory cannot do.
type NeedsLogError struct {
	Cache Name
	// What was asked for: "watch" or "counter".
	What string
}

func (e *NeedsLogError) Error() string {
	return fmt.Sprintf("cache %s is in memory: a %s needs a durable cache", e.Cache, e.What)
}

// A ShardError refuses a shard that the cache does not have.
type ShardError struct {
	Cache         Name
	Shard, Shards uint32
}

func (e *ShardError) Error() string {
	return fmt.Sprintf("cache %s has %d shards: there is no shard %d", e.Cache, e.Shards, e.Shard)
}

// A Reason says why a shard is unavailable.
type Reason = keyed.Reason

const (
	// Opening: its log is being read; the same request succeeds soon.
	Opening = keyed.Opening
	// Failed: its log cannot be opened. Err names file and position.
	Failed = keyed.Failed
	// NoStorage: the cache is durable and the broker has no storage.
	NoStorage = keyed.NoStorage
)

// An UnavailableError refuses a shard that cannot be used now. Nothing was
// read or written, and other shards are not concerned.
type UnavailableError struct {
	Cache  Name
	Shard  uint32
	Reason Reason
	Err    error // of Failed
}

func (e *UnavailableError) Error() string {
	s := fmt.Sprintf("shard %d of cache %s is unavailable: %s", e.Shard, e.Cache, e.Reason)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *UnavailableError) Unwrap() error { return e.Err }

// A CursorError refuses a watch from an offset that does not exist yet
// (wire 11: in_future).
type CursorError struct {
	// Requested is the offset asked for and Tail the highest there is.
	Requested, Tail uint64
}

func (e *CursorError) Error() string {
	return fmt.Sprintf("offset %d is in the future: the tail is %d", e.Requested, e.Tail)
}

// An InvalidWatchError refuses options that contradict each other.
type InvalidWatchError struct {
	Problem string
}

func (e *InvalidWatchError) Error() string { return "cache watch: " + e.Problem }

// A WatchBusyError refuses a watch that begins with current values while
// others still read theirs: all together hold as many keys as they may.
type WatchBusyError struct {
	// Keys are those of the watch, Held those of others, Limit the bound.
	Keys, Held, Limit int64
}

func (e *WatchBusyError) Error() string {
	return fmt.Sprintf("cache watch of %d keys: other watches still read %d, and the limit is %d together", e.Keys, e.Held, e.Limit)
}

// A LaggedError ends a watch whose reader was too slow. All changes below
// ResumeFrom that match were delivered; a watch from there misses nothing.
type LaggedError struct {
	ResumeFrom uint64
}

func (e *LaggedError) Error() string {
	return fmt.Sprintf("watch lagged: resume from offset %d", e.ResumeFrom)
}

// A CounterOverflowError refuses an addition whose sum an int64 cannot hold.
// The counter is unchanged.
type CounterOverflowError struct {
	Sum, Delta int64
}

func (e *CounterOverflowError) Error() string {
	return fmt.Sprintf("adding %d to a counter of %d overflows", e.Delta, e.Sum)
}
