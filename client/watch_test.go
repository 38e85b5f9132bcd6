package client

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/wire"
)

func TestWatchRequests(t *testing.T) {
	cases := []struct {
		shards uint32
		opts   []WatchOption
		want   wire.CacheWatch
	}{
		{1, nil, wire.CacheWatch{Prefix: wire.Some([]byte(""))}},
		{1, []WatchOption{WatchPrefix("a/"), Retained()}, wire.CacheWatch{Prefix: wire.Some([]byte("a/")), Retained: true}},
		{4, []WatchOption{WatchKey("k"), WatchFrom(9)}, wire.CacheWatch{Key: wire.Some([]byte("k")), FromOffset: wire.Some[uint64](9)}},
	}
	for _, tc := range cases {
		seen := make(chan *wire.CacheWatch, 1)
		c := dial(t, []string{watching(t, tc.shards, func(_ int, s *peerStream, m *wire.CacheWatch) {
			seen <- m
			s.changes(wire.CacheWatchStarted{RetainedCount: wire.Some[uint64](0)})
		}).addr()})
		w, err := c.Cache("c").Watch(testContext(t), tc.opts...)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		tc.want.Tenant, tc.want.Namespace, tc.want.Cache = "t1", "default", "c"
		if got := <-seen; fmt.Sprint(*got) != fmt.Sprint(tc.want) {
			t.Errorf("request %+v, want %+v", *got, tc.want)
		}
	}
}

func TestWatchKindsOfChanges(t *testing.T) {
	deadline := time.UnixMilli(1_700_000_000_123)
	c := dial(t, []string{watching(t, 1, func(_ int, s *peerStream, m *wire.CacheWatch) {
		e := s.changes(wire.CacheWatchStarted{ResumeOffset: 10})
		e.send(&wire.CacheEvent{Key: []byte("a"), Value: wire.Some([]byte{}), Offset: 10, ExpiresAtMillis: uint64(deadline.UnixMilli())})
		e.send(&wire.CacheEvent{Key: []byte("a"), Offset: 13})
		e.send(&wire.CacheEvent{Key: []byte("b"), Offset: 20, Expired: true})
	}).addr()})
	w := watch(t, c)
	if got := w.Positions()[0]; got != 10 {
		t.Errorf("position %d before the first change", got)
	}
	first, err := w.Next(testContext(t))
	if err != nil {
		t.Fatal(err)
	}
	if first.Kind != Put || first.Value == nil || len(first.Value) != 0 || !first.ExpiresAt.Equal(deadline) || first.Retained {
		t.Errorf("first change %+v", first)
	}
	expectChanges(t, w, "a-deleted@13", "b-expired@20")
	if got := w.Positions()[0]; got != 21 {
		t.Errorf("position %d behind the change at 20", got)
	}
}

func TestWatchRetained(t *testing.T) {
	c := dial(t, []string{watching(t, 1, func(_ int, s *peerStream, m *wire.CacheWatch) {
		e := s.changes(wire.CacheWatchStarted{ResumeOffset: 10, RetainedCount: wire.Some[uint64](2)})
		e.put(7, "b", "1") // in no order that a client may rely on
		e.put(3, "a", "2")
		e.put(10, "a", "3")
	}).addr()})
	w := watch(t, c, Retained())
	expectChanges(t, w, "b=1@7*")
	if got := w.Positions()[0]; got != 0 {
		t.Errorf("position %d in the middle of the state", got)
	}
	expectChanges(t, w, "a=2@3*")
	if got := w.Positions()[0]; got != 10 {
		t.Errorf("position %d behind the state", got)
	}
	expectChanges(t, w, "synced", "a=3@10")
}

func TestWatchOfAnEmptyCacheIsSyncedAtOnce(t *testing.T) {
	c := dial(t, []string{watching(t, 3, func(_ int, s *peerStream, m *wire.CacheWatch) {
		if !m.Shard.Set {
			t.Error("no shard named")
		}
		s.changes(wire.CacheWatchStarted{ResumeOffset: 4, RetainedCount: wire.Some[uint64](0)})
	}).addr()})
	w := watch(t, c, Retained())
	expectChanges(t, w, "synced")
	if got := fmt.Sprint(w.Positions()); got != "map[0:4 1:4 2:4]" {
		t.Errorf("positions %s", got)
	}
	if w.Shards() != 3 {
		t.Errorf("%d shards", w.Shards())
	}
}

