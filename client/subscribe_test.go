package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/wire"
)

// subscriber is a peer script for subscribes: each is given to serve with
// its request, in the order they come.
func subscriber(t *testing.T, serve func(n int, s *peerStream, m *wire.Subscribe)) *peer {
	p := newPeer(t, nil)
	n := 0
	p.setServe(func(s *peerStream) {
		switch m := s.message().(type) {
		case nil:
		case *wire.Subscribe:
			p.mu.Lock()
			n++
			turn := n
			p.mu.Unlock()
			serve(turn, s, m)
		case *wire.StreamShards:
			s.send(&wire.StreamShardsView{Shards: 3, RequestID: m.RequestID})
			s.CloseWrite()
		default:
			t.Errorf("peer got %s", m.MessageType())
		}
	})
	return p
}

func durableAt(start, live uint64) wire.Subscribed {
	return wire.Subscribed{StartOffset: wire.Some(start), LiveOffset: wire.Some(live)}
}

func next(t *testing.T, s *Subscription) Event {
	t.Helper()
	ev, err := s.Next(testContext(t))
	if err != nil {
		t.Fatalf("next: %v", err)
	}
	return ev
}

func expect(t *testing.T, s *Subscription, payload string, offset, gap uint64) {
	t.Helper()
	ev := next(t, s)
	if string(ev.Payload) != payload || ev.Offset != offset || !ev.HasOffset || ev.Gap != gap {
		t.Errorf("event %q offset %d (%v) gap %d, want %q offset %d gap %d",
			ev.Payload, ev.Offset, ev.HasOffset, ev.Gap, payload, offset, gap)
	}
}

func TestSubscribeRequest(t *testing.T) {
	cases := []struct {
		opts []SubscribeOption
		want wire.Subscribe
	}{
		{nil, wire.Subscribe{Namespace: "default", Start: wire.Some(wire.Start{Kind: wire.StartLatest})}},
		{[]SubscribeOption{From(Earliest())}, wire.Subscribe{Namespace: "default", Start: wire.Some(wire.Start{Kind: wire.StartEarliest})}},
		{[]SubscribeOption{From(Offset(7)), Shard(3), QueueCapacity(9), InNamespace("n2")},
			wire.Subscribe{Namespace: "n2", Start: wire.Some(wire.StartAt(7)), Shard: wire.Some[uint32](3), QueueCapacity: wire.Some[uint32](9)}},
	}
	for _, tc := range cases {
		seen := make(chan *wire.Subscribe, 1)
		p := subscriber(t, func(_ int, s *peerStream, m *wire.Subscribe) {
			seen <- m
			s.events(wire.Subscribed{})
		})
		c := dial(t, []string{p.addr()})
		sub, err := c.Subscribe(testContext(t), "s", tc.opts...)
		if err != nil {
			t.Fatal(err)
		}
		defer sub.Close()
		tc.want.Tenant, tc.want.Stream = "t1", "s"
		if got := <-seen; *got != tc.want {
			t.Errorf("request %+v, want %+v", got, tc.want)
		}
	}
}

