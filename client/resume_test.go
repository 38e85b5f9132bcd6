package client

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/wire"
)

// wantStart checks where a subscribe starts.
func wantStart(t *testing.T, n int, m *wire.Subscribe, want wire.Start) {
	t.Helper()
	if m.Start.Value != want {
		t.Errorf("subscribe %d starts at %+v, want %+v", n, m.Start.Value, want)
	}
}

func TestSubscriptionResumesAtTheNextOffset(t *testing.T) {
	ends := map[string]func(s *peerStream, e *peerEvents){
		"connection lost": func(s *peerStream, e *peerEvents) { s.conn.Close(7, "cut") },
		"reset":           func(s *peerStream, e *peerEvents) { e.CancelWrite(1) },
		"half a frame": func(s *peerStream, e *peerEvents) {
			e.Write((&wire.EventBatch{Shared: true, HasOffsets: true, BaseOffset: 12, Block: block("half")}).Append(nil)[:25])
			e.CloseWrite()
		},
		"lagged": func(s *peerStream, e *peerEvents) {
			e.send(&wire.SubscriptionLagged{SubscriptionID: e.id, ResumeFrom: 12})
			e.CloseWrite()
		},
		"retryable error": func(s *peerStream, e *peerEvents) {
			e.send(s.auth.Offer().Error(wire.Failure{Code: wire.CodeShardUnavailable, Message: "moving"}))
			e.CloseWrite()
		},
	}
	for name, end := range ends {
		for _, opts := range [][]SubscribeOption{nil, {Buffer(8, Block)}} {
			t.Run(fmt.Sprintf("%s/buffered %v", name, opts != nil), func(t *testing.T) {
				read := make(chan struct{})
				p := subscriber(t, func(n int, s *peerStream, m *wire.Subscribe) {
					if n == 1 {
						wantStart(t, n, m, wire.StartAt(10))
						e := s.events(durableAt(10, 10))
						e.batch(10, 0, "a", "b")
						<-read // what is under way when a connection is cut may be lost with it
						end(s, e)
						return
					}
					wantStart(t, n, m, wire.StartAt(12))
					e := s.events(durableAt(12, 20))
					e.batch(11, 0, "b", "c") // a broker may repeat
					e.batch(13, 0, "d")
				})
				c := dial(t, []string{p.addr()})
				sub, err := c.Subscribe(testContext(t), "s", append(opts, From(Offset(10)))...)
				if err != nil {
					t.Fatal(err)
				}
				defer sub.Close()
				expect(t, sub, "a", 10, 0)
				expect(t, sub, "b", 11, 0)
				close(read)
				expect(t, sub, "c", 12, 0)
				expect(t, sub, "d", 13, 0)
				st := sub.Stats()
				if st.Duplicates != 1 || st.Reconnects+st.Lagged != 1 {
					t.Errorf("stats %+v", st)
				}
			})
		}
	}
}

// TestResumeWithNothingReceived: where a subscription begins again that was
// lost before its first event.
func TestResumeWithNothingReceived(t *testing.T) {
	cases := []struct {
		name   string
		start  Start
		answer wire.Subscribed
		want   wire.Start
		lost   bool
	}{
		{"from an offset", Offset(4), wire.Subscribed{}, wire.StartAt(4), false},
		{"from the earliest, no log", Earliest(), wire.Subscribed{}, wire.Start{Kind: wire.StartEarliest}, false},
		{"from the earliest of a log", Earliest(), durableAt(30, 40), wire.StartAt(30), false},
		{"from the tail of a log", Latest(), durableAt(50, 50), wire.StartAt(50), false},
		{"from a tail nobody named", Latest(), wire.Subscribed{}, wire.Start{}, true},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			subscribed := make(chan struct{})
			p := subscriber(t, func(n int, s *peerStream, m *wire.Subscribe) {
				if n == 1 {
					e := s.events(tc.answer)
					<-subscribed
					e.CancelWrite(1)
					return
				}
				wantStart(t, n, m, tc.want)
				s.events(tc.answer).batch(60, 0, "x")
			})
			c := dial(t, []string{p.addr()})
			sub, err := c.Subscribe(testContext(t), "s", From(tc.start))
			if err != nil {
				t.Fatal(err)
			}
			defer sub.Close()
			close(subscribed)
			_, err = sub.Next(testContext(t))
			var lost *SubscriptionLostError
			if tc.lost != errors.As(err, &lost) || !tc.lost && err != nil {
				t.Errorf("error %v", err)
			}
			if tc.lost && lost.HasNext {
				t.Errorf("lost at a known position: %v", lost)
			}
		})
	}
}

