package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/felixlog/felix/wire"
)

const (
	// resumePatience is how long a subscription that was lost looks for its
	// shard: notice of a move comes early (wire 15), and a broker that starts
	// again may have logs to open first.
	resumePatience = 30 * time.Second
	// steadyAfter is the life of an event stream from which its loss is a
	// new incident rather than the next of a row.
	steadyAfter = 10 * time.Second
)

// A loss is why a reader has no event stream, and how to get one again.
type loss struct {
	err    error
	moved  *wire.ShardMoved // the shard went to another broker
	lagged bool             // the broker dropped the reader for being slow
	from   uint64           // with lagged: the first offset not delivered
}

// brokenStream is what a peer that breaks the protocol leaves. It is not
// resumed: the next stream would break at the same place.
type brokenStream struct{ err error }

func (e *brokenStream) Error() string { return "event stream broken: " + e.err.Error() }
func (e *brokenStream) Unwrap() error { return e.err }

type movedError struct{ m *wire.ShardMoved }

func (e *movedError) Error() string {
	if to, ok := e.m.NodeID.Get(); ok {
		return "the shard moved to " + to
	}
	return "the broker stopped serving the shard"
}

type laggedError struct{ from uint64 }

func (e *laggedError) Error() string { return fmt.Sprintf("lagged at offset %d", e.from) }

// failed decides what the end of the current stream means: nil when the
// reader is to resume.
func (r *shardReader) failed(ctx context.Context, err error) error {
	if r.isClosed() {
		return ErrClosed
	}
	if r.interrupted(err) {
		return ctx.Err()
	}
	r.drop()
	if time.Since(r.openedAt) > steadyAfter {
		r.fruitless = 0
	}
	r.fruitless++
	r.loss = loss{err: err}

	var (
		broken  *brokenStream
		moved   *movedError
		lagged  *laggedError
		refusal *Error
	)
	switch {
	case errors.Is(err, io.EOF):
		return ErrEnded
	case errors.Is(err, ErrDeleted):
		return ErrDeleted
	case errors.As(err, &broken):
		return lost("subscription", "", RetryUnspecified, err)
	case errors.As(err, &moved):
		r.loss.moved = moved.m
		r.stats.moves.Add(1)
	case errors.As(err, &lagged):
		r.loss.lagged, r.loss.from = true, lagged.from
		if !r.hasNext {
			r.next, r.hasNext = lagged.from, true
		}
		r.stats.lagged.Add(1)
	case errors.As(err, &refusal):
		if refusal.Code == CodeUnauthenticated && r.c.cfg.renewable {
			r.stats.reauths.Add(1)
			break
		}
		if !refusal.Retryable() {
			return refusal
		}
		r.stats.reconnects.Add(1)
	case isLost(err):
		r.stats.reconnects.Add(1)
	default:
		return lost("subscription", "", RetryUnspecified, err)
	}
	if r.fruitless > r.c.cfg.reconnect.Attempts {
		return r.lostFor(err)
	}
	return nil
}

// resume subscribes again where the reader stands.
func (r *shardReader) resume(ctx context.Context) error {
	start, ok := r.position()
	if !ok {
		if !r.o.atLatest {
			return r.lostFor(r.loss.err)
		}
		r.stats.losses.Add(1)
	}
	if r.fruitless > 1 {
		if err := r.c.sleep(ctx, r.c.cfg.reconnect.wait(r.fruitless-1)); err != nil {
			return err
		}
	}
	err := r.subscribe(ctx, start)
	if err == nil {
		r.c.cfg.logger.Info("subscription resumed", "stream", r.name.stream, "shard", r.shard, "at", Start{start}, "after", r.loss.err)
		return nil
	}
	var cursor *CursorError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case r.isClosed():
		return ErrClosed
	case errors.As(err, &cursor) && r.o.atLatest:
		r.stats.losses.Add(1)
		r.hasNext = false
		return r.subscribe(ctx, wire.Start{Kind: wire.StartLatest})
	}
	return r.lostFor(err)
}

// position is where to resume; ok is false when that is not known and the
// tail is all there is. Streams without a log start anew at another broker,
// at its tail (wire 15).
func (r *shardReader) position() (start wire.Start, ok bool) {
	if m := r.loss.moved; m != nil {
		from, known := m.ResumeFrom.Get()
		switch {
		case !r.durable && !known:
			r.hasNext = false
			return wire.Start{Kind: wire.StartLatest}, true
		case !r.hasNext:
			r.next, r.hasNext = from, known
		case known:
			r.next = max(r.next, from)
		}
	}
	switch {
	case r.hasNext:
		return wire.StartAt(r.next), true
	case r.start.Kind == wire.StartEarliest, !r.began:
		return r.start, true
	}
	return wire.Start{Kind: wire.StartLatest}, false
}

// lostFor is the final error of a subscription that cannot go on.
func (r *shardReader) lostFor(err error) error {
	if r.loss.lagged {
		return &LaggedError{Shard: r.shard, ResumeFrom: r.loss.from, Err: err}
	}
	return &SubscriptionLostError{Shard: r.shard, Next: r.next, HasNext: r.hasNext, Err: err}
}

// subscribe opens the reader's event stream at start, trying again as the
// reconnect policy says, and longer when it had one before.
func (r *shardReader) subscribe(ctx context.Context, start wire.Start) error {
	return r.c.reopen(ctx, r.began, r.loss.moved != nil, r.isClosed, func(ctx context.Context) error {
		if r.hasNext {
			start = wire.StartAt(r.next) // perhaps an attempt came far enough to learn it
		}
		return r.attempt(ctx, start)
	})
}

// reopen tries to open an event stream, again as the reconnect policy says,
// and longer when one is resumed whose shard moved or has nobody to serve it.
func (c *Client) reopen(ctx context.Context, resumed, moved bool, closed func() bool, attempt func(context.Context) error) error {
	started := time.Now()
	for n := 1; ; n++ {
		err := attempt(ctx)
		if err == nil {
			return nil
		}
		wait, again := c.again(err, n, true, time.Since(started))
		if !again && resumed && IsRetryable(err) && (moved || comesBack(err)) && time.Since(started) < resumePatience {
			wait, again = c.cfg.reconnect.wait(n), true
		}
		if !again || ctx.Err() != nil || closed() {
			return err
		}
		if ended := c.sleep(ctx, wait); ended != nil {
			return fmt.Errorf("%w; the last attempt: %w", ended, err)
		}
	}
}

// comesBack says of a failure that the broker or the shard is away: it starts
// again, or another broker takes over.
func comesBack(err error) bool {
	var e *Error
	if errors.As(err, new(*UnreachableError)) {
		return true
	}
	return errors.As(err, &e) && (e.Code == CodeShardUnavailable || e.Code == CodeDraining || e.Code == CodeNotLeader)
}
