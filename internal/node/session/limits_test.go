package session_test

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/felixlog/felix/felixtest"
	"github.com/felixlog/felix/transport"
	"github.com/felixlog/felix/transport/quic"
	"github.com/felixlog/felix/transport/tlsconfig"
	"github.com/felixlog/felix/wire"
)

// One grammar of names holds at this door too, and what is refused is not
// created (decision 9).
func TestNamesAreRefusedAtTheDoor(t *testing.T) {
	n := felixtest.Start(t)
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	before := n.Stats().Streams
	bad := []string{"", ".", "..", "a/b", "a:b", "a*", "a#", "a b", "a\nb", "a\x00b", "\x1f", strings.Repeat("x", 254), "a\u2028b"}
	for i, name := range bad {
		l.send(p.publish(uint64(i), name, []byte("x")).Append(nil))
		if a := l.ack(); !a.Failed || a.Code != wire.CodeInvalidRequest && a.Code != wire.CodeForbidden {
			t.Fatalf("name %q: %+v", name, a)
		}
	}
	if got := n.Stats().Streams; got != before {
		t.Fatalf("%d streams appeared from bad names", got-before)
	}
	good := []string{strings.Repeat("x", 253), "é", "e\u0301", "CON", "A", "a", "🦊", "a.b", "-"}
	for i, name := range good {
		l.send(p.publish(uint64(i), name, []byte("x")).Append(nil))
		if a := l.ack(); a.Failed {
			t.Fatalf("name %q: %+v", name, a)
		}
	}
	if got := n.Stats().Streams; got != before+len(good) {
		t.Fatalf("%d names made %d streams: two share one", len(good), got-before)
	}
}

// Subscriptions are limited per identity and per connection; an ended one
// makes room.
func TestSubscriptionLimits(t *testing.T) {
	n := felixtest.Start(t, felixtest.WithSetting("max-subscriptions-per-conn", "2"), felixtest.WithSetting("max-subscriptions-per-conn-total", "3"))
	p := dial(t, n)
	ada, bob := n.TokenFor("ada", time.Now().Add(time.Hour)), n.TokenFor("bob", time.Now().Add(time.Hour))
	first := p.subscribeAs(modern(), ada, &wire.Subscribe{Stream: "s"})
	p.subscribeAs(modern(), ada, &wire.Subscribe{Stream: "s"})
	refused := func(token string) bool {
		l := p.login(modern(), token)
		l.say(&wire.Subscribe{Tenant: n.Tenant(), Namespace: n.Namespace(), Stream: "s"})
		e, ok := l.message().(*wire.Error)
		if ok && (e.Code.Value != "limit_exceeded" || e.Message != "max subscriptions per connection exceeded") {
			t.Fatalf("refused with %+v", e)
		}
		return ok
	}
	if !refused(ada) {
		t.Fatal("a third subscription of one identity")
	}
	p.subscribeAs(modern(), bob, &wire.Subscribe{Stream: "s"})
	if !refused(bob) {
		t.Fatal("a fourth subscription of one connection")
	}
	first.st.CancelRead(0)
	waitFor(t, "the ended subscription to leave", func() bool { return n.Stats().Subscribe.Subscriptions == 2 })
	p.subscribeAs(modern(), bob, &wire.Subscribe{Stream: "s"})
}

// A subscriber that goes away, however it does, leaves nothing behind, and
// others see no gap (BR-07).
func TestSubscribersLeaveNothingBehind(t *testing.T) {
	n := felixtest.Start(t)
	p := dial(t, n)
	steady := p.subscribe(modern(), &wire.Subscribe{Stream: "s", QueueCapacity: wire.Some[uint32](4096)})
	l := p.login(modern(), n.Token())
	next := steady.said.LiveOffset.Value
	goroutines := runtime.NumGoroutine()
	const rounds = 300
	for i := range uint64(rounds) {
		leaver := p.subscribe(modern(), &wire.Subscribe{Stream: "s"})
		l.send(p.publish(i, "s", []byte("a"), make([]byte, 3000)).Append(nil))
		l.ack()
		if i%3 == 0 {
			leaver.batch()
		}
		leaver.st.CancelRead(0)
		b := steady.batch()
		if b.BaseOffset != next {
			t.Fatalf("steady subscriber: jump from %d to %d", next, b.BaseOffset)
		}
		next += uint64(b.Count())
	}
	waitFor(t, "the leavers' subscriptions to end", func() bool { return n.Stats().Subscribe.Subscriptions == 1 })
	waitFor(t, "their goroutines to end", func() bool { return runtime.NumGoroutine() <= goroutines+5 })
}

// Streams end with FIN, RESET or STOP_SENDING, a great many on one connection:
// credit comes back whichever way, and nothing grows (BR-06, short form).
func TestStreamChurn(t *testing.T) {
	n := felixtest.Start(t)
	p := dialWith(t, n, quic.ConnOptions{})
	token := n.Token()
	one := func(i int) {
		l := p.login(modern(), token)
		switch i % 3 {
		case 0:
			if err := l.st.CloseWrite(); err != nil {
				t.Fatal(err)
			}
			l.ended()
		case 1:
			l.st.CancelWrite(7)
			l.st.CancelRead(7)
		case 2:
			l.st.CancelRead(7)
			_ = l.st.CloseWrite()
		}
	}
	for i := range 300 {
		one(i)
	}
	goroutines := runtime.NumGoroutine()
	for i := range 3000 {
		one(i)
	}
	waitFor(t, "goroutines to return to the baseline", func() bool { return runtime.NumGoroutine() <= goroutines+8 })
}

