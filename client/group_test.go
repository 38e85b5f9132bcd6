package client

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/felixlog/felix/wire"
)

func claims(shard uint32, offsets ...uint64) (out []Claim) {
	for _, offset := range offsets {
		out = append(out, Claim{Shard: shard, Offset: offset, Attempts: 1})
	}
	return out
}

// TestGroupRequests: each call sends what the protocol has for it, and gives
// what comes back.
func TestGroupRequests(t *testing.T) {
	ref := wire.GroupRef{Tenant: "t1", Namespace: "n", Stream: "s", Shard: 3, Group: "g"}
	claim := Claim{Shard: 3, Offset: 7, Attempts: 2}
	since := time.UnixMicro(1_700_000_000_000_001)
	table := []struct {
		name    string
		call    func(ctx context.Context, g *Group) (any, error)
		request wire.Message
		answer  wire.Message
		want    any
	}{
		{
			"poll", func(ctx context.Context, g *Group) (any, error) {
				return g.Poll(ctx, PollShard(3), PollMax(5), PollWait(1500*time.Microsecond), PollVisibility(time.Minute), PollAs("me"), PollReclaim())
			},
			&wire.GroupPoll{GroupRef: ref, MaxRecords: 5, WaitMS: 2, Consumer: wire.Some("me"), Reclaim: true, VisibilityMS: 60_000},
			&wire.GroupRecords{Records: []wire.GroupRecord{{
				Offset: 7, Payload: []byte("x"), Attempts: 2, SkippedBefore: 3,
				Publisher: wire.Some("p"), TimestampMicros: wire.Some(uint64(since.UnixMicro())),
			}}},
			[]Delivery{{Claim: claim, Payload: []byte("x"), SkippedBefore: 3, Publisher: "p", Time: since}},
		},
		{
			"empty poll", func(ctx context.Context, g *Group) (any, error) { return g.Poll(ctx, PollShard(3)) },
			&wire.GroupPoll{GroupRef: ref, MaxRecords: 32}, &wire.GroupRecords{}, []Delivery(nil),
		},
		{
			"ack", func(ctx context.Context, g *Group) (any, error) { return nil, g.Ack(ctx, claim) },
			&wire.GroupAck{GroupRef: ref, Offset: 7}, &wire.CacheOK{}, nil,
		},
		{
			"nack", func(ctx context.Context, g *Group) (any, error) { return nil, g.Nack(ctx, claim, time.Second) },
			&wire.GroupNack{GroupRef: ref, Offset: 7, DelayMS: 1000, Attempts: 2}, &wire.CacheOK{}, nil,
		},
		{
			"extend", func(ctx context.Context, g *Group) (any, error) { return g.Extend(ctx, claim, time.Minute) },
			&wire.GroupExtend{GroupRef: ref, Offset: 7, Attempts: 2, ExtendMS: 60_000}, &wire.GroupExtended{VisibleMS: 50_000}, 50 * time.Second,
		},
		{
			"dead letter", func(ctx context.Context, g *Group) (any, error) { return nil, g.DeadLetter(ctx, claim) },
			&wire.GroupDeadLetter{GroupRef: ref, Offset: 7}, &wire.CacheOK{}, nil,
		},
		{
			"dead letters", func(ctx context.Context, g *Group) (any, error) { return g.DeadLetters(ctx, 3) },
			&wire.GroupDeadLetters{GroupRef: ref}, &wire.GroupDeadLetterList{Offsets: []uint64{4, 9}}, []uint64{4, 9},
		},
		{
			"discard", func(ctx context.Context, g *Group) (any, error) { return nil, g.Discard(ctx, 3, 7) },
			&wire.GroupDiscard{GroupRef: ref, Offset: 7}, &wire.CacheOK{}, nil,
		},
		{
			"redrive", func(ctx context.Context, g *Group) (any, error) { return nil, g.Redrive(ctx, 3, 7) },
			&wire.GroupRedrive{GroupRef: ref, Offset: 7}, &wire.CacheOK{}, nil,
		},
		{
			"create", func(ctx context.Context, g *Group) (any, error) { return g.Create(ctx, 3, Earliest()) },
			&wire.GroupSeek{GroupRef: ref, Start: Earliest().w, IfNew: true}, &wire.GroupPosition{Offset: 4}, GroupPosition{Offset: 4},
		},
		{
			"seek", func(ctx context.Context, g *Group) (any, error) { return g.Seek(ctx, 3, Offset(9)) },
			&wire.GroupSeek{GroupRef: ref, Start: Offset(9).w}, &wire.GroupPosition{Offset: 9, Moved: true}, GroupPosition{Offset: 9, Moved: true},
		},
		{
			"describe", func(ctx context.Context, g *Group) (any, error) { return g.Describe(ctx, 3) },
			&wire.GroupDescribe{GroupRef: ref}, &wire.GroupInfo{Tail: 9, InFlight: 1, Owed: 2, DeadLetters: 3},
			GroupInfo{Tail: 9, InFlight: 1, Owed: 2, DeadLetters: 3},
		},
		{
			"describe held", func(ctx context.Context, g *Group) (any, error) { return g.Describe(ctx, 3, DescribeHeld(5, 10)) },
			&wire.GroupDescribe{GroupRef: ref, Held: true, HeldFrom: 5, HeldLimit: 10},
			&wire.GroupInfo{
				Committed: wire.Some[uint64](4), Tail: 9, HighWater: wire.Some[uint64](8), Trimmed: 1, MaxAttempts: 5,
				First:           wire.Some(wire.GroupHeld{Offset: 4, State: "not_handed_out"}),
				NextLapseMicros: wire.Some(uint64(since.UnixMicro())),
				Held: []wire.GroupHeld{{
					Offset: 5, State: "claimed", Attempts: 2, Consumer: wire.Some("me"), Principal: wire.Some("p"), Connection: 8,
					SinceMicros: wire.Some(uint64(since.UnixMicro())), Reserved: true, Redriven: true,
				}},
				HeldNext: wire.Some[uint64](6),
			},
			GroupInfo{
				Committed: 4, HasCommitted: true, Tail: 9, HighWater: 8, HasHighWater: true, Trimmed: 1, MaxAttempts: 5,
				First:     &GroupHeld{Offset: 4, State: HeldNotHandedOut},
				NextLapse: since,
				Held: []GroupHeld{{
					Offset: 5, State: HeldClaimed, Attempts: 2, Consumer: "me", Principal: "p", Connection: 8,
					Since: since, Reserved: true, Redriven: true,
				}},
				HeldNext: 6, More: true,
			},
		},
		{
			"delete", func(ctx context.Context, g *Group) (any, error) { return g.Delete(ctx, 3) },
			&wire.GroupDelete{GroupRef: ref}, &wire.GroupDeleted{Existed: true}, true,
		},
	}
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			p := newPeer(t, func(s *peerStream) {
				for m := s.message(); m != nil; m = s.message() {
					s.send(withID(row.answer, requestID(m)))
					if got := withID(m, 0); !reflect.DeepEqual(got, row.request) {
						t.Errorf("request %+v, want %+v", got, row.request)
					}
				}
				s.CloseWrite()
			})
			g := dial(t, []string{p.addr()}).Group("s", "g", InNamespace("n"))
			for range 2 { // the second on the same stream
				got, err := row.call(testContext(t), g)
				if err != nil || !reflect.DeepEqual(got, row.want) {
					t.Errorf("%+v, %v; want %+v", got, err, row.want)
				}
			}
			if n := p.authCount(); n > 2 {
				t.Errorf("%d streams for two calls", n)
			}
		})
	}
}

