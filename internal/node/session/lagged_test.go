package session_test

import (
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/felixlog/felix/felixtest"
	"github.com/felixlog/felix/transport/quic"
	"github.com/felixlog/felix/wire"
)

// A subscriber of a durable stream that does not read is told at which offset
// to go on, after all that was queued, and then ended; going on there misses
// nothing. One that does not know the message stays and sees a gap (wire 10).
func TestSlowSubscriberIsToldWhereToGoOn(t *testing.T) {
	n := felixtest.Start(t, felixtest.Durable(), felixtest.WithSetting("subscriber-queue-capacity", "4"))
	small := quic.ConnOptions{Windows: quic.Windows{Stream: 32 << 10, Conn: 64 << 10}}
	told := dialWith(t, n, small)
	toldSub := told.subscribe(modern(), &wire.Subscribe{Stream: "s"})
	legacy := modern()
	legacy.Features &^= wire.FeatureSubscriptionLagged
	untold := dialWith(t, n, small)
	untoldSub := untold.subscribe(legacy, &wire.Subscribe{Stream: "s"})

	p := dial(t, n)
	l := p.login(modern(), n.Token())
	const count = 200
	for i := range uint64(count) {
		l.send(p.publish(i, "s", append(binary.BigEndian.AppendUint64(nil, i), make([]byte, 8000)...)).Append(nil))
		if a := l.ack(); a.Failed || a.Offset != i {
			t.Fatalf("publish %d: %+v", i, a)
		}
	}
	next := uint64(0)
	take := func(b *wire.EventBatch) {
		t.Helper()
		for i, e := range b.All() {
			if at := b.BaseOffset + uint64(i); at != next || binary.BigEndian.Uint64(e.Payload) != next {
				t.Fatalf("record %d at %d, want %d", binary.BigEndian.Uint64(e.Payload), at, next)
			}
			next++
		}
	}
	for {
		h, payload := toldSub.frame()
		var b wire.EventBatch
		if h.Flags != 0 {
			if err := wire.ParseEventBatch(h.Flags, payload, &b); err != nil {
				t.Fatal(err)
			}
			take(&b)
			continue
		}
		m, err := wire.ParseMessage(payload)
		if err != nil {
			t.Fatal(err)
		}
		lagged, is := m.(*wire.SubscriptionLagged)
		if !is || lagged.SubscriptionID != toldSub.said.SubscriptionID || lagged.ResumeFrom != next || next == count {
			t.Fatalf("last frame %#v after %d records", m, next)
		}
		break
	}
	if _, _, err := toldSub.in.Next(); !errors.Is(err, io.EOF) {
		t.Fatalf("after the last frame: %v", err)
	}
	again := dial(t, n).subscribe(modern(), &wire.Subscribe{Stream: "s", Start: wire.Some(wire.StartAt(next))})
	for next < count {
		b := again.batch()
		take(&b)
	}

	// The one that is not told: a gap, and then what is published later.
	seen := make(chan struct{})
	published := make(chan struct{})
	go func() {
		defer close(published)
		for id := uint64(count); ; id++ {
			select {
			case <-seen:
				return
			default:
				l.send(p.publish(id, "s", []byte("later")).Append(nil))
				l.ack()
			}
		}
	}()
	at, gap := uint64(0), false
	for at <= count {
		b := untoldSub.batch()
		gap = gap || b.BaseOffset > at
		at = b.BaseOffset + uint64(b.Count())
	}
	close(seen)
	<-published
	if !gap {
		t.Fatal("no gap, so nothing was dropped")
	}
}

// Publisher and time go to subscribers that ask, where they are recorded.
func TestPublisherAndTimeOfEvents(t *testing.T) {
	for _, recorded := range []string{"true", "false"} {
		n := felixtest.Start(t, felixtest.Durable(), felixtest.WithSetting("record-publishers", recorded))
		p := dial(t, n)
		asks := p.subscribe(modern(), &wire.Subscribe{Stream: "s"})
		plain := modern()
		plain.Flags &^= wire.FlagEventPublisher | wire.FlagEventTimestamps
		doesNot := dial(t, n).subscribe(plain, &wire.Subscribe{Stream: "s"})
		l := p.login(modern(), n.Token())
		for i := range uint64(2) {
			l.send(p.publish(i, "s", []byte("a"), []byte("b")).Append(nil))
			l.ack()
			b := asks.batch()
			want := ""
			if recorded == "true" {
				want = "tester"
			}
			if b.BaseOffset != 2*i || string(b.Publisher) != want || b.Count() != 2 {
				t.Fatalf("recorded %s: batch at %d of %q", recorded, b.BaseOffset, b.Publisher)
			}
			for _, e := range b.All() {
				if e.TimestampMicros == 0 {
					t.Fatal("an event without a time")
				}
			}
			if b := doesNot.batch(); b.BaseOffset != 2*i || len(b.Publisher) != 0 {
				t.Fatalf("a subscriber that does not ask: %+v", b)
			}
		}
	}
}
