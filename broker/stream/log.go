package stream

import (
	"context"
	"errors"
	"fmt"

	"github.com/felixlog/felix/storage/shardlog"
)

// LogOptions are what a stream asks of the log under one of its shards.
type LogOptions struct {
	Retention Retention
	// UID is the stream's.
	UID string
	// AfterRound is called after the completions of one round of commits.
	AfterRound func()
	// Background says that nobody waits for the log yet.
	Background bool
}

// Logs opens the logs of durable streams.
type Logs interface {
	// OpenLog opens or creates the log of one shard.
	OpenLog(ctx context.Context, stream Name, shard uint32, o LogOptions) (*shardlog.Log, error)
}

// unavailable is the error of this shard.
func (sh *Shard) unavailable(r UnavailableReason, err error) *UnavailableError {
	return &UnavailableError{Shard: sh.String(), Reason: r, Err: err}
}

// String is the shard's full name.
func (sh *Shard) String() string { return fmt.Sprintf("%s/%d", sh.stream.name, sh.index) }

// serving returns the shard's log once it is open.
// Errors: *UnavailableError, [*NeedsLogError], why the shard serves no longer.
func (sh *Shard) serving(ctx context.Context, request string) (*shardlog.Log, error) {
	if err := sh.Err(); err != nil {
		return nil, err
	}
	if sh.durable == nil {
		return nil, &NeedsLogError{Stream: sh.stream.name.String(), Request: request}
	}
	if err := sh.Ready(ctx); err != nil {
		return nil, err
	}
	return sh.durable.opened().log, nil
}

// Ready waits until the shard serves: at once in memory, when its log is open
// on a durable stream. Errors: [*UnavailableError], which names file and
// position of a log that was refused, and has the cause of ctx when that ends
// first; [*placed.NotServedError].
func (sh *Shard) Ready(ctx context.Context) error {
	if sh.vacant {
		return sh.Err()
	}
	d := sh.durable
	if d == nil {
		return nil
	}
	if o := d.opened(); o != nil {
		return o.refused
	}
	d.hurry()
	select {
	case <-d.tried:
		return d.opened().refused
	case <-ctx.Done():
		return sh.unavailable(Opening, context.Cause(ctx))
	}
}

// Drain waits until every batch given to the shard's log is answered.
func (sh *Shard) Drain(ctx context.Context) error {
	if sh.durable == nil {
		return nil
	}
	select {
	case <-sh.durable.turns.settled():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// readError turns a log's refusal to read into the shard's.
func (sh *Shard) readError(requested uint64, err error) error {
	var trimmed *shardlog.TrimmedError
	if errors.As(err, &trimmed) {
		return &CursorError{Reason: TooOld, Requested: requested, Available: trimmed.Oldest}
	}
	if end := sh.Err(); end != nil {
		return end
	}
	return sh.unavailable(Failed, err)
}
