package client

import (
	"context"

	"github.com/felixlog/felix/wire"
)

func needConditional() need {
	return need{wire.FeaturePublishConditional, "PUBLISH_CONDITIONAL"}
}

// PublishIf appends a batch only if its first record gets the offset given:
// if nobody has written to the shard since the caller read up to there. It
// needs a stream with a log, and always waits for the broker's answer; of
// the options it takes [WithKey] and [InNamespace].
//
// When the shard ends elsewhere the error is an [*OffsetMismatchError] and
// nothing was written. The batch is never sent again once it may have been
// written: when the answer is lost, the error is [ErrOutcomeUnknown].
func (c *Client) PublishIf(ctx context.Context, stream string, offset uint64, payloads [][]byte, opts ...PublishOption) (Ack, error) {
	const op = "publish if"
	var o publishOptions
	for _, opt := range opts {
		o = opt.applyPublish(o)
	}
	rt, err := c.route(o.namespace, stream)
	if err != nil {
		return Ack{}, err
	}
	m := &wire.PublishIf{
		Tenant: c.cfg.tenant, Namespace: rt.namespace, Stream: rt.stream,
		Payloads: wire.AppendBlock(nil, payloads...), ExpectedOffset: offset, RequestID: c.ids.Add(1),
	}
	switch {
	case len(payloads) == 0:
		return Ack{}, &Error{Op: op, Code: CodeInvalidRequest, Retry: RetryNever, Message: "a batch without records"}
	case o.ackSet && o.ack == AckNone, o.atLeastOnce:
		return Ack{}, &Error{Op: op, Code: CodeInvalidRequest, Retry: RetryNever, Message: "a conditional publish is acknowledged and sent once"}
	case o.keyed:
		if err := wire.ValidateRoutingKey(o.key); err != nil {
			return Ack{}, nameError("routing key", string(o.key), err)
		}
		m.Key = wire.Some(o.key)
	}
	shard, err := rt.shardOf(ctx, o.key, o.keyed)
	if err != nil {
		return Ack{}, err
	}
	answer, err := c.writeAtOwner(ctx, op, needConditional(), m)
	if err != nil {
		return Ack{}, err
	}
	switch a := answer.(type) {
	case *wire.PublishOK:
		ack := Ack{Shard: shard}
		ack.Offset, ack.HasOffset = a.Offset.Get()
		return ack, nil
	case *wire.PublishRefused:
		return Ack{}, conditionRefused(op, offset, a)
	}
	return Ack{}, unexpectedAnswer(op, "", answer)
}

// conditionRefused is the error of a condition that did not hold.
func conditionRefused(op string, expected uint64, m *wire.PublishRefused) error {
	if m.Reason.Kind == wire.RefusedOffsetMismatch {
		return &OffsetMismatchError{Expected: expected, Tail: m.Reason.Tail}
	}
	e := refusedBatch("", m)
	e.Op = op
	return e
}