func TestEveryFormOfEvents(t *testing.T) {
	p := subscriber(t, func(_ int, s *peerStream, m *wire.Subscribe) {
		e := s.events(wire.Subscribed{})
		own := wire.EventBatch{SubscriptionID: e.id, Block: block("a", "")}
		e.Write(own.Append(nil))
		shared := wire.EventBatch{Shared: true, HasOffsets: true, BaseOffset: 10, Block: block("b", "c")}
		e.Write(shared.Append(nil))
		e.send(&wire.JSONEvent{Tenant: "t1", Namespace: "default", Stream: "s", Payload: []byte("d"), Offset: wire.Some[uint64](12)})
		e.send(&wire.JSONEventBatch{Tenant: "t1", Namespace: "default", Stream: "s", Payloads: block("e", "f"), BaseOffset: wire.Some[uint64](13)})
		timed := wire.EventBatch{Shared: true, HasOffsets: true, BaseOffset: 15, HasTimestamps: true, HasPublisher: true,
			Publisher: []byte("p1"), Timed: wire.AppendTimed(nil, block("g"), 1_700_000_000_000_001)}
		e.Write(timed.Append(nil))
		empty := wire.EventBatch{Shared: true, HasOffsets: true, BaseOffset: 16, Block: block()}
		e.Write(empty.Append(nil))
		e.CloseWrite()
	})
	c := dial(t, []string{p.addr()}, WithPublishers(), WithTimestamps())
	sub, err := c.Subscribe(testContext(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	var got []string
	var last Event
	for ev, err := range sub.Events(testContext(t)) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s@%d", ev.Payload, ev.Offset))
		last = ev
	}
	want := []string{"a@0", "@0", "b@10", "c@11", "d@12", "e@13", "f@14", "g@15"}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if last.Publisher != "p1" || !last.Time.Equal(time.UnixMicro(1_700_000_000_000_001)) {
		t.Errorf("last event: publisher %q, time %v", last.Publisher, last.Time)
	}
	if a := p.firstAuth(); !a.ClientFlags.Value.Has(wire.FlagEventPublisher | wire.FlagEventTimestamps) {
		t.Errorf("offered %#x", uint16(a.ClientFlags.Value))
	}
	if _, err := sub.Next(testContext(t)); !errors.Is(err, ErrEnded) {
		t.Errorf("after the end: %v", err)
	}
	if st := sub.Stats(); st.Records != 8 || st.Bytes != 7 || st.Lost != 0 {
		t.Errorf("stats %+v", st)
	}
}

func TestGapsAreCounted(t *testing.T) {
	p := subscriber(t, func(_ int, s *peerStream, m *wire.Subscribe) {
		e := s.events(durableAt(5, 8))
		e.batch(5, 0, "a", "b") // 5, 6
		e.batch(9, 0, "c")      // 7 and 8 lost
		e.batch(13, 3, "d")     // 10..12 hold nothing
		e.batch(20, 2, "e")     // 14..19: two hold nothing, four lost
		e.batch(19, 0, "x", "e", "f")
		e.batch(10, 0, "y")
		e.batch(22, 9, "g") // more skipped than missing
	})
	c := dial(t, []string{p.addr()})
	sub, err := c.Subscribe(testContext(t), "s", From(Offset(5)))
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	expect(t, sub, "a", 5, 0)
	expect(t, sub, "b", 6, 0)
	expect(t, sub, "c", 9, 2)
	expect(t, sub, "d", 13, 0)
	expect(t, sub, "e", 20, 4)
	expect(t, sub, "f", 21, 0)
	expect(t, sub, "g", 22, 0)
	if st := sub.Stats(); st.Lost != 6 || st.Duplicates != 3 {
		t.Errorf("stats %+v, want 6 lost and 3 duplicates", st)
	}
	if got := sub.Positions()[0]; got != 23 {
		t.Errorf("position %d, want 23", got)
	}
	if at, ok := sub.StartOffset(0); !ok || at != 5 {
		t.Errorf("start offset %d %v", at, ok)
	}
	if at, ok := sub.LiveOffset(0); !ok || at != 8 {
		t.Errorf("live offset %d %v", at, ok)
	}
}

func TestBatchesAreViews(t *testing.T) {
	const frames, records = 200, 16
	p := subscriber(t, func(_ int, s *peerStream, m *wire.Subscribe) {
		e := s.events(durableAt(0, 0))
		for i := range frames {
			var payloads []string
			for r := range records {
				payloads = append(payloads, fmt.Sprintf("%06d", i*records+r))
			}
			e.batch(uint64(i*records), 0, payloads...)
		}
	})
	c := dial(t, []string{p.addr()})
	for _, opts := range [][]SubscribeOption{nil, {Buffer(4, Block)}} {
		sub, err := c.Subscribe(testContext(t), "s", opts...)
		if err != nil {
			t.Fatal(err)
		}
		// A Next in between gives one record; NextBatch gives the rest.
		expect(t, sub, "000000", 0, 0)
		at := 1
		for at < frames*records {
			b, err := sub.NextBatch(testContext(t))
			if err != nil {
				t.Fatal(err)
			}
			if b.BaseOffset != uint64(at) || b.Len() == 0 {
				t.Fatalf("batch at %d with %d records, want %d", b.BaseOffset, b.Len(), at)
			}
			if b.PayloadBytes() != 6*b.Len() {
				t.Errorf("payload bytes %d of %d records", b.PayloadBytes(), b.Len())
			}
			for ev := range b.Events() {
				if want := fmt.Sprintf("%06d", at); string(ev.Payload) != want || ev.Offset != uint64(at) {
					t.Fatalf("event %q at %d, want %q", ev.Payload, ev.Offset, want)
				}
				at++
			}
		}
		if st := sub.Stats(); st.Records != frames*records {
			t.Errorf("stats %+v", st)
		}
		sub.Close()
	}
}

func TestKeptPayloadsLast(t *testing.T) {
	p := subscriber(t, func(_ int, s *peerStream, m *wire.Subscribe) {
		e := s.events(durableAt(0, 0))
		for i := range 100 {
			e.batch(uint64(2*i), 0, fmt.Sprintf("a%03d", i), fmt.Sprintf("b%03d", i))
		}
		e.CloseWrite()
	})
	c := dial(t, []string{p.addr()})
	sub, err := c.Subscribe(testContext(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	var kept [][]byte
	for ev, err := range sub.Events(testContext(t)) {
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, ev.Payload)
	}
	for i, payload := range kept {
		if want := fmt.Sprintf("%c%03d", 'a'+i%2, i/2); string(payload) != want {
			t.Fatalf("payload %d became %q, want %q", i, payload, want)
		}
	}
	_ = append(kept[0], "overrun"...)
	if string(kept[1]) != "b000" {
		t.Error("payloads share room to grow")
	}
}

func TestContextEndsAReadNotTheSubscription(t *testing.T) {
	more := make(chan struct{})
	p := subscriber(t, func(n int, s *peerStream, m *wire.Subscribe) {
		e := s.events(durableAt(0, 0))
		frame := (&wire.EventBatch{Shared: true, HasOffsets: true, Block: block("whole")}).Append(nil)
		e.Write(frame[:20]) // a reader is interrupted inside a frame
		<-more
		e.Write(frame[20:])
	})
	for _, opts := range [][]SubscribeOption{nil, {Buffer(2, Block)}} {
		c := dial(t, []string{p.addr()})
		sub, err := c.Subscribe(testContext(t), "s", opts...)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
			if _, err := sub.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("next: %v", err)
			}
			cancel()
		}
		more <- struct{}{}
		expect(t, sub, "whole", 0, 0)
		sub.Close()
	}
}

