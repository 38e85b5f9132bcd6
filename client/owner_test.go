package client

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/felixlog/felix/wire"
)

// answering is a peer that answers each request on a stream of its own with
// what answer gives; nil ends the stream without an answer.
func answering(t *testing.T, answer func(m wire.Message) wire.Message) *peer {
	t.Helper()
	return newPeer(t, func(s *peerStream) {
		m := s.message()
		switch m := m.(type) {
		case nil:
			return
		case *wire.StreamShards:
			s.send(&wire.StreamShardsView{Shards: 4, RequestID: m.RequestID})
		default:
			if a := answer(m); a != nil {
				s.send(a)
			}
		}
		s.CloseWrite()
	})
}

func TestPublishIf(t *testing.T) {
	shard := wire.ShardOf([]byte("k"), true, 4, wire.Modulo)
	c := dial(t, []string{answering(t, func(m wire.Message) wire.Message {
		p, ok := m.(*wire.PublishIf)
		if !ok {
			t.Errorf("got %s", m.MessageType())
			return nil
		}
		if p.Stream != "s" || string(p.Key.Value) != "k" || p.Payloads.Count() != 2 {
			t.Errorf("request %+v", p)
		}
		if p.ExpectedOffset != 9 {
			return &wire.PublishRefused{RequestID: p.RequestID, Reason: wire.RefusedReason{Kind: wire.RefusedOffsetMismatch, Tail: 9}, Message: "no"}
		}
		return &wire.PublishOK{RequestID: p.RequestID, Offset: wire.Some[uint64](9)}
	}).addr()}, WithMaxFrame(64<<10))
	ctx := testContext(t)
	records := [][]byte{[]byte("a"), nil}
	ack, err := c.PublishIf(ctx, "s", 9, records, WithKey([]byte("k")))
	if err != nil || ack.Offset != 9 || !ack.HasOffset || ack.Shard != shard {
		t.Errorf("ack %+v, %v", ack, err)
	}
	_, err = c.PublishIf(ctx, "s", 5, records, WithKey([]byte("k")))
	var mismatch *OffsetMismatchError
	if !errors.As(err, &mismatch) || mismatch.Tail != 9 || mismatch.Expected != 5 || IsOutcomeUnknown(err) || IsRetryable(err) {
		t.Errorf("mismatch: %v", err)
	}
	for name, opts := range map[string][]PublishOption{
		"unacked":       {WithAck(AckNone)},
		"at least once": {WithAtLeastOnce()},
	} {
		if _, err := c.PublishIf(ctx, "s", 9, records, opts...); !errors.Is(err, ErrInvalidRequest) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.PublishIf(ctx, "s", 9, nil); !errors.Is(err, ErrInvalidRequest) {
		t.Errorf("empty batch: %v", err)
	}
	if _, err := c.PublishIf(ctx, "s", 9, [][]byte{make([]byte, 64<<10)}); !errors.Is(err, ErrInvalidRequest) {
		t.Errorf("too large: %v", err)
	}
}

func TestCommitAndStateGet(t *testing.T) {
	c := dial(t, []string{answering(t, func(m wire.Message) wire.Message {
		switch m := m.(type) {
		case *wire.Commit:
			if string(m.EntityKey) != "e" || string(m.Event) != "ev" || len(m.Changes) != 2 || !m.Changes[1].Delete {
				t.Errorf("request %+v", m)
			}
			if at, ok := m.ExpectedOffset.Get(); ok && at != 3 {
				return &wire.PublishRefused{RequestID: m.RequestID, Reason: wire.RefusedReason{Kind: wire.RefusedOffsetMismatch, Tail: 3}}
			}
			return &wire.CommitOK{RequestID: m.RequestID, Offset: 3}
		case *wire.StateGet:
			if string(m.Key) == "a" {
				return &wire.StateValue{RequestID: m.RequestID, Value: wire.Some([]byte("1")), Version: wire.Some[uint64](3), AsOf: wire.Some[uint64](4)}
			}
			return &wire.StateValue{RequestID: m.RequestID}
		}
		t.Errorf("got %s", m.MessageType())
		return nil
	}).addr()})
	ctx := testContext(t)
	changes := []StateChange{SetState("a", []byte("1")), ClearState("b")}
	for _, opts := range [][]CommitOption{nil, {ExpectOffset(3)}} {
		if ack, err := c.Commit(ctx, "s", []byte("e"), []byte("ev"), changes, opts...); err != nil || ack.Offset != 3 {
			t.Errorf("commit: %+v, %v", ack, err)
		}
	}
	var mismatch *OffsetMismatchError
	if _, err := c.Commit(ctx, "s", []byte("e"), []byte("ev"), changes, ExpectOffset(2)); !errors.As(err, &mismatch) || mismatch.Tail != 3 {
		t.Errorf("mismatch: %v", err)
	}
	if v, err := c.StateGet(ctx, "s", []byte("e"), "a"); err != nil || !v.Found || string(v.Value) != "1" || v.Version != 3 || !v.HasAsOf || v.AsOf != 4 {
		t.Errorf("state %+v, %v", v, err)
	}
	if v, err := c.StateGet(ctx, "s", []byte("e"), "zz"); err != nil || v.Found || v.HasAsOf {
		t.Errorf("absent state %+v, %v", v, err)
	}
	if _, err := c.Commit(ctx, "s", []byte("e"), nil, []StateChange{SetState("", nil)}); !errors.As(err, new(*NameError)) {
		t.Errorf("empty state key: %v", err)
	}
}

// TestWritesAreNotRepeatedBlindly: an answer that never comes leaves the
// outcome unknown, and the request is not sent again; a refusal that applied
// nothing is retried.
func TestWritesAreNotRepeatedBlindly(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer func(n int) wire.Message
		sent   int
		check  func(error) bool
	}{
		{"no answer", func(int) wire.Message { return nil }, 1, IsOutcomeUnknown},
		{"unknown", func(int) wire.Message {
			return &wire.Error{Message: "x", ErrorInfo: wire.ErrorInfo{Code: wire.Some("quorum_timeout"), Retry: wire.Some("outcome_unknown")}}
		}, 1, IsOutcomeUnknown},
		{"unavailable", func(n int) wire.Message {
			if n == 3 {
				return &wire.PublishOK{}
			}
			return &wire.Error{Message: "x", ErrorInfo: wire.ErrorInfo{Code: wire.Some("shard_unavailable"), Retry: wire.Some("retry")}}
		}, 3, func(err error) bool { return err == nil }},
		{"publish_error", func(n int) wire.Message {
			if n == 2 {
				return &wire.PublishOK{}
			}
			return publishError(wire.CodeOverloaded, wire.RetryAfter)
		}, 2, func(err error) bool { return err == nil }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sent := make(chan struct{}, 10)
			c := dial(t, []string{answering(t, func(m wire.Message) wire.Message {
				sent <- struct{}{}
				return tc.answer(len(sent))
			}).addr()})
			_, err := c.PublishIf(testContext(t), "s", 0, [][]byte{nil})
			if !tc.check(err) {
				t.Errorf("error %v", err)
			}
			if n := len(sent); n != tc.sent {
				t.Errorf("sent %d times, want %d", n, tc.sent)
			}
		})
	}
}

