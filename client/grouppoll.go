package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/felixlog/felix/wire"
)

const (
	opPoll = "group poll"

	// defaultPollMax and maxPollMax are records of one poll (wire 12.2).
	defaultPollMax = 32
	maxPollMax     = 1000
	// maxConsumer is the length of a consumer's name in bytes (wire 18).
	maxConsumer = 128
	// maxVisibility is the longest that a claim stands (wire 18).
	maxVisibility = 12 * time.Hour
)

// Poll claims records of one shard. It may come back with none: nothing is
// there to be had, even after [PollWait]. What it gives is this caller's until
// the claims lapse; each record is then to be acknowledged ([Group.Ack]) or
// handed back ([Group.Nack]).
//
// A poll whose answer is lost on the way is sent again as the reconnect policy
// says. The broker may have claimed records for the lost one: they come again
// when those claims lapse, one attempt older. The same goes for a poll that
// ends with ctx; the broker takes back what it can no longer send.
func (g *Group) Poll(ctx context.Context, opts ...PollOption) ([]Delivery, error) {
	o := pollOptions{max: defaultPollMax}
	for _, opt := range opts {
		o = opt.applyPoll(o)
	}
	if g.err != nil {
		return nil, g.err
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	return g.poll(ctx, &o)
}

func (o *pollOptions) check() error {
	if o.reclaim && !o.named {
		return invalid(opPoll, "to reclaim needs the name of a consumer")
	}
	bounds := []bound{
		{"most records", int64(o.max), 1, maxPollMax, ""},
		{"wait", o.wait.Milliseconds(), 0, maxVisibility.Milliseconds(), " ms"},
		{"visibility", o.visibility.Milliseconds(), 0, maxVisibility.Milliseconds(), " ms"},
	}
	if o.named {
		bounds = append(bounds, bound{"length of the consumer's name", int64(len(o.consumer)), 1, maxConsumer, " bytes"})
	}
	return inBounds(opPoll, bounds...)
}

// poll is Poll with options that are in order.
func (g *Group) poll(ctx context.Context, o *pollOptions) (out []Delivery, err error) {
	err = g.c.retry(ctx, true, func(ctx context.Context) error {
		out, err = g.pollOnce(ctx, o)
		return err
	})
	return out, err
}

// pollOnce is one attempt of poll.
func (g *Group) pollOnce(ctx context.Context, o *pollOptions) (out []Delivery, err error) {
	request := &wire.GroupPoll{
		GroupRef: g.ref(o.shard), MaxRecords: uint32(o.max), WaitMS: millis(o.wait),
		Reclaim: o.reclaim, VisibilityMS: millis(o.visibility),
	}
	if o.named {
		request.Consumer = wire.Some(o.consumer)
	}
	for reauths := 0; ; reauths++ {
		b, err := g.broker(ctx, o.shard)
		if err != nil {
			return nil, err
		}
		err = g.c.atOwner(opPoll, b, func(b *broker) (to *redirect, err error) {
			out, to, err = g.pollAt(ctx, b, o, request)
			if to != nil {
				g.setOwner(o.shard, to.addr)
			}
			return to, err
		})
		if err == nil {
			return out, nil
		}
		g.setOwner(o.shard, "")
		if !refusedToken(err, opPoll) || !g.c.cfg.renewable || reauths >= maxReauths {
			return nil, err
		}
		// The token expired: the next stream asks for another.
	}
}

// refusedToken says that a broker refused the token in answer to a request,
// rather than to the authentication of its stream.
func refusedToken(err error, op string) bool {
	var e *Error
	return errors.As(err, &e) && e.Code == CodeUnauthenticated && e.Op == op
}

// pollAt polls at one broker, on a stream that nothing else is under way on:
// so that a refusal, which names no request, is the poll's (wire 8.1).
func (g *Group) pollAt(ctx context.Context, b *broker, o *pollOptions, request *wire.GroupPoll) ([]Delivery, *redirect, error) {
	s, err := b.polls.take(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err := o.supported(s.sess.caps, b.addr); err != nil {
		b.polls.put(s)
		return nil, nil, err
	}
	request.RequestID = g.c.ids.Add(1)
	m, interrupted, err := s.exchange(ctx, request, o.wait+g.c.cfg.ackTimeout)
	if err != nil {
		b.polls.drop(s)
		return nil, nil, err
	}
	switch m := m.(type) {
	case *wire.GroupRecords:
		if m.RequestID != request.RequestID {
			b.polls.drop(s)
			return nil, nil, lost(opPoll, b.addr, RetryUnknown, fmt.Errorf("answer to request %d, expected %d", m.RequestID, request.RequestID))
		}
		out := deliveries(m, o.shard) // before another poll uses the stream
		if interrupted {
			b.polls.drop(s)
		} else {
			b.polls.put(s)
		}
		return out, nil, nil
	case *wire.NotLeader:
		b.polls.end(s)
		return nil, redirected(m), nil
	case *wire.Error:
		b.polls.end(s)
		return nil, nil, refused(opPoll, b.addr, m.Failure())
	case *wire.Unsupported:
		b.polls.end(s)
		return nil, nil, &UnsupportedError{Feature: "CONSUMER_GROUP", Broker: b.addr}
	default:
		b.polls.drop(s)
		return nil, nil, unexpectedAnswer(opPoll, b.addr, m)
	}
}

// supported is an error unless the broker serves the poll (wire 5.2).
func (o *pollOptions) supported(caps *capabilities, addr string) error {
	err := caps.require(wire.FeatureConsumerGroup, "CONSUMER_GROUP", addr)
	if err == nil && o.named {
		err = caps.require(wire.FeatureGroupConsumer, "GROUP_CONSUMER", addr)
	}
	if err == nil && o.visibility > 0 {
		err = caps.require(wire.FeatureGroupClaimControl, "GROUP_CLAIM_CONTROL", addr)
	}
	return err
}

// sharedPayloads is how many bytes of payloads share their memory at most. A
// page of small records is then a few allocations, and one that is kept holds
// no more than that of the others.
const sharedPayloads = 32 << 10

// deliveries copies the records of a message, which is its decoder's.
func deliveries(m *wire.GroupRecords, shard uint32) []Delivery {
	if len(m.Records) == 0 {
		return nil
	}
	left := 0
	for i := range m.Records {
		left += len(m.Records[i].Payload)
	}
	out := make([]Delivery, len(m.Records))
	var room []byte
	for i := range m.Records {
		r := &m.Records[i]
		n := len(r.Payload)
		if room == nil || n > cap(room)-len(room) {
			room = make([]byte, 0, max(n, min(left, sharedPayloads)))
		}
		left -= n
		room = append(room, r.Payload...)
		out[i] = Delivery{
			Claim:         Claim{Shard: shard, Offset: r.Offset, Attempts: r.Attempts},
			Payload:       room[len(room)-n : len(room) : len(room)],
			SkippedBefore: r.SkippedBefore,
			Publisher:     r.Publisher.Or(""),
			Time:          moment(r.TimestampMicros),
		}
	}
	return out
}