func TestCloseUnblocksAReader(t *testing.T) {
	p := subscriber(t, func(n int, s *peerStream, m *wire.Subscribe) { s.events(durableAt(0, 0)) })
	c := dial(t, []string{p.addr()})
	for _, opts := range [][]SubscribeOption{nil, {Buffer(2, Block)}, {AllShards()}} {
		sub, err := c.Subscribe(testContext(t), "s", opts...)
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error, 1)
		go func() {
			var last error
			for _, err := range sub.Events(context.Background()) {
				last = err
			}
			done <- last
		}()
		time.Sleep(10 * time.Millisecond) // in or before its read: Close must end both
		sub.Close()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the loop ended with %v", err)
			}
		case <-time.After(patience):
			t.Fatal("the reader survived Close")
		}
		if _, err := sub.Next(testContext(t)); !errors.Is(err, ErrClosed) {
			t.Errorf("next after close: %v", err)
		}
	}
}

func TestCursorErrors(t *testing.T) {
	p := subscriber(t, func(n int, s *peerStream, m *wire.Subscribe) {
		answer := &wire.SubscribeCursorError{Reason: wire.CursorTooOld, Requested: 3, Available: 40}
		if n == 2 {
			answer = &wire.SubscribeCursorError{Reason: wire.CursorInFuture, Requested: 99, Available: 50}
		}
		s.send(answer)
		s.CloseWrite()
	})
	c := dial(t, []string{p.addr()})
	var cursor *CursorError
	_, err := c.Subscribe(testContext(t), "s", From(Offset(3)))
	if !errors.As(err, &cursor) || !cursor.TooOld() || cursor.Requested != 3 || cursor.Available != 40 || !strings.Contains(err.Error(), "40") {
		t.Errorf("too old: %v", err)
	}
	_, err = c.Subscribe(testContext(t), "s", From(Offset(99)))
	if !errors.As(err, &cursor) || cursor.TooOld() || cursor.Available != 50 {
		t.Errorf("in future: %v", err)
	}
}