// requestID reads the request id of a message, withID sets it.
func requestID(m wire.Message) uint64 {
	return reflect.ValueOf(m).Elem().FieldByName("RequestID").Uint()
}

func withID(m wire.Message, id uint64) wire.Message {
	v := reflect.New(reflect.TypeOf(m).Elem())
	v.Elem().Set(reflect.ValueOf(m).Elem())
	v.Elem().FieldByName("RequestID").SetUint(id)
	return v.Interface().(wire.Message)
}

// TestAckReportsEachClaim: what fails is named, the rest is done.
func TestAckReportsEachClaim(t *testing.T) {
	g := newGroupPeer(t, 1)
	g.publishNumbered(0, 1500)
	g.setRefuse(func(s *peerStream, m wire.Message) wire.Message {
		if m, ok := m.(*wire.GroupAck); ok && m.Offset%500 == 250 {
			return stale("fatal")
		}
		return nil
	})
	var all []Claim
	for i := range uint64(1500) {
		all = append(all, Claim{Offset: i})
	}
	c := dial(t, []string{g.addr()})
	err := c.Group("s", "g").Ack(testContext(t), all...)
	if !errors.Is(err, ErrStaleClaim) || IsRetryable(err) {
		t.Fatalf("error %v", err)
	}
	var failed []uint64
	for _, err := range err.(interface{ Unwrap() []error }).Unwrap() {
		claim, ok := errors.AsType[*ClaimError](err)
		if !ok {
			t.Fatalf("no claim error: %v", err)
		}
		failed = append(failed, claim.Claim.Offset)
	}
	if want := []uint64{250, 750, 1250}; !slices.Equal(failed, want) {
		t.Errorf("failed %v, want %v", failed, want)
	}
	if n := len(g.lines("ack")); n != 1497 {
		t.Errorf("%d acks, want 1497", n)
	}
	if err := c.Group("s", "g").Ack(testContext(t)); err != nil {
		t.Errorf("no claims: %v", err)
	}
}
