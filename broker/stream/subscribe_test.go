package stream

import (
	"context"
	"errors"
	"testing"
	"time"
)

// The shard holds offsets 1003..1008 in batches of three, the tail is 1009.
func TestStartPositions(t *testing.T) {
	sh := newShard(t, Config{RingRecords: 6})
	empty := newShard(t, Config{})
	publishAll(t, sh, 3, 3)
	for _, c := range []struct {
		name        string
		sh          *Shard
		start       Start
		first, live uint64
		history     uint64
		err         *CursorError
	}{
		{"latest", sh, Latest(), 1009, 1009, 0, nil},
		{"zero value", sh, Start{}, 1009, 1009, 0, nil},
		{"earliest", sh, Earliest(), 1003, 1009, 6, nil},
		{"oldest", sh, FromOffset(1003), 1003, 1009, 6, nil},
		{"inside a batch", sh, FromOffset(1004), 1004, 1009, 5, nil},
		{"last of a batch", sh, FromOffset(1005), 1005, 1009, 4, nil},
		{"first of a batch", sh, FromOffset(1006), 1006, 1009, 3, nil},
		{"tail", sh, FromOffset(1009), 1009, 1009, 0, nil},
		{"too old", sh, FromOffset(1002), 0, 0, 0, &CursorError{TooOld, 1002, 1003}},
		{"zero", sh, FromOffset(0), 0, 0, 0, &CursorError{TooOld, 0, 1003}},
		{"in future", sh, FromOffset(1010), 0, 0, 0, &CursorError{InFuture, 1010, 1009}},
		{"largest", sh, FromOffset(1<<64 - 1), 0, 0, 0, &CursorError{InFuture, 1<<64 - 1, 1009}},
		{"empty latest", empty, Latest(), base, base, 0, nil},
		{"empty earliest", empty, Earliest(), base, base, 0, nil},
		{"empty tail", empty, FromOffset(base), base, base, 0, nil},
		{"empty below", empty, FromOffset(base - 1), 0, 0, 0, &CursorError{TooOld, base - 1, base}},
		{"empty above", empty, FromOffset(base + 1), 0, 0, 0, &CursorError{InFuture, base + 1, base}},
	} {
		sub, err := c.sh.Subscribe(context.Background(), SubscribeOptions{Start: c.start})
		if c.err != nil {
			var cursor *CursorError
			if !errors.As(err, &cursor) || *cursor != *c.err {
				t.Errorf("%s: %v, want %v", c.name, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if sub.StartOffset() != c.first || sub.LiveOffset() != c.live {
			t.Errorf("%s: starts at %d, live at %d; want %d, %d", c.name, sub.StartOffset(), sub.LiveOffset(), c.first, c.live)
		}
		r := newReader(t, sub)
		r.rest()
		if r.records != c.history || r.missing != 0 {
			t.Errorf("%s: %d records of history, %d missing", c.name, r.records, r.missing)
		}
		sub.Close()
	}
	if n := len(sh.Subscriptions()); n != 0 {
		t.Fatalf("%d subscriptions are left", n)
	}
}

func TestPieceOfABatch(t *testing.T) {
	sh := newShard(t, Config{})
	publish(t, sh, 4, nil)
	sub := subscribe(t, sh, SubscribeOptions{Start: FromOffset(base + 2)})
	defer sub.Close()
	pieces := sub.Backlog()
	if len(pieces) != 1 {
		t.Fatalf("%d pieces", len(pieces))
	}
	p := pieces[0]
	if p.Whole() || p.First != 2 || p.Offset() != base+2 || p.Count() != 2 {
		t.Fatalf("piece from %d, offset %d, %d records", p.First, p.Offset(), p.Count())
	}
	if got := payloadsOf(t, p.Records(), 2); got[0] != "#1002" || got[1] != "#1003" {
		t.Fatalf("records %q", got)
	}
	p.Release()
	if sub.Backlog() != nil {
		t.Fatal("history was handed over twice")
	}
}

func TestOffsetsOfANewShardStartAtTheClock(t *testing.T) {
	clock := &fixedClock{now: time.UnixMicro(5_000_000)}
	h := NewHub(Config{}, clock)
	make := func() *Stream {
		s, err := h.NewStream(Name{"t", "n", "s"}, Options{Shards: 2}, Owner{})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := make()
	sh := first.Shard(1)
	if _, tail := sh.Bounds(); tail != 5_000_000 {
		t.Fatalf("first offset %d", tail)
	}
	publishAll(t, sh, 10, 100)
	first.End(ErrRemoved)

	// Registered again within the same microseconds as were given out.
	clock.set(time.UnixMicro(5_000_400))
	for _, s := range []uint32{0, 1} {
		if _, tail := make().Shard(s).Bounds(); tail != 5_001_000 {
			t.Fatalf("shard %d starts at %d, below offsets already used", s, tail)
		}
	}
	clock.set(time.UnixMicro(6_000_000))
	later := make().Shard(0)
	if _, tail := later.Bounds(); tail != 6_000_000 {
		t.Fatalf("first offset %d", tail)
	}
	var cursor *CursorError
	if _, err := later.Subscribe(context.Background(), SubscribeOptions{Start: FromOffset(5_000_700)}); !errors.As(err, &cursor) || cursor.Reason != TooOld {
		t.Fatalf("a cursor of an earlier life: %v", err)
	}
}

func TestGrantedQueue(t *testing.T) {
	sh := newShard(t, Config{QueueCapacity: 5, QueueCapacityMax: 10, QueuePolicy: Block})
	for _, c := range []struct {
		ask, granted int
	}{{0, 5}, {-1, 5}, {1, 1}, {10, 10}, {11, 10}} {
		sub := subscribe(t, sh, SubscribeOptions{Capacity: c.ask})
		if sub.Capacity() != c.granted || sub.Policy() != Block {
			t.Errorf("asked for %d: granted %d, %v", c.ask, sub.Capacity(), sub.Policy())
		}
		sub.Close()
	}
}

func TestNextEnds(t *testing.T) {
	t.Run("context", func(t *testing.T) {
		sub := subscribe(t, newShard(t, Config{}), SubscribeOptions{})
		defer sub.Close()
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		go cancel(why)
		if _, err := sub.Next(ctx); err != why {
			t.Fatal(err)
		}
	})
	t.Run("close", func(t *testing.T) {
		sh := newShard(t, Config{})
		publish(t, sh, 1, nil)
		sub := subscribe(t, sh, SubscribeOptions{Start: Earliest()})
		publish(t, sh, 1, nil)
		closed := make(chan struct{})
		go func() { defer close(closed); sub.Close() }()
		sub.Close()
		<-closed
		if _, err := sub.Next(t.Context()); err != ErrSubscriptionClosed {
			t.Fatal(err)
		}
		if st := sh.hub.Stats(); st.Subscriptions != 0 || st.Queued() != 0 {
			t.Fatalf("left behind: %+v", st)
		}
	})
	t.Run("removal, after what was queued", func(t *testing.T) {
		sh := newShard(t, Config{})
		publish(t, sh, 2, nil)
		sub := subscribe(t, sh, SubscribeOptions{Start: Earliest()})
		publish(t, sh, 3, nil)
		sh.stream.End(ErrRemoved)
		sh.stream.End(errors.New("a second end does nothing"))
		r := newReader(t, sub)
		r.until(base + 5)
		if _, err := sub.Next(t.Context()); err != ErrRemoved || r.missing != 0 {
			t.Fatal(err, r.missing)
		}
		sub.Close()
		if _, err := sub.Next(t.Context()); err != ErrSubscriptionClosed {
			t.Fatal(err)
		}
		if sh.Active() || sh.stream.Active() || sh.Err() != ErrRemoved {
			t.Fatal("the handle is still active")
		}
		if _, err := sh.Subscribe(context.Background(), SubscribeOptions{}); err != ErrRemoved {
			t.Fatal(err)
		}
		e := sh.hub.NewEnvelope(blockOf("x"), Meta{Count: 1})
		if _, err := sh.Claim(e); err != ErrRemoved {
			t.Fatal(err)
		}
		if out, err := sh.Apply(e, nil); out.Waiting || err != ErrRemoved {
			t.Fatal(out, err)
		}
		if n := sh.hub.Stats().Subscriptions; n != 0 {
			t.Fatalf("%d subscriptions counted", n)
		}
	})
	t.Run("waits for a batch", func(t *testing.T) {
		sh := newShard(t, Config{})
		sub := subscribe(t, sh, SubscribeOptions{})
		defer sub.Close()
		go publish(t, sh, 2, nil)
		newReader(t, sub).until(base + 2)
	})
}

// Wake tells of what Poll has not returned yet, and of nothing else.
func TestWake(t *testing.T) {
	sh := newShard(t, Config{})
	sub := subscribe(t, sh, SubscribeOptions{})
	woken := func() bool {
		select {
		case <-sub.Wake():
			return true
		default:
			return false
		}
	}
	if woken() {
		t.Fatal("woken for nothing")
	}
	publishAll(t, sh, 3, 1)
	r := newReader(t, sub)
	r.rest()
	if woken() || r.batches != 3 {
		t.Fatalf("woken for what was taken, %d batches", r.batches)
	}
	publish(t, sh, 1, nil)
	if !woken() {
		t.Fatal("not woken for a batch")
	}
	r.rest()
	sh.stream.End(ErrRemoved)
	if !woken() {
		t.Fatal("not woken for the end")
	}
	sub.Close()
}

func TestInfo(t *testing.T) {
	sh := newShard(t, Config{})
	clock := sh.hub.clock.(*fixedClock)
	a := subscribe(t, sh, SubscribeOptions{Capacity: 2, Policy: DropOld})
	clock.set(clock.Now().Add(3 * time.Second))
	b := subscribe(t, sh, SubscribeOptions{})
	publishAll(t, sh, 5, 3)
	infos := sh.Subscriptions()
	size := int64(256 + envelopeOverhead)
	want := []SubscriptionInfo{
		{ID: a.ID(), Policy: DropOld, Depth: 2, Capacity: 2, Bytes: 2 * size, DroppedBatches: 3, DroppedRecords: 9, StartOffset: base, Age: 3 * time.Second},
		{ID: b.ID(), Policy: DropNew, Depth: 5, Capacity: 512, Bytes: 5 * size, StartOffset: base},
	}
	if len(infos) != 2 || infos[0] != want[0] || infos[1] != want[1] {
		t.Fatalf("got  %+v\nwant %+v", infos, want)
	}
	a.Close()
	if infos = sh.Subscriptions(); len(infos) != 1 || infos[0].ID != b.ID() {
		t.Fatalf("%+v", infos)
	}
	b.Close()
	st := sh.hub.Stats()
	if st.Batches != 5 || st.Records != 15 || st.DroppedBatches != 3 || st.DroppedRecords != 9 || st.DropOldEmulated != 3 ||
		st.Enqueued != 7 || st.Dequeued != 7 || st.Subscriptions != 0 {
		t.Fatalf("%+v", st)
	}
}

func TestNamesOfPolicies(t *testing.T) {
	for _, p := range []QueuePolicy{DropNew, DropOld, Block} {
		if got, err := ParseQueuePolicy(p.String()); got != p || err != nil {
			t.Errorf("%v reads back as %v, %v", p, got, err)
		}
	}
	for _, word := range []string{"", "default", "drop", "DROP_NEW"} {
		if _, err := ParseQueuePolicy(word); err == nil {
			t.Errorf("%q is accepted", word)
		}
	}
}
