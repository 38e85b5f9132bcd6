package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/felixlog/felix/wire"
)

// Ack finishes records. All are sent at once, and Ack waits for the answer to
// each; what fails is reported claim by claim, in [*ClaimError]s joined by
// errors.Join. On a nil error the group will never see the records again: the
// broker has written that down, or will with the records below that are not
// finished yet.
//
// An acknowledgement can be repeated without harm, and Ack does so while that
// may help and ctx lasts. It need not come from the worker that has the claim:
// a record that lapsed and waits, or that others work on, is finished too.
func (g *Group) Ack(ctx context.Context, claims ...Claim) error {
	if len(claims) == 0 {
		return nil
	}
	if g.err != nil {
		return g.err
	}
	own := make([]groupCall, len(claims))
	calls := make([]*groupCall, len(claims))
	for i, claim := range claims {
		own[i] = groupCall{op: opAck, claim: claim}
		calls[i] = &own[i]
	}
	g.run(ctx, calls)
	var errs []error
	for _, call := range calls {
		if call.err != nil {
			errs = append(errs, &ClaimError{Claim: call.claim, Err: call.err})
		}
	}
	return errors.Join(errs...)
}

// Nack hands a record back, for others to have at once, or after a delay of up
// to 12 h. With the attempts that the poll gave, it is refused as
// [ErrStaleClaim] unless that very delivery still has its claim; without them,
// it is never sent again once it may have happened ([ErrOutcomeUnknown]). A
// record handed back after its last attempt goes to the dead letters.
func (g *Group) Nack(ctx context.Context, claim Claim, delay time.Duration) error {
	_, err := g.do(ctx, &groupCall{op: opNack, claim: claim, d: max(delay, 0)})
	return err
}

// Extend lets a claim stand for d from now, up to 12 h, and gives what the
// broker granted. A claim that does not stand any longer is [ErrStaleClaim]:
// the record is handed out again, or about to be.
func (g *Group) Extend(ctx context.Context, claim Claim, d time.Duration) (granted time.Duration, err error) {
	switch {
	case claim.Attempts == 0:
		return 0, invalid(opExtend.String(), "a claim without its attempts names no delivery")
	case d <= 0:
		return 0, invalid(opExtend.String(), fmt.Sprintf("an extension by %v", d))
	}
	m, err := g.do(ctx, &groupCall{op: opExtend, claim: claim, d: d})
	if err != nil {
		return 0, err
	}
	return duration(m.(*wire.GroupExtended).VisibleMS), nil
}

// DeadLetter gives a record up: it goes to the dead letters of the group, and
// is finished. It works for any record in play, whoever has its claim.
func (g *Group) DeadLetter(ctx context.Context, claim Claim) error {
	_, err := g.do(ctx, &groupCall{op: opDeadLetter, claim: claim})
	return err
}

// DeadLetters lists the offsets of the records that the group gave up,
// ascending. [Client.Read] reads the records, which remain in the stream.
func (g *Group) DeadLetters(ctx context.Context, shard uint32) ([]uint64, error) {
	m, err := g.do(ctx, &groupCall{op: opDeadLetters, claim: Claim{Shard: shard}})
	if err != nil {
		return nil, err
	}
	return m.(*wire.GroupDeadLetterList).Offsets, nil
}

// Discard drops a record from the dead letters for good. One that is not there
// is [ErrNotFound].
func (g *Group) Discard(ctx context.Context, shard uint32, offset uint64) error {
	_, err := g.do(ctx, &groupCall{op: opDiscard, claim: Claim{Shard: shard, Offset: offset}})
	return err
}

// Redrive puts a record of the dead letters back in play, with all its
// attempts. One that is not there is [ErrNotFound].
func (g *Group) Redrive(ctx context.Context, shard uint32, offset uint64) error {
	_, err := g.do(ctx, &groupCall{op: opRedrive, claim: Claim{Shard: shard, Offset: offset}})
	return err
}

// Create lets the group begin at a position of your choice, unless it exists:
// then it stays where it is. When the first answer is lost and the request
// repeated, a group that this call made may be reported as one that was there.
func (g *Group) Create(ctx context.Context, shard uint32, from Start) (GroupPosition, error) {
	return g.move(ctx, &groupCall{op: opCreate, claim: Claim{Shard: shard}, start: from.w})
}

// Seek moves the group: [Earliest] to the oldest record held, [Latest] behind
// the newest, or to an [Offset] between. All claims are void, and records that
// were finished from there on are handed out again; dead letters stay. A seek
// is never sent again once it may have happened ([ErrOutcomeUnknown]).
func (g *Group) Seek(ctx context.Context, shard uint32, to Start) (GroupPosition, error) {
	return g.move(ctx, &groupCall{op: opSeek, claim: Claim{Shard: shard}, start: to.w})
}

func (g *Group) move(ctx context.Context, call *groupCall) (GroupPosition, error) {
	m, err := g.do(ctx, call)
	if err != nil {
		return GroupPosition{}, err
	}
	a := m.(*wire.GroupPosition)
	return GroupPosition{Offset: a.Offset, Moved: a.Moved}, nil
}

// Describe tells where the group stands and, with [DescribeHeld], which
// records are in play.
func (g *Group) Describe(ctx context.Context, shard uint32, opts ...DescribeOption) (GroupInfo, error) {
	var o describeOptions
	for _, opt := range opts {
		o = opt.applyDescribe(o)
	}
	if o.held {
		if err := inBounds(opDescribe.String(), bound{"held records", int64(o.limit), 1, maxHeldLimit, ""}); err != nil {
			return GroupInfo{}, err
		}
	}
	m, err := g.do(ctx, &groupCall{op: opDescribe, claim: Claim{Shard: shard}, describe: o})
	if err != nil {
		return GroupInfo{}, err
	}
	return groupInfo(m.(*wire.GroupInfo)), nil
}

// Delete removes the group: its position, its claims and its dead letters.
// existed is false when there was nothing. A delete is never sent again once
// it may have happened ([ErrOutcomeUnknown]).
func (g *Group) Delete(ctx context.Context, shard uint32) (existed bool, err error) {
	m, err := g.do(ctx, &groupCall{op: opDeleteGroup, claim: Claim{Shard: shard}})
	if err != nil {
		return false, err
	}
	return m.(*wire.GroupDeleted).Existed, nil
}

// do is run for one call.
func (g *Group) do(ctx context.Context, call *groupCall) (wire.Message, error) {
	if g.err != nil {
		return nil, g.err
	}
	g.run(ctx, []*groupCall{call})
	return call.answer, call.err
}

// maxHeldLimit is the most records in play that one describe lists.
const maxHeldLimit = 1000

// invalid is a request that is refused here: nothing was sent.
func invalid(op, message string) *Error {
	return &Error{Op: op, Code: CodeInvalidRequest, Retry: RetryNever, Message: message}
}

// inBounds refuses what is out of bounds.
func inBounds(op string, bounds ...bound) error {
	for _, b := range bounds {
		if err := b.check(); err != nil {
			return invalid(op, err.Error())
		}
	}
	return nil
}

// duration is a number of milliseconds that a peer sent.
func duration(ms uint64) time.Duration {
	const most = 1 << 40 // 34 years
	return time.Duration(min(ms, most)) * time.Millisecond
}