// TestResetBeforeTheHello: the reset overtakes everything. The position that
// "subscribed" named counts all the same.
func TestResetBeforeTheHello(t *testing.T) {
	p := subscriber(t, func(n int, s *peerStream, m *wire.Subscribe) {
		if n < 3 {
			s.events(durableAt(50, 50)).CancelWrite(1)
			return
		}
		wantStart(t, n, m, wire.StartAt(50))
		s.events(durableAt(50, 50)).batch(50, 0, "x")
	})
	c := dial(t, []string{p.addr()})
	sub, err := c.Subscribe(testContext(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	expect(t, sub, "x", 50, 0)
}

func TestContinueAtLatest(t *testing.T) {
	p := subscriber(t, func(n int, s *peerStream, m *wire.Subscribe) {
		wantStart(t, n, m, wire.Start{Kind: wire.StartLatest})
		b := wire.EventBatch{Shared: true, Block: block("x")}
		s.events(wire.Subscribed{}).Write(b.Append(nil))
	})
	c := dial(t, []string{p.addr()})
	sub, err := c.Subscribe(testContext(t), "s", ContinueAtLatest())
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	for range 3 {
		if ev := next(t, sub); string(ev.Payload) != "x" {
			t.Errorf("event %q", ev.Payload)
		}
		p.cut()
	}
	next(t, sub)
	if st := sub.Stats(); st.Losses != 3 || st.Reconnects != 3 {
		t.Errorf("stats %+v", st)
	}
}

func TestResumeThatIsNoLongerPossible(t *testing.T) {
	for _, lagged := range []bool{true, false} {
		p := subscriber(t, func(n int, s *peerStream, m *wire.Subscribe) {
			if n > 1 {
				s.send(&wire.SubscribeCursorError{Reason: wire.CursorTooOld, Requested: m.Start.Value.Offset, Available: 90})
				s.CloseWrite()
				return
			}
			e := s.events(durableAt(10, 10))
			e.batch(10, 0, "a")
			if lagged {
				e.send(&wire.SubscriptionLagged{SubscriptionID: e.id, ResumeFrom: 11})
				e.CloseWrite()
			} else {
				time.Sleep(20 * time.Millisecond) // lets "a" arrive: a reset may overtake it
				e.CancelWrite(1)
			}
		})
		c := dial(t, []string{p.addr()})
		sub, err := c.Subscribe(testContext(t), "s", From(Offset(10)))
		if err != nil {
			t.Fatal(err)
		}
		expect(t, sub, "a", 10, 0)
		_, err = sub.Next(testContext(t))
		var (
			cursor *CursorError
			lag    *LaggedError
			lost   *SubscriptionLostError
		)
		if !errors.As(err, &cursor) || cursor.Available != 90 || cursor.Requested != 11 {
			t.Errorf("lagged %v: no cursor error in %v", lagged, err)
		}
		if lagged && (!errors.As(err, &lag) || lag.ResumeFrom != 11) {
			t.Errorf("no lagged error: %v", err)
		}
		if !lagged && (!errors.As(err, &lost) || !lost.HasNext || lost.Next != 11) {
			t.Errorf("no lost error: %v", err)
		}
		sub.Close()
	}
}

func TestMovedShardIsFollowed(t *testing.T) {
	cases := []struct {
		name   string
		start  wire.Subscribed
		base   uint64
		resume wire.Optional[uint64]
		want   wire.Start
	}{
		{"log, behind what was read", durableAt(10, 10), 10, wire.Some[uint64](8), wire.StartAt(11)},
		{"log, past what was read", durableAt(10, 10), 10, wire.Some[uint64](15), wire.StartAt(15)},
		{"log, not said", durableAt(10, 10), 10, wire.Optional[uint64]{}, wire.StartAt(11)},
		{"no log", wire.Subscribed{}, 10, wire.Optional[uint64]{}, wire.Start{Kind: wire.StartLatest}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			var tries atomic.Int64
			second := subscriber(t, func(n int, s *peerStream, m *wire.Subscribe) {
				if tries.Add(1) < 8 { // the notice came early
					s.send(s.auth.Offer().Error(wire.Failure{Code: wire.CodeShardUnavailable, Message: "not ready", Detail: wire.Detail{Reason: "not_ready"}}))
					s.CloseWrite()
					return
				}
				wantStart(t, n, m, tc.want)
				s.events(tc.start).batch(15, 0, "b")
			})
			first := subscriber(t, func(n int, s *peerStream, m *wire.Subscribe) {
				e := s.events(tc.start)
				e.batch(tc.base, 0, "a")
				e.send(&wire.ShardMoved{SubscriptionID: e.id, ResumeFrom: tc.resume, NodeID: wire.Some("n2"), Addr: wire.Some(second.addr()), Generation: 3})
				e.CloseWrite()
			})
			c := dial(t, []string{first.addr()})
			sub, err := c.Subscribe(testContext(t), "s")
			if err != nil {
				t.Fatal(err)
			}
			defer sub.Close()
			next(t, sub)
			if ev := next(t, sub); string(ev.Payload) != "b" {
				t.Errorf("event %+v", ev)
			}
			if st := sub.Stats(); st.Moves != 1 {
				t.Errorf("stats %+v", st)
			}
		})
	}
}

func TestSubscriptionOutlivesTheToken(t *testing.T) {
	tk := newTokens()
	p := subscriber(t, func(n int, s *peerStream, m *wire.Subscribe) {
		e := s.events(durableAt(uint64(n), uint64(n)))
		wantStart(t, n, m, wire.StartAt(uint64(n)))
		if want := fmt.Sprintf("token-%d", n); s.auth.Token != want {
			t.Errorf("subscribe %d with %s", n, s.auth.Token)
		}
		tk.renew()
		e.batch(uint64(n), 0, "x")
		e.send(s.auth.Offer().Error(expired))
		e.CloseWrite()
	})
	c := dial(t, []string{p.addr()}, WithTokenProvider(tk.provider))
	sub, err := c.Subscribe(testContext(t), "s", From(Offset(1)))
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	for n := range uint64(12) {
		expect(t, sub, "x", n+1, 0)
	}
	if st := sub.Stats(); st.Reauths != 11 {
		t.Errorf("stats %+v", st)
	}
}

func TestExpiredSubscriptionWithoutAProviderIsTyped(t *testing.T) {
	p := subscriber(t, func(n int, s *peerStream, m *wire.Subscribe) {
		e := s.events(durableAt(0, 0))
		e.batch(0, 0, "x")
		e.send(s.auth.Offer().Error(expired))
		e.CloseWrite()
	})
	c := dial(t, []string{p.addr()})
	for _, opts := range [][]SubscribeOption{nil, {Buffer(3, Block)}} {
		sub, err := c.Subscribe(testContext(t), "s", opts...)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, sub, "x", 0, 0)
		if _, err := sub.Next(testContext(t)); !errors.Is(err, ErrUnauthenticated) {
			t.Errorf("error %v, want unauthenticated", err)
		}
		sub.Close()
	}
}