// TestWatchResumes: over a lost connection, a reset stream, an announced lag
// and a move, each change comes once.
func TestWatchResumes(t *testing.T) {
	ends := map[string]struct {
		end  func(s *peerStream, e *peerEvents)
		from uint64
	}{
		"connection": {func(s *peerStream, e *peerEvents) { s.conn.Close(7, "cut") }, 6},
		"reset":      {func(s *peerStream, e *peerEvents) { e.CancelWrite(1) }, 6},
		"lagged": {func(s *peerStream, e *peerEvents) {
			e.send(&wire.CacheWatchLagged{ResumeFrom: 8})
			e.CloseWrite()
		}, 8},
		"moved": {func(s *peerStream, e *peerEvents) {
			e.send(&wire.ShardMoved{SubscriptionID: e.id, ResumeFrom: wire.Some[uint64](2)})
			e.CloseWrite()
		}, 6},
		"draining": {func(s *peerStream, e *peerEvents) {
			e.send(&wire.Error{Message: "bye", ErrorInfo: wire.ErrorInfo{Code: wire.Some("draining"), Retry: wire.Some("retry")}})
			e.CloseWrite()
		}, 6},
	}
	for name, tc := range ends {
		t.Run(name, func(t *testing.T) {
			delivered := make(chan struct{})
			c := dial(t, []string{watching(t, 1, func(n int, s *peerStream, m *wire.CacheWatch) {
				if n == 1 {
					e := s.changes(wire.CacheWatchStarted{ResumeOffset: 5})
					e.put(5, "a", "1")
					<-delivered
					tc.end(s, e)
					return
				}
				if got, ok := m.FromOffset.Get(); !ok || got != tc.from || m.Retained {
					t.Errorf("resumed with %+v, want from %d", *m, tc.from)
				}
				e := s.changes(wire.CacheWatchStarted{ResumeOffset: 9})
				e.put(5, "a", "1") // seen
				e.put(9, "a", "2")
			}).addr()})
			w := watch(t, c)
			expectChanges(t, w, "a=1@5")
			close(delivered)
			expectChanges(t, w, "a=2@9")
			st := w.Stats()
			if st.Duplicates != 1 || st.Changes != 2 || st.Reconnects+st.Lagged+st.Moves != 1 {
				t.Errorf("stats %+v", st)
			}
		})
	}
}

// TestWatchWaitsForItsShard: a broker that starts again may take longer to
// serve the shard than one call is tried for.
func TestWatchWaitsForItsShard(t *testing.T) {
	confirmed := make(chan struct{})
	c := dial(t, []string{watching(t, 1, func(n int, s *peerStream, m *wire.CacheWatch) {
		switch {
		case n == 1:
			s.changes(wire.CacheWatchStarted{ResumeOffset: 5})
			<-confirmed
			s.conn.Close(7, "cut")
		case n < 30:
			s.send(notReady())
			s.CloseWrite()
		default:
			s.changes(wire.CacheWatchStarted{ResumeOffset: 6}).put(5, "a", "1")
		}
	}).addr()})
	w := watch(t, c)
	close(confirmed)
	expectChanges(t, w, "a=1@5")
}

// TestWatchResnapshot: what was compacted away is not passed over in silence.
func TestWatchResnapshot(t *testing.T) {
	c := dial(t, []string{watching(t, 1, func(n int, s *peerStream, m *wire.CacheWatch) {
		e := s.changes(wire.CacheWatchStarted{ResumeOffset: 50, Resnapshot: true})
		e.put(40, "b", "1")
		e.put(12, "a", "2")
		e.put(50, "c", "3")
	}).addr()})
	w := watch(t, c, WatchResumeAt(map[uint32]uint64{0: 7}))
	expectChanges(t, w, "reset", "b=1@40*", "a=2@12*")
	if got := w.Positions()[0]; got != 0 {
		t.Errorf("position %d in the middle of a state whose end is not known", got)
	}
	expectChanges(t, w, "c=3@50")
	if got := w.Positions()[0]; got != 51 {
		t.Errorf("position %d behind it", got)
	}
	if w.Stats().Resets != 1 {
		t.Errorf("stats %+v", w.Stats())
	}
}

// TestWatchBeginsTheStateAnew: a state that was interrupted is not pieced
// together.
func TestWatchBeginsTheStateAnew(t *testing.T) {
	for _, first := range []struct {
		opts    []WatchOption
		started wire.CacheWatchStarted
		want    []string
	}{
		{[]WatchOption{Retained()}, wire.CacheWatchStarted{ResumeOffset: 10, RetainedCount: wire.Some[uint64](2)}, []string{"a=1@3*"}},
		{[]WatchOption{WatchResumeAt(map[uint32]uint64{0: 1})}, wire.CacheWatchStarted{ResumeOffset: 10, Resnapshot: true}, []string{"reset", "a=1@3*"}},
	} {
		delivered := make(chan struct{})
		c := dial(t, []string{watching(t, 1, func(n int, s *peerStream, m *wire.CacheWatch) {
			if n == 1 {
				e := s.changes(first.started)
				e.put(3, "a", "1")
				<-delivered
				s.conn.Close(7, "cut")
				return
			}
			if m.FromOffset.Set || !m.Retained {
				t.Errorf("resumed with %+v", *m)
			}
			e := s.changes(wire.CacheWatchStarted{ResumeOffset: 12, RetainedCount: wire.Some[uint64](1)})
			e.put(8, "b", "1")
			e.put(12, "c", "1")
		}).addr()})
		w := watch(t, c, first.opts...)
		expectChanges(t, w, first.want...)
		close(delivered)
		expectChanges(t, w, "reset", "b=1@8*")
		if w.readers[0].o.retained {
			expectChanges(t, w, "synced")
		}
		expectChanges(t, w, "c=1@12")
	}
}

