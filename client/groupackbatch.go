package client

import "github.com/felixlog/felix/wire"

// together puts acks of one shard into one request where the broker takes
// that; other calls stay as they are.
func (g *Group) together(calls []*groupCall, caps *capabilities) []*groupCall {
	if caps.ackBatch < 2 || len(calls) < 2 {
		return calls
	}
	sent := make([]*groupCall, 0, len(calls))
	open := make(map[uint32]*groupCall) // the batch of each shard that is not full
	for _, call := range calls {
		if call.op != opAck {
			sent = append(sent, call)
			continue
		}
		batch := open[call.claim.Shard]
		if batch == nil {
			batch = &groupCall{op: opAckBatch, claim: Claim{Shard: call.claim.Shard}}
			open[call.claim.Shard] = batch
			sent = append(sent, batch)
		}
		if batch.acks = append(batch.acks, call); len(batch.acks) == caps.ackBatch {
			delete(open, call.claim.Shard)
		}
	}
	return sent
}

// apart gives each ack of the batches among sent its outcome, and returns the
// calls of which nothing was sent, which are a tail of sent.
func apart(sent, unsent []*groupCall, addr string) (calls []*groupCall) {
	for i, call := range sent {
		switch {
		case i >= len(sent)-len(unsent):
			if call.op == opAckBatch {
				calls = append(calls, call.acks...)
			} else {
				calls = append(calls, call)
			}
		case call.op == opAckBatch:
			call.spread(addr)
		}
	}
	return calls
}

// spread gives each ack of a batch its outcome.
func (c *groupCall) spread(addr string) {
	for _, ack := range c.acks {
		ack.answered, ack.err, ack.to = c.answered, c.err, c.to
	}
	answer, ok := c.answer.(*wire.GroupAcked)
	if !ok || len(answer.Failed) == 0 {
		return
	}
	failures := make(map[uint64]*wire.GroupAckFailure, len(answer.Failed))
	for i := range answer.Failed {
		failures[answer.Failed[i].Offset] = &answer.Failed[i]
	}
	for _, ack := range c.acks {
		if f := failures[ack.claim.Offset]; f != nil {
			e := refused(ack.name(), addr, f.Failure())
			e.RequestID = c.id
			ack.err = e
		}
	}
}

// offsets are those of a batch.
func (c *groupCall) offsets() []uint64 {
	offsets := make([]uint64, len(c.acks))
	for i, ack := range c.acks {
		offsets[i] = ack.claim.Offset
	}
	return offsets
}
