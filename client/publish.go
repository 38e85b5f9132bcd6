package client

import (
	"context"

	"github.com/felixlog/felix/wire"
)

// An Ack is the answer to an acknowledged publish.
type Ack struct {
	// Offset is that of the batch's first record, if HasOffset: record i has
	// Offset + i. Streams without a log have none, nor have acks that a
	// broker gives on acceptance (wire 9.2).
	Offset    uint64
	HasOffset bool
	// Shard is the shard the client computed. It is 0 for records without a
	// key, and where the broker could not be asked for the stream's shards.
	Shard uint32
	// Owner is the shard's owner where the broker named it, having forwarded
	// the batch there; else nil. Later batches go there directly.
	Owner *Owner
}

// An Owner names the broker that owns a shard.
type Owner struct {
	NodeID string
	// Addr is "host:port", empty when it is not published.
	Addr string
	// Generation is that of the shard's assignment.
	Generation uint64
}

// Publish sends one record and, unless [AckNone] was chosen, waits for the
// broker's answer: by default one that says the record was accepted, and on
// a durable stream that it was written.
//
// The error is an [*Error]. If it is [ErrOutcomeUnknown], the record may or
// may not be in the stream: the connection or ctx ended before the answer
// came. Publish never sends a record twice, except [WithAtLeastOnce].
func (c *Client) Publish(ctx context.Context, stream string, payload []byte, opts ...PublishOption) (Ack, error) {
	one := [1][]byte{payload}
	return c.publish(ctx, stream, one[:], AckPerMessage, opts)
}

// PublishBatch is [Client.Publish] for several records that stay together:
// they go to one shard, get consecutive offsets, and share one answer. A
// batch without records is refused.
func (c *Client) PublishBatch(ctx context.Context, stream string, payloads [][]byte, opts ...PublishOption) (Ack, error) {
	return c.publish(ctx, stream, payloads, AckPerBatch, opts)
}

func (c *Client) publish(ctx context.Context, stream string, payloads [][]byte, mode AckMode, opts []PublishOption) (Ack, error) {
	var o publishOptions
	for _, opt := range opts {
		o = opt.applyPublish(o)
	}
	if o.ackSet {
		mode = o.ack
	}
	rt, err := c.route(o.namespace, stream)
	if err != nil {
		return Ack{}, err
	}
	r, err := rt.prepare(ctx, o.key, o.keyed, mode, payloads)
	if err != nil {
		return Ack{}, err
	}
	r.atLeastOnce = o.atLeastOnce
	if mode == AckNone {
		return Ack{}, c.sendUnacked(ctx, r)
	}
	wait := c.requests.getAnswer()
	r.wait = wait
	if err := c.dispatch(ctx, r, true); err != nil {
		return Ack{}, err
	}
	select {
	case <-wait.ready:
		ack, err := wait.ack, wait.err
		c.requests.putAnswer(wait)
		return ack, err
	case <-ctx.Done():
		return Ack{}, ctxError("publish", ctx, RetryUnknown)
	}
}

// checkBatch checks what a caller gave.
func checkBatch(payloads [][]byte, key []byte, keyed bool) error {
	if len(payloads) == 0 {
		return &Error{Op: "publish", Code: CodeInvalidRequest, Retry: RetryNever, Message: "a batch without records"}
	}
	if keyed {
		if err := wire.ValidateRoutingKey(key); err != nil {
			return nameError("routing key", string(key), err)
		}
	}
	return nil
}

// prepare checks a batch and makes a request of it.
func (rt *route) prepare(ctx context.Context, key []byte, keyed bool, mode AckMode, payloads [][]byte) (*request, error) {
	if err := checkBatch(payloads, key, keyed); err != nil {
		return nil, err
	}
	if mode > AckPerBatch {
		return nil, &Error{Op: "publish", Code: CodeInvalidRequest, Retry: RetryNever, Message: "no such ack mode"}
	}
	l, err := rt.lane(ctx, key, keyed, mode != AckNone)
	if err != nil {
		return nil, err
	}
	r := rt.c.requests.get()
	if err := l.encode(r, key, keyed, mode, payloads); err != nil {
		rt.c.requests.put(r)
		return nil, &Error{Op: "publish", Code: CodeInvalidRequest, Retry: RetryNever, Err: err}
	}
	return r, nil
}

// dispatch sends an acknowledged request once its bytes fit the budget. On
// an error nothing was sent and r is gone.
func (c *Client) dispatch(ctx context.Context, r *request, direct bool) error {
	size := len(r.frame)
	err := c.inflight.acquire(ctx, size)
	if err == nil {
		if err = r.lane.send(ctx, r, direct); err == nil {
			return nil
		}
		c.inflight.release(size)
	}
	c.requests.put(r)
	return c.unsent(ctx, err)
}

// sendUnacked sends a request nobody answers: it is done when it is on its
// way.
func (c *Client) sendUnacked(ctx context.Context, r *request) error {
	err := r.lane.send(ctx, r, true)
	c.requests.put(r)
	if err != nil {
		return c.unsent(ctx, err)
	}
	return nil
}

// unsent dresses the failure of a publish of which nothing was sent.
func (c *Client) unsent(ctx context.Context, err error) error {
	switch {
	case c.ctx.Err() != nil:
		return ErrClosed
	case isContext(err) && ctx.Err() != nil:
		return ctxError("publish", ctx, RetryNow)
	}
	return err
}