// Half a batch is never stored: a stream reset inside a frame publishes
// nothing of it (BR-07).
func TestHalfABatchIsNeverStored(t *testing.T) {
	n := felixtest.Start(t)
	p := dial(t, n)
	sub := p.subscribe(modern(), &wire.Subscribe{Stream: "s"})
	whole := p.publish(1, "s", make([]byte, 4000), make([]byte, 4000)).Append(nil)
	for range 50 {
		l := p.login(modern(), n.Token())
		l.send(whole[:len(whole)/2])
		l.st.CancelWrite(1)
		l.st.CancelRead(1)
	}
	l := p.login(modern(), n.Token())
	l.send(p.publish(2, "s", []byte("whole")).Append(nil))
	l.ack()
	if b := sub.batch(); b.Count() != 1 || b.BaseOffset != sub.said.LiveOffset.Value {
		t.Fatalf("first batch stored: %d records at %d", b.Count(), b.BaseOffset)
	}
}

// A publish-only stream serves unacked publishes and ends at anything else.
func TestPublishOnlyStream(t *testing.T) {
	n := felixtest.Start(t)
	p := dial(t, n)
	sub := p.subscribe(modern(), &wire.Subscribe{Stream: "s"})
	open := func() transport.SendStream {
		st, err := p.conn.OpenUniStream(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := st.Write(wire.AppendMessage(nil, wire.LegacyOffer().Auth(n.Tenant(), n.Token()))); err != nil {
			t.Fatal(err)
		}
		return st
	}
	unacked := p.publish(0, "s", []byte("x"))
	unacked.Acked = false
	st := open()
	if _, err := st.Write(unacked.Append(nil)); err != nil {
		t.Fatal(err)
	}
	sub.batch()
	for name, bytes := range map[string][]byte{
		"acked publish": p.publish(1, "s", []byte("x")).Append(nil),
		"second auth":   wire.AppendMessage(nil, wire.LegacyOffer().Auth(n.Tenant(), n.Token())),
		"cache get":     wire.AppendMessage(nil, &wire.CacheGet{Tenant: n.Tenant(), Namespace: n.Namespace(), Cache: "c", Key: []byte("k")}),
		"unknown flags": wire.AppendHeader(nil, 0x8000, 0),
	} {
		st := open()
		if _, err := st.Write(bytes); err != nil {
			t.Fatal(err)
		}
		select {
		case <-st.Context().Done():
		case <-time.After(patience):
			t.Fatalf("%s: the stream goes on", name)
		}
	}
	l := p.login(modern(), n.Token())
	l.send(p.publish(3, "s", []byte("the connection lives")).Append(nil))
	if a := l.ack(); a.Failed {
		t.Fatalf("after the others' mistakes: %+v", a)
	}
}

// A stream that is removed tells its subscriptions so and refuses its
// publishers; a stream of that name that comes later starts above it.
func TestRemovedStream(t *testing.T) {
	n := felixtest.Start(t, felixtest.WithSetting("auto-create", "false"))
	n.CreateStream("s", 1)
	p := dial(t, n)
	sub := p.subscribe(modern(), &wire.Subscribe{Stream: "s"})
	l := p.login(modern(), n.Token())
	l.send(p.publish(1, "s", []byte("x")).Append(nil))
	l.ack()
	last := sub.batch()
	n.RemoveStream("s")
	expectDeleted(t, sub)
	if _, _, err := sub.in.Next(); !errors.Is(err, io.EOF) {
		t.Fatalf("subscription of a removed stream: %v", err)
	}
	l.send(p.publish(2, "s", []byte("x")).Append(nil))
	if a := l.ack(); !a.Failed || a.Code != wire.CodeNotFound {
		t.Fatalf("publish to a removed stream: %+v", a)
	}
	n.CreateStream("s", 1)
	again := p.subscribe(modern(), &wire.Subscribe{Stream: "s"})
	if again.said.LiveOffset.Value <= last.BaseOffset {
		t.Fatalf("offset %d was given out before", again.said.LiveOffset.Value)
	}
	l.send(p.publish(3, "s", []byte("y")).Append(nil))
	if a := l.ack(); a.Failed {
		t.Fatalf("publish to the new stream: %+v", a)
	}
	again.batch()
}

// What could not be created does not use up what may be created on first use.
func TestFailedCreationsDoNotCount(t *testing.T) {
	n := felixtest.Start(t, felixtest.WithSetting("auto-create-limit", "2"))
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	for i := range uint64(50) {
		m := p.publish(i, "s", []byte("x"))
		m.Namespace = []byte("nowhere")
		l.send(m.Append(nil))
		if a := l.ack(); !a.Failed || a.Code != wire.CodeNotFound {
			t.Fatalf("publish to an unknown namespace: %+v", a)
		}
	}
	for i, want := range []bool{false, false, true, true} {
		l.send(p.publish(uint64(i), fmt.Sprint("s", i), []byte("x")).Append(nil))
		if a := l.ack(); a.Failed != want || want && a.Code != wire.CodeLimitExceeded {
			t.Fatalf("stream %d: %+v", i, a)
		}
	}
}

// A handshake that fails is counted; one that succeeds is not.
func TestFailedHandshakesAreCounted(t *testing.T) {
	n := felixtest.Start(t)
	dial(t, n)
	conf, err := tlsconfig.NewClient(tlsconfig.ClientOptions{CAPEM: n.CAPEM(), ServerName: "somebody.else"})
	if err != nil {
		t.Fatal(err)
	}
	d, err := quic.NewDialer(quic.DialOptions{TLS: conf})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Dial(t.Context(), n.Addr()); err == nil {
		t.Fatal("a certificate for another name was trusted")
	}
	waitFor(t, "the failed handshake in the metrics", func() bool {
		return metric(t, n, "felix_quic_handshake_failures_total") == "1"
	})
}
