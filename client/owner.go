package client

import (
	"context"

	"github.com/felixlog/felix/wire"
)

// A need is a feature that a call cannot do without.
type need struct {
	feature wire.Features
	name    string // on the wire
}

// readAtOwner sends a request that only reads to the broker that owns the
// shard it is about, on a stream of its own, and again as the reconnect
// policy says.
func (c *Client) readAtOwner(ctx context.Context, op string, n need, request wire.Message) (wire.Message, error) {
	return c.toOwner(ctx, op, n, true, func(ctx context.Context, cn *conn) (wire.Message, error) {
		return cn.exchange(ctx, op, n.name, request, RetryNow)
	})
}

// writeAtOwner is readAtOwner for a request that changes something: it is
// sent again only where nothing of it was applied.
func (c *Client) writeAtOwner(ctx context.Context, op string, n need, request wire.Message) (wire.Message, error) {
	frame := wire.AppendMessage(nil, request)
	if size := len(frame) - wire.HeaderSize; size > c.cfg.maxFrame {
		return nil, &Error{Op: op, Code: CodeInvalidRequest, Retry: RetryNever, Err: frameTooLarge(size, c.cfg.maxFrame)}
	}
	return c.toOwner(ctx, op, n, false, func(ctx context.Context, cn *conn) (wire.Message, error) {
		return cn.submit(ctx, op, n.name, frame)
	})
}

func (c *Client) toOwner(ctx context.Context, op string, n need, reads bool, send func(context.Context, *conn) (wire.Message, error)) (answer wire.Message, err error) {
	err = c.retry(ctx, reads, func(ctx context.Context) error {
		b, err := c.broker(ctx)
		if err != nil {
			return err
		}
		return c.atOwner(op, b, func(b *broker) (*redirect, error) {
			cn, caps, err := b.connect(ctx)
			if err != nil {
				return nil, err
			}
			if err := caps.require(n.feature, n.name, b.addr); err != nil {
				return nil, err
			}
			m, err := send(ctx, cn)
			if err != nil {
				return nil, err
			}
			answer = m
			return redirected(m), nil
		})
	})
	return answer, err
}
