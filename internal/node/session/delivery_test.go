package session_test

import (
	"fmt"
	"testing"

	"github.com/felixlog/felix/felixtest"
	"github.com/felixlog/felix/transport/quic"
	"github.com/felixlog/felix/wire"
)

// A client gets the fields it offered and no others, of the same batches.
func TestEventFramesFollowTheOffer(t *testing.T) {
	n := felixtest.Start(t)
	p := dial(t, n)
	legacy := p.subscribe(wire.LegacyOffer(), &wire.Subscribe{Stream: "s"})
	full := p.subscribe(modern(), &wire.Subscribe{Stream: "s"})
	if legacy.said.StartOffset.Set || legacy.said.LiveOffset.Set {
		t.Fatalf("subscribed for a legacy client: %+v", legacy.said)
	}
	l := p.login(modern(), n.Token())
	l.send(p.publish(1, "s", []byte("a"), []byte("b")).Append(nil))
	l.ack()
	if h, _ := legacy.frame(); h.Flags != wire.FlagEventBatchShared {
		t.Fatalf("legacy client got flags %#x", h.Flags)
	}
	if h, _ := full.frame(); h.Flags != wire.FlagEventBatchShared|wire.FlagEventOffsets {
		t.Fatalf("client with offsets got flags %#x", h.Flags)
	}
	if got := n.Stats().Subscribe.Encodes; got != 2 {
		t.Fatalf("%d encodes for two shapes", got)
	}
}

// A batch goes out encoded once, however many read it.
func TestOneEncodeForAllSubscribers(t *testing.T) {
	n := felixtest.Start(t)
	p := dial(t, n)
	var subs []*eventLane
	for range 10 {
		subs = append(subs, p.subscribe(modern(), &wire.Subscribe{Stream: "s"}))
	}
	l := p.login(modern(), n.Token())
	const batches = 50
	for i := range uint64(batches) {
		l.send(p.publish(i, "s", []byte("a"), []byte("b")).Append(nil))
		l.ack()
	}
	for _, s := range subs {
		for range batches {
			s.batch()
		}
	}
	if got := n.Stats().Subscribe.Encodes; got != batches {
		t.Fatalf("%d encodes of %d batches for 10 subscribers", got, batches)
	}
}

// Batches over the limits of a frame are split, those in the middle of which
// a subscription starts are cut, and offsets count on.
func TestSplitAndResumeInsideABatch(t *testing.T) {
	n := felixtest.Start(t)
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	var payloads [][]byte
	for i := range 200 {
		payloads = append(payloads, fmt.Appendf(nil, "record-%03d", i))
	}
	first := p.subscribe(modern(), &wire.Subscribe{Stream: "s"})
	base := first.said.LiveOffset.Value
	l.send(p.publish(1, "s", payloads...).Append(nil))
	l.ack()
	for _, from := range []uint64{0, 1, 63, 64, 65, 199} {
		sub := p.subscribe(modern(), &wire.Subscribe{Stream: "s", Start: wire.Some(wire.StartAt(base + from))})
		if sub.said.StartOffset.Value != base+from || sub.said.LiveOffset.Value != base+200 {
			t.Fatalf("subscribed from %d: %+v", from, sub.said)
		}
		for next := from; next < 200; {
			b := sub.batch()
			if b.BaseOffset != base+next || b.Count() > 64 {
				t.Fatalf("from %d: batch of %d at %d, want at %d", from, b.Count(), b.BaseOffset-base, next)
			}
			for _, e := range b.All() {
				if string(e.Payload) != string(payloads[next]) {
					t.Fatalf("offset %d holds %q", next, e.Payload)
				}
				next++
			}
		}
	}
}

// Single events that are queued together leave in frames of at most the
// configured size, in order, none twice.
func TestSinglesMerge(t *testing.T) {
	n := felixtest.Start(t)
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	var out []byte
	const count = 900
	for i := range uint64(count) {
		out = p.publish(i, "s", fmt.Appendf(nil, "%d", i)).Append(out)
	}
	l.send(out)
	for range count {
		l.ack()
	}
	sub := p.subscribe(modern(), &wire.Subscribe{Stream: "s", Start: wire.Some(wire.Start{Kind: wire.StartEarliest})})
	next, frames := uint64(0), 0
	for next < count {
		b := sub.batch()
		frames++
		if b.Count() > 64 {
			t.Fatalf("frame of %d events", b.Count())
		}
		for _, e := range b.All() {
			if string(e.Payload) != fmt.Sprint(next) {
				t.Fatalf("event %d holds %q", next, e.Payload)
			}
			next++
		}
	}
	if frames > count/64+2 {
		t.Fatalf("%d events took %d frames", count, frames)
	}
}

