package client

import (
	"time"

	"github.com/felixlog/felix/wire"
)

// A groupOp is a kind of group request, polls apart.
type groupOp uint8

const (
	opAck groupOp = iota
	opNack
	opExtend
	opDeadLetter
	opDeadLetters
	opDiscard
	opRedrive
	opCreate
	opSeek
	opDescribe
	opDeleteGroup
	opAckBatch // several acks in one request
)

func (o groupOp) String() string {
	switch o {
	case opAck, opAckBatch:
		return "group ack"
	case opNack:
		return "group nack"
	case opExtend:
		return "group extend"
	case opDeadLetter:
		return "group dead letter"
	case opDeadLetters:
		return "group dead letters"
	case opDiscard:
		return "group discard"
	case opRedrive:
		return "group redrive"
	case opCreate:
		return "group create"
	case opSeek:
		return "group seek"
	case opDescribe:
		return "group describe"
	default:
		return "group delete"
	}
}

// A groupBatch is the calls that one caller waits for together.
type groupBatch struct {
	left  int           // guarded by the mutex of the stream that has them
	ready chan struct{} // one token: left is 0
}

// A groupCall is one request about a group on its way. A call that its caller
// abandoned is not written to any longer.
type groupCall struct {
	call
	batch *groupBatch

	op       groupOp
	claim    Claim
	d        time.Duration // nack: the delay; extend: how long
	start    wire.Start    // of seek and create
	describe describeOptions
	acks     []*groupCall // of a batch

	// What came back, beside err. Guarded by the stream's mutex.
	answer wire.Message // but for cache_ok
	to     *redirect

	asked    []string // brokers that redirected it, in a row
	doubtful bool     // an attempt may have been applied
}

// repeatable says that the request may be sent again when its outcome is
// unknown: twice is as good as once. A nack that names no delivery is not: it
// would take the record from whoever has it by then.
func (c *groupCall) repeatable() bool {
	return c.op != opSeek && c.op != opDeleteGroup && (c.op != opNack || c.claim.Attempts != 0)
}

func (c *groupCall) name() string { return c.op.String() }

func (c *groupCall) done() {
	if c.batch.left--; c.batch.left == 0 {
		c.batch.ready <- struct{}{}
	}
}

func (c *groupCall) fill(m wire.Message) (fits bool, id wire.Optional[uint64]) {
	keep := m
	switch m := m.(type) {
	case *wire.CacheOK:
		fits, id = c.op <= opDeadLetter && c.op != opExtend || c.op == opDiscard || c.op == opRedrive, wire.Some(m.RequestID)
		keep = nil // the decoder's
	case *wire.GroupAcked:
		fits, id = c.op == opAckBatch, wire.Some(m.RequestID)
	case *wire.GroupExtended:
		fits, id = c.op == opExtend, wire.Some(m.RequestID)
	case *wire.GroupDeadLetterList:
		fits, id = c.op == opDeadLetters, wire.Some(m.RequestID)
	case *wire.GroupPosition:
		fits, id = c.op == opSeek || c.op == opCreate, wire.Some(m.RequestID)
	case *wire.GroupInfo:
		fits, id = c.op == opDescribe, wire.Some(m.RequestID)
	case *wire.GroupDeleted:
		fits, id = c.op == opDeleteGroup, wire.Some(m.RequestID)
	case *wire.NotLeader:
		fits, keep = true, nil
		if !c.abandoned {
			c.to = redirected(m)
		}
	}
	if !c.abandoned {
		c.answer = keep
	}
	return fits, id
}

// supported is an error unless the broker serves the request (wire 5.2).
func (c *groupCall) supported(caps *capabilities, addr string) error {
	if err := caps.require(wire.FeatureConsumerGroup, "CONSUMER_GROUP", addr); err != nil {
		return err
	}
	switch c.op {
	case opNack:
		if c.d == 0 && c.claim.Attempts == 0 {
			return nil
		}
		fallthrough
	case opExtend, opDeadLetter:
		return caps.require(wire.FeatureGroupClaimControl, "GROUP_CLAIM_CONTROL", addr)
	case opDeadLetters, opDiscard, opRedrive:
		return caps.require(wire.FeatureGroupDeadLetters, "GROUP_DEAD_LETTERS", addr)
	case opCreate, opSeek, opDescribe, opDeleteGroup:
		return caps.require(wire.FeatureGroupAdmin, "GROUP_ADMIN", addr)
	}
	return nil
}

// encode gives each call an id and its frame. The frames lie behind each other
// in one buffer of the client's, to be put back when the calls are sent.
func (g *Group) encode(calls []*groupCall) (buf []byte) {
	const fields = 256 // bytes of a request beside its names, or more
	const digits = 21  // of an offset in a list, with its comma
	names := len(g.c.cfg.tenant) + len(g.name.namespace) + len(g.name.stream) + len(g.id)
	size := len(calls) * (fields + names)
	for _, call := range calls {
		size += digits * len(call.acks)
	}
	buf = g.c.bufs.get(size)
	var ack wire.GroupAck // most are, and one does for all
	for _, call := range calls {
		call.req = call
		call.id = g.c.ids.Add(1)
		from := len(buf)
		if call.op == opAck {
			ack.GroupRef, ack.Offset, ack.RequestID = g.ref(call.claim.Shard), call.claim.Offset, call.id
			buf = wire.AppendMessage(buf, &ack)
		} else {
			buf = wire.AppendMessage(buf, g.request(call))
		}
		call.frame = buf[from:len(buf):len(buf)]
	}
	return buf
}

// request is the message of a call.
func (g *Group) request(c *groupCall) wire.Message {
	ref := g.ref(c.claim.Shard)
	switch c.op {
	case opAckBatch:
		return &wire.GroupAckBatch{GroupRef: ref, Offsets: c.offsets(), RequestID: c.id}
	case opNack:
		return &wire.GroupNack{
			GroupRef: ref, Offset: c.claim.Offset, RequestID: c.id,
			DelayMS: millis(c.d), Attempts: c.claim.Attempts,
		}
	case opExtend:
		return &wire.GroupExtend{
			GroupRef: ref, Offset: c.claim.Offset, Attempts: c.claim.Attempts,
			ExtendMS: millis(c.d), RequestID: c.id,
		}
	case opDeadLetter:
		return &wire.GroupDeadLetter{GroupRef: ref, Offset: c.claim.Offset, RequestID: c.id}
	case opDeadLetters:
		return &wire.GroupDeadLetters{GroupRef: ref, RequestID: c.id}
	case opDiscard:
		return &wire.GroupDiscard{GroupRef: ref, Offset: c.claim.Offset, RequestID: c.id}
	case opRedrive:
		return &wire.GroupRedrive{GroupRef: ref, Offset: c.claim.Offset, RequestID: c.id}
	case opCreate, opSeek:
		return &wire.GroupSeek{GroupRef: ref, Start: c.start, IfNew: c.op == opCreate, RequestID: c.id}
	case opDescribe:
		return &wire.GroupDescribe{
			GroupRef: ref, RequestID: c.id,
			Held: c.describe.held, HeldFrom: c.describe.from, HeldLimit: uint32(c.describe.limit),
		}
	default:
		return &wire.GroupDelete{GroupRef: ref, RequestID: c.id}
	}
}

// millis rounds up to whole milliseconds; what is negative is none.
func millis(d time.Duration) uint64 {
	if d <= 0 {
		return 0
	}
	return uint64((d-1)/time.Millisecond) + 1
}