// TestFruitlessResumesEnd: a broker that takes subscriptions and drops them
// is not asked for ever.
func TestFruitlessResumesEnd(t *testing.T) {
	var asked atomic.Int64
	subscribed := make(chan struct{})
	p := subscriber(t, func(n int, s *peerStream, m *wire.Subscribe) {
		asked.Add(1)
		e := s.events(durableAt(0, 0))
		<-subscribed
		e.CancelWrite(1)
	})
	c := dial(t, []string{p.addr()})
	sub, err := c.Subscribe(testContext(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	close(subscribed)
	_, err = sub.Next(testContext(t))
	var lost *SubscriptionLostError
	if !errors.As(err, &lost) || lost.Next != 0 || !lost.HasNext {
		t.Errorf("error %v", err)
	}
	if n := asked.Load(); n < 3 || n > 10 {
		t.Errorf("subscribed %d times", n)
	}
}

// TestASubscriptionWaitsForItsShard: a broker that starts again may take
// longer to serve the shard than one call is tried for; a first subscribe is
// told soon.
func TestASubscriptionWaitsForItsShard(t *testing.T) {
	confirmed := make(chan struct{})
	p := subscriber(t, func(n int, s *peerStream, m *wire.Subscribe) {
		switch {
		case n == 1:
			s.events(durableAt(3, 3))
			<-confirmed
			s.conn.Close(7, "cut")
		case n < 30:
			s.send(notReady())
			s.CloseWrite()
		default:
			s.events(durableAt(3, 3)).batch(3, 0, "x")
		}
	})
	c := dial(t, []string{p.addr()})
	sub, err := c.Subscribe(testContext(t), "s")
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	close(confirmed)
	expect(t, sub, "x", 3, 0)

	var asked atomic.Int64
	never := subscriber(t, func(n int, s *peerStream, m *wire.Subscribe) {
		asked.Add(1)
		s.send(notReady())
		s.CloseWrite()
	})
	if _, err := dial(t, []string{never.addr()}).Subscribe(testContext(t), "s"); !errors.Is(err, ErrShardUnavailable) {
		t.Errorf("first subscribe: %v", err)
	}
	if n := asked.Load(); n != 5 {
		t.Errorf("a first subscribe was tried %d times", n)
	}
}

func TestAllShardsAreMerged(t *testing.T) {
	const records = 300
	p := subscriber(t, func(n int, s *peerStream, m *wire.Subscribe) {
		shard := uint64(m.Shard.Or(0))
		start := uint64(0)
		// The second subscribe to shard 1, which may come before the first to
		// another.
		resumed := shard == 1 && m.Start.Value.Kind == wire.StartOffset
		switch {
		case resumed:
			start = m.Start.Value.Offset
		case shard == 2:
			wantStart(t, n, m, wire.StartAt(100))
			start = 100
		default:
			wantStart(t, n, m, wire.Start{Kind: wire.StartEarliest})
		}
		e := s.events(durableAt(start, records))
		for i := start; i < records; i++ {
			e.batch(i, 0, fmt.Sprintf("%d/%d", shard, i))
		}
		if shard == 1 && !resumed {
			e.CancelWrite(1)
		}
	})
	c := dial(t, []string{p.addr()})
	sub, err := c.Subscribe(testContext(t), "s", From(Earliest()), ResumeAt(map[uint32]uint64{2: 100}))
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	if sub.Shards() != 3 {
		t.Errorf("%d shards", sub.Shards())
	}
	at := map[uint32]uint64{2: 100}
	for range 3*records - 100 {
		ev := next(t, sub)
		if want := fmt.Sprintf("%d/%d", ev.Shard, at[ev.Shard]); string(ev.Payload) != want || ev.Gap != 0 {
			t.Fatalf("event %q gap %d, want %q", ev.Payload, ev.Gap, want)
		}
		at[ev.Shard]++
	}
	for shard, got := range sub.Positions() {
		if got != records {
			t.Errorf("shard %d stands at %d", shard, got)
		}
	}
	if _, err := c.Subscribe(testContext(t), "s", ResumeAt(map[uint32]uint64{7: 1})); !errors.Is(err, ErrInvalidRequest) {
		t.Errorf("a shard that is not there: %v", err)
	}
}

func TestALostShardIsSurfaced(t *testing.T) {
	p := subscriber(t, func(n int, s *peerStream, m *wire.Subscribe) {
		shard := m.Shard.Or(0)
		e := s.events(durableAt(0, 0))
		e.batch(0, 0, "first")
		if shard == 1 {
			e.Write([]byte("garbage garbage"))
			return
		}
		e.batch(1, 0, "second")
		e.CloseWrite()
	})
	c := dial(t, []string{p.addr()})
	sub, err := c.Subscribe(testContext(t), "s", AllShards())
	if err != nil {
		t.Fatal(err)
	}
	defer sub.Close()
	var records int
	var errs []error
	for _, err := range sub.Events(testContext(t)) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		records++
	}
	if records != 5 || len(errs) != 3 {
		t.Errorf("%d records and %d errors, want 5 and one for each shard: %v", records, len(errs), errs)
	}
	if _, err := sub.Next(context.Background()); !errors.Is(err, ErrEnded) {
		t.Errorf("at the end: %v", err)
	}
}

// A subscription whose stream was deleted is over, and says so, with one shard
// and with several.
func TestADeletedStreamEndsTheSubscription(t *testing.T) {
	for name, options := range map[string][]SubscribeOption{"one shard": nil, "all shards": {AllShards()}} {
		t.Run(name, func(t *testing.T) {
			p := subscriber(t, func(_ int, s *peerStream, m *wire.Subscribe) {
				e := s.events(durableAt(0, 0))
				e.batch(0, 0, "last")
				e.send(&wire.StreamDeleted{SubscriptionID: m.SubscriptionID.Value})
				e.CloseWrite()
			})
			c := dial(t, []string{p.addr()})
			sub, err := c.Subscribe(testContext(t), "s", options...)
			if err != nil {
				t.Fatal(err)
			}
			defer sub.Close()
			var told error
			for _, err := range sub.Events(testContext(t)) {
				if err != nil {
					told = err
				}
			}
			if !errors.Is(told, ErrDeleted) {
				t.Errorf("told %v", told)
			}
			if _, err := sub.Next(testContext(t)); !errors.Is(err, ErrDeleted) {
				t.Errorf("after the end: %v", err)
			}
		})
	}
}
