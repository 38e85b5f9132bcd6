package client

import (
	"context"
	"sync"
	"time"

	"github.com/felixlog/felix/wire"
)

// A Group is a handle on a consumer group of a stream: workers that share
// its records as a queue (wire 12). Each record is claimed by one worker at a
// time, for a while, and finished by an acknowledgement. It is safe for
// concurrent use and costs nothing to make.
//
// A group exists for each shard of the stream by itself. [Client.Consume]
// works on all of them; the calls of a Group name one. Groups are served for
// streams with a log ([ErrUnsupported] otherwise), and need no creation: the
// first poll of a new one begins with the oldest record.
type Group struct {
	c    *Client
	name routeName
	id   string // the group's name
	err  error  // of its names

	mu     sync.Mutex
	owners map[uint32]string // where shards are, if not at the entry broker
}

// Group gives a handle on a consumer group. Nothing is sent; a name that
// cannot be is reported by the first call.
func (c *Client) Group(stream, group string, opts ...GroupOption) *Group {
	o := groupOptions{namespace: c.cfg.namespace}
	for _, opt := range opts {
		o = opt.applyGroup(o)
	}
	g := &Group{c: c, name: routeName{o.namespace, stream}, id: group}
	if g.err = checkName("namespace", o.namespace); g.err == nil {
		if g.err = checkName("stream", stream); g.err == nil {
			g.err = checkName("group", group)
		}
	}
	return g
}

// A Claim names one delivery of a record to this group: what is acknowledged,
// handed back or extended.
type Claim struct {
	Shard  uint32
	Offset uint64
	// Attempts counts the deliveries of the record, this one included. A
	// claim put together by hand may leave it zero: then a [Group.Nack] names
	// no delivery, and [Group.Extend] is refused.
	Attempts uint32
}

// A Delivery is a claimed record.
type Delivery struct {
	Claim
	// Payload is the receiver's to keep.
	Payload []byte
	// SkippedBefore is the number of offsets directly below that hold nothing
	// to deliver: retention took them, or they never were records.
	SkippedBefore uint64
	// Publisher is who published the record, with [WithPublishers].
	Publisher string
	// Time is when it was appended, with [WithTimestamps]; else zero.
	Time time.Time
}

// ref names the group of a shard on the wire.
func (g *Group) ref(shard uint32) wire.GroupRef {
	return wire.GroupRef{
		Tenant: g.c.cfg.tenant, Namespace: g.name.namespace, Stream: g.name.stream, Shard: shard, Group: g.id,
	}
}

// Shards is the number of shards of the group's stream. An unknown stream is
// [ErrNotFound].
func (g *Group) Shards(ctx context.Context) (uint32, error) {
	if g.err != nil {
		return 0, g.err
	}
	n, _, err := g.c.StreamShards(ctx, g.name.stream, InNamespace(g.name.namespace))
	return n, err
}
