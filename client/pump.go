package client

import (
	"context"
	"slices"
)

// maxShards bounds the shards a client believes a stream to have.
const maxShards = 1 << 16

// shardsToRead lists the shards of a stream, all of them.
func (c *Client) shardsToRead(ctx context.Context, name routeName, resume map[uint32]uint64) ([]uint32, error) {
	var n uint32
	err := c.retry(ctx, true, func(ctx context.Context) error {
		var err error
		n, _, err = c.askStreamShards(ctx, name)
		if isUnsupported(err) {
			n, err = 1, nil // a broker that cannot be asked has unsharded streams
		}
		if err == nil && n == 0 {
			err = notFound("subscribe", "stream", c.cfg.tenant, name)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	shards := make([]uint32, 0, min(n, maxShards))
	for shard := range min(n, maxShards) {
		shards = append(shards, shard)
	}
	for shard := range resume {
		if !slices.Contains(shards, shard) {
			return nil, &Error{
				Op: "subscribe", Code: CodeInvalidRequest, Retry: RetryNever,
				Message: "a position is given for a shard that the stream does not have",
			}
		}
	}
	return shards, nil
}

// pump reads ahead into a queue where that was asked for, or where several
// shards are to be merged.
func (s *Subscription) pump(o *subscribeOptions) {
	if len(s.readers) == 1 && !o.bufferSet {
		return
	}
	capacity := o.buffer
	if !o.bufferSet {
		capacity = len(s.readers)
	}
	ctx, cancel := context.WithCancel(s.c.ctx)
	s.cancel = cancel
	s.queue = newBatchQueue(&s.c.bufs, capacity, o.policy, &s.stats)
	context.AfterFunc(ctx, s.queue.close)
	for _, r := range s.readers {
		if !s.c.spawn(func() { s.fill(ctx, r) }) {
			cancel()
			return
		}
	}
}

// fill puts what one shard delivers into the queue, and at last how it
// ended.
func (s *Subscription) fill(ctx context.Context, r *shardReader) {
	q := s.queue
	for {
		item := q.blank()
		item.err = r.read(ctx, &item.batch, func(payload []byte) []byte {
			if item.buf != nil {
				s.c.bufs.put(item.buf)
			}
			item.buf = append(s.c.bufs.get(len(payload)), payload...)
			return item.buf
		})
		if item.err != nil && ctx.Err() != nil {
			item.err = ErrClosed // which closing it looks like depends on what came first
		}
		if item.err != nil {
			item.batch = Batch{Shard: r.shard}
		} else {
			item.live = r.live(&item.batch)
		}
		failed := item.err != nil
		if err := q.put(ctx, item); err != nil || failed {
			return
		}
	}
}