func TestWatchOfSeveralShards(t *testing.T) {
	const shards, each = 4, 50
	c := dial(t, []string{watching(t, shards, func(_ int, s *peerStream, m *wire.CacheWatch) {
		e := s.changes(wire.CacheWatchStarted{ResumeOffset: 100})
		for i := range uint64(each) {
			e.put(100+i, fmt.Sprint("k", m.Shard.Value), fmt.Sprint(i))
		}
	}).addr()})
	w := watch(t, c)
	at := map[uint32]uint64{}
	for range shards * each {
		change, err := w.Next(testContext(t))
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprint("k", change.Shard); change.Key != want || change.Offset != 100+at[change.Shard] {
			t.Errorf("change %+v", change)
		}
		at[change.Shard]++
	}
	for shard, position := range w.Positions() {
		if position != 100+each {
			t.Errorf("shard %d at %d", shard, position)
		}
	}
}

func TestWatchEnds(t *testing.T) {
	cases := map[string]struct {
		end func(s *peerStream, e *peerEvents)
		is  func(error) bool
	}{
		"fin": {func(s *peerStream, e *peerEvents) { e.CloseWrite() }, func(err error) bool { return errors.Is(err, ErrEnded) }},
		"refused": {func(s *peerStream, e *peerEvents) {
			e.send(&wire.Error{Message: "no", ErrorInfo: wire.ErrorInfo{Code: wire.Some("forbidden"), Retry: wire.Some("fatal")}})
			e.CloseWrite()
		}, func(err error) bool { return errors.Is(err, ErrForbidden) }},
		"nonsense": {func(s *peerStream, e *peerEvents) { e.batch(0, 0, "x") }, func(err error) bool { return errors.As(err, new(*brokenStream)) }},
		"in future": {func(s *peerStream, e *peerEvents) { s.conn.Close(7, "cut") }, func(err error) bool {
			var lost *SubscriptionLostError
			var cursor *CursorError
			return errors.As(err, &lost) && lost.Next == 6 && errors.As(err, &cursor) && cursor.Available == 3
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			delivered := make(chan struct{})
			c := dial(t, []string{watching(t, 1, func(n int, s *peerStream, m *wire.CacheWatch) {
				if n > 1 { // the log is shorter than it was
					s.send(&wire.SubscribeCursorError{Reason: wire.CursorInFuture, Requested: m.FromOffset.Value, Available: 3})
					s.CloseWrite()
					return
				}
				e := s.changes(wire.CacheWatchStarted{ResumeOffset: 5})
				e.put(5, "a", "1")
				<-delivered
				tc.end(s, e)
			}).addr()})
			w := watch(t, c)
			expectChanges(t, w, "a=1@5")
			close(delivered)
			for range 2 {
				if _, err := w.Next(testContext(t)); !tc.is(err) {
					t.Errorf("ended with %v", err)
				}
			}
		})
	}
}

func TestWatchCloseUnblocksNext(t *testing.T) {
	c := dial(t, []string{watching(t, 2, func(_ int, s *peerStream, m *wire.CacheWatch) {
		s.changes(wire.CacheWatchStarted{})
	}).addr()})
	w := watch(t, c)
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := w.Next(testContext(t)); !errors.Is(err, ErrClosed) {
			t.Errorf("next: %v", err)
		}
	})
	w.Close()
	wg.Wait()
	for range w.Changes(testContext(t)) {
		t.Error("a closed watch yields")
	}
}

func TestWatchRefusals(t *testing.T) {
	c := dial(t, []string{watching(t, 2, func(_ int, s *peerStream, m *wire.CacheWatch) {
		s.send(&wire.Error{Message: "no", ErrorInfo: wire.ErrorInfo{Code: wire.Some("forbidden"), Retry: wire.Some("fatal")}})
		s.CloseWrite()
	}).addr()})
	ctx := testContext(t)
	cache := c.Cache("c")
	if _, err := cache.Watch(ctx); !errors.Is(err, ErrForbidden) {
		t.Errorf("refused: %v", err)
	}
	if _, err := cache.Watch(ctx, WatchKey("")); !errors.As(err, new(*NameError)) {
		t.Errorf("empty key: %v", err)
	}
	if _, err := cache.Watch(ctx, Retained(), WatchResumeAt(map[uint32]uint64{0: 1})); err == nil {
		t.Error("retained from an offset was accepted")
	}
	if _, err := cache.Watch(ctx, WatchFrom(1)); !errors.Is(err, ErrInvalidRequest) {
		t.Errorf("one offset for two shards: %v", err)
	}
	if _, err := cache.Watch(ctx, WatchResumeAt(map[uint32]uint64{2: 1})); !errors.Is(err, ErrInvalidRequest) {
		t.Errorf("no such shard: %v", err)
	}
	p := newPeer(t, func(s *peerStream) { s.next() })
	p.setAnswer(offering(wire.KnownFlags, 0))
	if _, err := dial(t, []string{p.addr()}).Cache("c").Watch(ctx); !errors.Is(err, ErrUnsupported) {
		t.Errorf("without the feature: %v", err)
	}
}