func TestOwnerIsFollowed(t *testing.T) {
	owner := answering(t, func(m wire.Message) wire.Message {
		return &wire.OffsetValue{RequestID: m.(*wire.OffsetForTime).RequestID, Offset: wire.Some[uint64](5)}
	})
	entry := answering(t, func(m wire.Message) wire.Message {
		return &wire.NotLeader{NodeID: "b2", Addr: wire.Some(owner.addr())}
	})
	c := dial(t, []string{entry.addr()})
	offset, ok, err := c.OffsetForTime(testContext(t), "s", 2, time.UnixMicro(7))
	if err != nil || !ok || offset != 5 {
		t.Errorf("offset %d %v, %v", offset, ok, err)
	}
}

func TestReadPages(t *testing.T) {
	const tail = 25
	c := dial(t, []string{answering(t, func(m wire.Message) wire.Message {
		r, ok := m.(*wire.StreamRead)
		if !ok || r.Shard != 2 {
			t.Errorf("got %+v", m)
			return nil
		}
		if r.From > tail {
			return &wire.SubscribeCursorError{Reason: wire.CursorInFuture, Requested: r.From, Available: tail}
		}
		out := &wire.StreamRecords{RequestID: r.RequestID, NextOffset: r.From}
		for out.NextOffset < min(r.From+10, r.End.Or(tail), tail) {
			out.Records = append(out.Records, wire.StreamRecord{
				Offset: out.NextOffset, Payload: fmt.Append(nil, out.NextOffset), Publisher: wire.Some("p1"), TimestampMicros: 1000,
			})
			out.NextOffset++
		}
		return out
	}).addr()})
	ctx := testContext(t)
	page, err := c.Read(ctx, "s", Range{Shard: 2, From: 3})
	if err != nil || len(page.Records) != 10 || page.Next != 13 {
		t.Fatalf("page %+v, %v", page, err)
	}
	if ev := page.Records[0]; ev.Offset != 3 || !ev.HasOffset || ev.Shard != 2 || string(ev.Payload) != "3" || ev.Publisher != "p1" || !ev.Time.Equal(time.UnixMicro(1000)) {
		t.Errorf("record %+v", ev)
	}
	var cursor *CursorError
	if _, err := c.Read(ctx, "s", Range{Shard: 2, From: 26}); !errors.As(err, &cursor) || cursor.Available != tail {
		t.Errorf("past the end: %v", err)
	}
	for _, tc := range []struct{ from, end, want uint64 }{{0, 0, 25}, {4, 17, 13}, {25, 0, 0}, {9, 9, 0}} {
		n, next := uint64(0), tc.from
		for ev, err := range c.Records(ctx, "s", Range{Shard: 2, From: tc.from, End: tc.end}) {
			if err != nil {
				t.Fatal(err)
			}
			if ev.Offset != next {
				t.Errorf("offset %d, want %d", ev.Offset, next)
			}
			n, next = n+1, next+1
		}
		if n != tc.want {
			t.Errorf("from %d to %d: %d records, want %d", tc.from, tc.end, n, tc.want)
		}
	}
	for _, err := range c.Records(ctx, "s", Range{Shard: 2, From: 99}) {
		if !errors.As(err, &cursor) {
			t.Errorf("past the end: %v", err)
		}
	}
}

func TestOwnerCallsNeedTheirFeature(t *testing.T) {
	p := newPeer(t, func(s *peerStream) { s.next() })
	p.setAnswer(offering(wire.KnownFlags, 0))
	c := dial(t, []string{p.addr()})
	ctx := testContext(t)
	calls := map[string]func() error{
		"publish if":      func() error { _, err := c.PublishIf(ctx, "s", 0, [][]byte{nil}); return err },
		"commit":          func() error { _, err := c.Commit(ctx, "s", []byte("e"), nil, nil); return err },
		"state get":       func() error { _, err := c.StateGet(ctx, "s", []byte("e"), "k"); return err },
		"read":            func() error { _, err := c.Read(ctx, "s", Range{}); return err },
		"offset for time": func() error { _, _, err := c.OffsetForTime(ctx, "s", 0, time.Now()); return err },
		"counter add":     func() error { _, err := c.Cache("c").CounterAdd(ctx, "k", 1); return err },
		"counter get":     func() error { _, _, err := c.Cache("c").CounterGet(ctx, "k"); return err },
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
