package client

import (
	"context"
	"errors"
	"time"
)

const (
	// consumeWait is how long a poll waits at the broker for a record.
	consumeWait = 20 * time.Second
	// leastPause is the shortest wait behind a poll that failed.
	leastPause = 10 * time.Millisecond
)

// pullAll starts to poll the shards. Its error is one that will not pass.
func (k *consumer) pullAll(ctx context.Context) error {
	if k.o.oneShard {
		k.pullShard(ctx, k.o.shard)
		return nil
	}
	n, err := k.countShards(ctx)
	if err != nil {
		return err
	}
	k.grow(ctx, n)
	if !k.o.untilEmpty {
		k.pullers.Go(func() { k.follow(ctx) })
	}
	return nil
}

// countShards asks for the shards of the stream until it is told.
func (k *consumer) countShards(ctx context.Context) (uint32, error) {
	var f failing
	for {
		n, err := k.g.Shards(ctx)
		switch {
		case err == nil:
			return min(n, maxShards), nil
		case isUnsupported(err):
			return 1, nil // a broker that cannot be asked has unsharded streams
		case ctx.Err() != nil || f.lasts(err):
			return 0, err
		}
		k.pause(ctx, f.row)
	}
}

// follow polls shards that the stream gets later.
func (k *consumer) follow(ctx context.Context) {
	for k.c.sleep(ctx, k.o.shardsEvery) == nil {
		if n, err := k.g.Shards(ctx); err == nil {
			k.grow(ctx, min(n, maxShards))
		}
	}
}

// grow polls the shards below n that are not polled yet.
func (k *consumer) grow(ctx context.Context, n uint32) {
	for shard := range n {
		k.pullShard(ctx, shard)
	}
}

func (k *consumer) pullShard(ctx context.Context, shard uint32) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.shards[shard] != nil {
		return
	}
	sh := &consumedShard{shard: shard}
	k.shards[shard] = sh
	k.pullers.Go(func() { k.pull(ctx, sh) })
}

// pull polls one shard until ctx ends, or until it is found empty if that is
// what the consumer waits for.
func (k *consumer) pull(ctx context.Context, sh *consumedShard) {
	log := k.c.cfg.logger.With("stream", k.g.name.stream, "group", k.g.id, "shard", sh.shard)
	var (
		f     failing
		empty = true // the last poll brought nothing, if there was one
	)
	for {
		ask, err := k.reserve(ctx, sh, empty)
		if err != nil {
			return
		}
		began := time.Now()
		records, err := k.g.pollOnce(k.answers, &ask.pollOptions)
		k.arrive(sh, ask.reserved, records)
		if hook := k.o.hooks.Polled; hook != nil {
			hook(sh.shard, len(records), time.Since(began), err)
		}
		empty = len(records) == 0
		switch {
		case err == nil:
			if empty && k.o.untilEmpty && ask.last {
				return
			}
			if f.row > 0 {
				log.Info("group is polled again")
			}
			f = failing{}
			continue
		case ctx.Err() != nil || k.removed(ctx, sh, err):
			return
		case f.lasts(err):
			k.stop(err)
			return
		case f.row == 1:
			log.Warn("group cannot be polled", "error", err)
		}
		k.pause(ctx, f.row)
	}
}

// pause waits behind the n-th failure in a row.
func (k *consumer) pause(ctx context.Context, n int) {
	k.c.sleep(ctx, max(k.c.cfg.reconnect.wait(n), leastPause))
}

// A failing is a row of failures of one kind of request.
type failing struct {
	row     int
	missing time.Time // since when the stream is not known
}

// lasts counts a failure and says that it will not pass by itself. A stream
// that is not known is given time: the broker may just not have heard of it.
func (f *failing) lasts(err error) bool {
	f.row++
	if !errors.Is(err, ErrNotFound) {
		f.missing = time.Time{}
		return lasting(err)
	}
	if f.missing.IsZero() {
		f.missing = time.Now()
	}
	return time.Since(f.missing) >= notFoundFor
}

// lasting says of a failure that it will not pass by itself.
func lasting(err error) bool {
	var (
		unreachable *UnreachableError
		e           *Error
	)
	switch {
	case errors.As(err, &unreachable):
		return unreachable.permanent
	case !errors.As(err, &e):
		return true
	case e.Code == CodeUnauthenticated && e.Err != nil:
		return false // no token was to be had just now
	}
	return !e.Retryable() && !e.OutcomeUnknown()
}

// removed says that the stream has lost the shard, which is then not polled
// any longer.
func (k *consumer) removed(ctx context.Context, sh *consumedShard, err error) bool {
	if k.o.oneShard || !errors.Is(err, ErrInvalidRequest) && !errors.Is(err, ErrNotFound) {
		return false
	}
	if n, err := k.g.Shards(ctx); err != nil || sh.shard < n {
		return false
	}
	k.mu.Lock()
	delete(k.shards, sh.shard)
	k.mu.Unlock()
	return true
}

// A pollAsk is a poll that there is room for.
type pollAsk struct {
	pollOptions
	reserved int  // records of it that are counted already
	last     bool // nothing of the shard is held: should it be empty, it is done
}

// reserve waits for room for a poll.
//
// With several shards, one that has nothing, or does not answer, must not keep
// the room from those that have some. So all there is room for is asked only
// of a shard that had records last time, without waiting at the broker. Others
// are asked for one record, and waited for. Those of all shards may exceed the
// limit by one each.
func (k *consumer) reserve(ctx context.Context, sh *consumedShard, empty bool) (pollAsk, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.ask()
	for n == 0 || k.o.untilEmpty && empty && sh.jobs > 0 {
		if err := k.free.wait(ctx); err != nil {
			return pollAsk{}, err
		}
		n = k.ask()
	}
	if err := ctx.Err(); err != nil {
		return pollAsk{}, err
	}
	ask := pollAsk{reserved: n, last: sh.jobs == 0, pollOptions: pollOptions{
		shard: sh.shard, max: n, visibility: k.o.visibility,
		consumer: k.o.consumer, named: k.o.consumer != "", reclaim: k.o.consumer != "",
	}}
	several := len(k.shards) > 1
	if several && empty {
		ask.max, ask.reserved = 1, 0
	}
	if !k.o.untilEmpty && (empty || !several) {
		ask.wait = consumeWait
	}
	k.reserved += ask.reserved
	return ask, nil
}