func TestSubscribeNeedsWhatItAsksFor(t *testing.T) {
	cases := []struct {
		name   string
		answer func(*wire.Auth) wire.Message
		opt    SubscribeOption
		want   string
	}{
		{"start on a broker without offsets", legacy, From(Earliest()), "EVENT_BATCH_OFFSETS"},
		{"shard on a broker without shards", offering(wire.KnownFlags, 0), Shard(1), "STREAM_SHARDS"},
		{"queue", offering(wire.KnownFlags, 0), QueueCapacity(3), "SUBSCRIBE_QUEUE"},
	}
	for _, tc := range cases {
		p := subscriber(t, func(n int, s *peerStream, m *wire.Subscribe) { t.Errorf("%s: sent %+v", tc.name, m) })
		p.setAnswer(tc.answer)
		c := dial(t, []string{p.addr()})
		_, err := c.Subscribe(testContext(t), "s", tc.opt)
		var u *UnsupportedError
		if !errors.Is(err, ErrUnsupported) || !errors.As(err, &u) || u.Feature != tc.want {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
	// From the tail of shard 0 a legacy broker serves.
	p := subscriber(t, func(n int, s *peerStream, m *wire.Subscribe) {
		if m.Start.Set || m.Shard.Set {
			t.Errorf("legacy broker was asked %+v", m)
		}
		e := s.events(wire.Subscribed{})
		b := wire.EventBatch{SubscriptionID: e.id, Block: block("old")}
		e.Write(b.Append(nil))
	})
	p.setAnswer(legacy)
	sub, err := dial(t, []string{p.addr()}).Subscribe(testContext(t), "s", AllShards())
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if ev := next(t, sub); string(ev.Payload) != "old" || ev.HasOffset {
		t.Errorf("event %+v", ev)
	}
}

func TestBrokenEventStreams(t *testing.T) {
	cases := []struct {
		name string
		do   func(e *peerEvents)
		want string
	}{
		{"foreign id", func(e *peerEvents) {
			b := wire.EventBatch{SubscriptionID: e.id + 1, Block: block("x")}
			e.Write(b.Append(nil))
		}, "event batch of subscription"},
		{"unknown flags", func(e *peerEvents) { e.Write(wire.AppendHeader(nil, 0x8004, 0)) }, "flags"},
		{"ack", func(e *peerEvents) { e.Write((&wire.Ack{}).Append(nil)) }, "flags"},
		{"malformed batch", func(e *peerEvents) {
			e.Write(append(wire.AppendHeader(nil, wire.FlagEventBatchShared, 4), 0xff, 0xff, 0xff, 0xff))
		}, "malformed"},
		{"message of another kind", func(e *peerEvents) { e.send(&wire.OK{}) }, "unexpected ok"},
		{"not a frame", func(e *peerEvents) { e.Write([]byte("garbage garbage")) }, "magic"},
		{"offsets past the largest", func(e *peerEvents) { e.batch(^uint64(0), 0, "x") }, "offsets"},
	}
	for _, tc := range cases {
		p := subscriber(t, func(n int, s *peerStream, m *wire.Subscribe) {
			if n > 1 {
				t.Errorf("%s: subscribed again", tc.name)
			}
			e := s.events(durableAt(0, 0))
			e.batch(0, 0, "fine")
			tc.do(e)
		})
		c := dial(t, []string{p.addr()})
		sub, err := c.Subscribe(testContext(t), "s")
		if err != nil {
			t.Fatal(err)
		}
		expect(t, sub, "fine", 0, 0)
		_, err = sub.Next(testContext(t))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.want)
		}
		if _, again := sub.Next(testContext(t)); !errors.Is(again, err) {
			t.Errorf("%s: the error did not stay: %v", tc.name, again)
		}
		sub.Close()
	}
}