// A subscriber that does not read loses what its queue cannot hold, and the
// others lose nothing; what it receives and the gaps in its offsets are
// together what was published.
func TestFrozenSubscriberLosesVisiblyAndAlone(t *testing.T) {
	for _, policy := range []string{"drop_new", "drop_old"} {
		t.Run(policy, func(t *testing.T) {
			n := felixtest.Start(t, felixtest.WithSetting("subscriber-queue-policy", policy))
			small := quic.ConnOptions{Windows: quic.Windows{Stream: 64 << 10, Conn: 64 << 10}}
			frozen := dialWith(t, n, small).subscribe(modern(), &wire.Subscribe{Stream: "s", QueueCapacity: wire.Some[uint32](16)})
			if got := frozen.said.QueueCapacity; got != wire.Some[uint32](16) {
				t.Fatalf("granted capacity %+v", got)
			}
			// One stream at a time is read below: the connection's window must
			// hold what waits on the others.
			wide := quic.Windows{Stream: 16 << 20, Conn: 64 << 20, InitialStream: 16 << 20, InitialConn: 64 << 20}
			reader := dialWith(t, n, quic.ConnOptions{Windows: wide})
			var awake []*eventLane
			for range 9 {
				awake = append(awake, reader.subscribe(modern(), &wire.Subscribe{Stream: "s", QueueCapacity: wire.Some[uint32](4096)}))
			}
			base := frozen.said.LiveOffset.Value
			p := dial(t, n)
			l := p.login(modern(), n.Token())
			const batches, perBatch = 400, 10
			records := make([][]byte, perBatch)
			for i := range records {
				records[i] = make([]byte, 1000)
			}
			for i := range uint64(batches) {
				l.send(p.publish(i, "s", records...).Append(nil))
				l.ack()
			}
			total := base + batches*perBatch
			for i, s := range awake {
				for next := base; next < total; {
					b := s.batch()
					if b.BaseOffset != next {
						t.Fatalf("awake subscriber %d: jump from %d to %d", i, next, b.BaseOffset)
					}
					next += uint64(b.Count())
				}
			}
			dropped := n.Stats().Subscribe.DroppedRecords
			received, gap, next := uint64(0), uint64(0), base
			take := func() {
				b := frozen.batch()
				gap += b.BaseOffset - next
				received += uint64(b.Count())
				next = b.BaseOffset + uint64(b.Count())
			}
			for received < batches*perBatch-dropped {
				take()
			}
			// One more batch, once the queue has room, shows the last gap.
			l.send(p.publish(batches, "s", records...).Append(nil))
			l.ack()
			for next < total+perBatch {
				take()
			}
			if gap == 0 {
				t.Fatal("the frozen subscriber lost nothing: the test froze nobody")
			}
			if received+gap != (batches+1)*perBatch {
				t.Fatalf("received %d + gap %d of %d", received, gap, (batches+1)*perBatch)
			}
			if dropped != gap {
				t.Fatalf("counted %d dropped records, the gap is %d", dropped, gap)
			}
		})
	}
}

// Under block nobody loses, and a publisher that asked for acks after the
// write is held to its window meanwhile.
func TestBlockedSubscriberHoldsThePublisher(t *testing.T) {
	const window = 32
	n := felixtest.Start(t,
		felixtest.WithSetting("subscriber-queue-policy", "block"),
		felixtest.WithSetting("publish-window", fmt.Sprint(window)))
	small := quic.ConnOptions{Windows: quic.Windows{Stream: 32 << 10, Conn: 32 << 10}}
	slow := dialWith(t, n, small).subscribe(modern(), &wire.Subscribe{Stream: "s", QueueCapacity: wire.Some[uint32](1)})
	base := slow.said.LiveOffset.Value
	p := dial(t, n)
	o := modern()
	o.Features |= wire.FeatureAckOnCommit
	l := p.login(o, n.Token())
	const batches = 200
	go func() {
		for i := range uint64(batches) {
			if _, err := l.st.Write(p.publish(i, "s", make([]byte, 4000), make([]byte, 4000)).Append(nil)); err != nil {
				return
			}
		}
	}()
	for next := base; next < base+2*batches; {
		b := slow.batch()
		if b.BaseOffset != next {
			t.Fatalf("jump from %d to %d under block", next, b.BaseOffset)
		}
		next += uint64(b.Count())
	}
	for i := range uint64(batches) {
		if a := l.ack(); a.Failed || a.RequestID != i {
			t.Fatalf("ack %d: %+v", i, a)
		}
	}
}

// History is read at the subscriber's pace and never dropped, however small
// its queue, while live batches go on arriving; the two join without a gap or
// a repetition (BR-18).
func TestHistoryIsNotSubjectToTheQueue(t *testing.T) {
	const history = 5000
	n := felixtest.Start(t, felixtest.WithSetting("stream-ring-records", "100000"))
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	base := p.subscribe(modern(), &wire.Subscribe{Stream: "s"}).said.LiveOffset.Value
	next := uint64(0)
	publish := func(count int) {
		var out []byte
		first := next
		for range count {
			out = p.publish(next, "s", fmt.Appendf(nil, "%d", next)).Append(out)
			next++
		}
		l.send(out)
		for i := range count {
			if a := l.ack(); a.Failed || a.RequestID != first+uint64(i) {
				t.Fatalf("publish %d: %+v", i, a)
			}
		}
	}
	for range history / 100 {
		publish(100)
	}
	for _, capacity := range []uint32{1, 16, 256} {
		t.Run(fmt.Sprint("capacity ", capacity), func(t *testing.T) {
			small := quic.ConnOptions{Windows: quic.Windows{Stream: 16 << 10, Conn: 16 << 10}}
			sub := dialWith(t, n, small).subscribe(modern(), &wire.Subscribe{
				Stream: "s", Start: wire.Some(wire.Start{Kind: wire.StartEarliest}), QueueCapacity: wire.Some(capacity),
			})
			if sub.said.StartOffset.Value != base {
				t.Fatalf("history starts at %d, want %d", sub.said.StartOffset.Value-base, 0)
			}
			live := sub.said.LiveOffset.Value
			for at := base; at < live; {
				publish(1) // the queue fills and overflows meanwhile
				b := sub.batch()
				if b.BaseOffset != at {
					t.Fatalf("jump from %d to %d within history", at-base, b.BaseOffset-base)
				}
				for _, e := range b.All() {
					if string(e.Payload) != fmt.Sprint(at-base) {
						t.Fatalf("offset %d holds %q", at-base, e.Payload)
					}
					at++
				}
			}
			publish(1)
			if b := sub.batch(); b.BaseOffset < live {
				t.Fatalf("offset %d came twice", b.BaseOffset-base)
			}
		})
	}
}
