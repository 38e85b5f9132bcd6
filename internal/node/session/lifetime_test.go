package session_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/felixtest"
	"github.com/felixlog/felix/internal/telemetry"
	"github.com/felixlog/felix/transport"
	"github.com/felixlog/felix/transport/quic"
	"github.com/felixlog/felix/wire"
)

// A token's rights end a leeway after its expiry: publishes, cache requests,
// discovery and subscriptions all end with `unauthenticated`, no record comes
// later, and a new token on a new stream of the same connection serves on.
func TestRightsEndWithTheToken(t *testing.T) {
	clock := newHandClock()
	n := felixtest.Start(t, felixtest.WithClock(clock))
	token := n.TokenFor("ada", clock.Now().Add(5*time.Second))
	p := dial(t, n)
	sub := p.subscribeAs(modern(), token, &wire.Subscribe{Stream: "s"})
	lanes := map[string]*lane{}
	for _, name := range []string{"publish", "json", "cache", "discovery"} {
		lanes[name] = p.login(modern(), token)
	}
	lanes["publish"].send(p.publish(1, "s", []byte("in time")).Append(nil))
	if a := lanes["publish"].ack(); a.Failed {
		t.Fatalf("publish before expiry: %+v", a)
	}
	sub.batch()

	clock.advance(5*time.Second + 59*time.Second)
	lanes["publish"].send(p.publish(2, "s", []byte("in the leeway")).Append(nil))
	if a := lanes["publish"].ack(); a.Failed {
		t.Fatalf("publish within the leeway: %+v", a)
	}
	sub.batch()

	clock.advance(2 * time.Second)
	lanes["publish"].send(p.publish(3, "s", []byte("late")).Append(nil))
	if a := lanes["publish"].ack(); !a.Failed || a.Code != wire.CodeUnauthenticated || a.Retry != wire.Fatal {
		t.Fatalf("publish after expiry: %+v", a)
	}
	lanes["json"].say(&wire.JSONPublish{Tenant: n.Tenant(), Namespace: n.Namespace(), Stream: "s", RequestID: wire.Some[uint64](4)})
	if e := lanes["json"].message().(*wire.PublishError); e.Code.Value != "unauthenticated" {
		t.Fatalf("JSON publish after expiry: %+v", e)
	}
	lanes["cache"].say(&wire.CacheGet{Tenant: n.Tenant(), Namespace: n.Namespace(), Cache: "c", Key: []byte("k"), RequestID: wire.Some[uint64](5)})
	if e := lanes["cache"].message().(*wire.Error); e.Code.Value != "unauthenticated" {
		t.Fatalf("cache get after expiry: %+v", e)
	}
	lanes["discovery"].say(&wire.StreamShards{Tenant: n.Tenant(), Namespace: n.Namespace(), Stream: "s", RequestID: 6})
	if e := lanes["discovery"].message().(*wire.Error); e.Code.Value != "unauthenticated" {
		t.Fatalf("stream_shards after expiry: %+v", e)
	}
	for _, name := range []string{"json", "cache", "discovery"} {
		lanes[name].ended()
	}
	h, payload := sub.frame()
	if m, err := wire.ParseMessage(payload); err != nil || h.Flags != 0 || m.(*wire.Error).Code.Value != "unauthenticated" {
		t.Fatalf("last frame of the subscription: %#x %q", h.Flags, payload)
	}
	if _, _, err := sub.in.Next(); !errors.Is(err, io.EOF) {
		t.Fatalf("after the last frame: %v", err)
	}
	fresh := p.login(modern(), n.TokenFor("ada", clock.Now().Add(time.Hour)))
	fresh.send(p.publish(7, "s", []byte("again")).Append(nil))
	if a := fresh.ack(); a.Failed {
		t.Fatalf("publish with a fresh token: %+v", a)
	}
}

// The original's behaviour is one switch away: an open stream lives on.
func TestExpiryCanBeLeftToTheOpening(t *testing.T) {
	clock := newHandClock()
	n := felixtest.Start(t, felixtest.WithClock(clock), felixtest.WithSetting("auth-enforce-expiry", "false"))
	p := dial(t, n)
	token := n.TokenFor("ada", clock.Now().Add(time.Second))
	l := p.login(modern(), token)
	clock.advance(time.Hour)
	l.send(p.publish(1, "s", []byte("x")).Append(nil))
	if a := l.ack(); a.Failed {
		t.Fatalf("publish on an open stream: %+v", a)
	}
	late := p.open()
	late.say(modern().Auth(n.Tenant(), token))
	if e, ok := late.message().(*wire.Error); !ok || e.Code.Value != "unauthenticated" {
		t.Fatalf("auth with an expired token: %+v", e)
	}
	late.ended()
}

// A connection on which nothing authenticates is closed with code 1; one that
// announced itself on a unidirectional stream is not.
func TestAuthenticationDeadline(t *testing.T) {
	clock := newHandClock()
	n := felixtest.Start(t, felixtest.WithClock(clock))
	silent, announced := dial(t, n), dial(t, n)
	st, err := announced.conn.OpenUniStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := st.Write(wire.AppendMessage(nil, wire.LegacyOffer().Auth(n.Tenant(), n.Token()))); err != nil {
		t.Fatal(err)
	}
	_ = st.CloseWrite() // the node may have read enough by now
	waitFor(t, "the announcement", func() bool { return metric(t, n, "felix_auth_accepted_total") == "1" })
	clock.advance(11 * time.Second)
	select {
	case <-silent.conn.Context().Done():
	case <-time.After(patience):
		t.Fatal("the silent connection lives on")
	}
	var closed *transport.CloseError
	if err := context.Cause(silent.conn.Context()); !errors.As(err, &closed) || closed.Code != 1 || closed.Reason != "authentication timeout" {
		t.Fatalf("closed with %v", err)
	}
	announced.login(modern(), n.Token())
}

// A node that stops delivers what subscribers have queued, refuses new
// streams with `draining`, and closes with code 0. It does not end the event
// streams: a clean end would say that there is nothing more to come back for.
func TestDrain(t *testing.T) {
	n := felixtest.Start(t)
	p := dial(t, n)
	sub := p.subscribe(modern(), &wire.Subscribe{Stream: "s"})
	busy := p.login(modern(), n.Token())
	l := p.login(modern(), n.Token())
	for i := range uint64(100) {
		l.send(p.publish(i, "s", make([]byte, 100)).Append(nil))
		l.ack()
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		n.Stop()
	}()
	// The node waits for those who are still asking; meanwhile it says no to
	// those who come.
	refused := false
	for id := uint64(1000); !refused; id++ {
		busy.send(p.publish(id, "other", []byte("x")).Append(nil))
		busy.ack()
		late := p.open()
		late.say(modern().Auth(n.Tenant(), n.Token()))
		if e, ok := late.message().(*wire.Error); ok {
			if e.Code.Value != "draining" || e.Retry.Value != "retry" {
				t.Fatalf("refused with %+v", e)
			}
			refused = true
		}
	}
	got := 0
	for got < 100 {
		b := sub.batch()
		got += b.Count()
	}
	<-stopped
	var closed *transport.CloseError
	if _, _, err := sub.in.Next(); !errors.As(err, &closed) || closed.Code != 0 || closed.Reason != "broker shutting down" {
		t.Fatalf("subscription ended with %v", err)
	}
}

// A subscriber that does not read does not keep a node from stopping.
func TestStalledSubscriberDoesNotHoldUpAStop(t *testing.T) {
	n := felixtest.Start(t, felixtest.WithSetting("shutdown-drain-timeout-ms", "60000"))
	small := quic.ConnOptions{Windows: quic.Windows{Stream: 32 << 10, Conn: 32 << 10}}
	stalled := dialWith(t, n, small)
	stalled.subscribe(modern(), &wire.Subscribe{Stream: "s"})
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	for i := range uint64(100) {
		l.send(p.publish(i, "s", make([]byte, 4000)).Append(nil))
		l.ack()
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		n.Stop()
	}()
	select {
	case <-stopped:
	case <-time.After(8 * time.Second): // the test node gives up by itself after 10
		t.Fatal("the node waits for a subscriber that does not read")
	}
}

// A client that is about to send its FIN behind a request is not told to stop:
// it could take that for a failure and ask again.
func TestAnsweredClientMayStillEndItsHalf(t *testing.T) {
	n := felixtest.Start(t)
	p := dial(t, n)
	l := p.login(modern(), n.Token())
	l.say(&wire.Subscribe{Tenant: n.Tenant(), Namespace: n.Namespace(), Stream: "s"})
	if _, ok := l.message().(*wire.Subscribed); !ok {
		t.Fatal("subscribe was refused")
	}
	l.ended()
	answered := time.Now()
	select {
	case <-l.st.Context().Done():
	case <-time.After(50 * time.Millisecond):
	}
	// A machine that stood still for longer than the node waits says nothing.
	if err := l.st.CloseWrite(); err != nil && time.Since(answered) < 500*time.Millisecond {
		t.Fatalf("end of the request: %v, told to stop: %v", err, context.Cause(l.st.Context()))
	}
}

// The log filter goes by module: FELIX_LOG=warn,session=debug shows why a
// token was refused and is silent about the rest.
func TestLogIsFilteredByModule(t *testing.T) {
	var log lockedBuffer
	logger, err := telemetry.NewLogger(&log, "warn,session=debug", "text")
	if err != nil {
		t.Fatal(err)
	}
	n := felixtest.Start(t, felixtest.WithLogger(logger))
	l := dial(t, n).open()
	l.say(modern().Auth(n.Tenant(), "no token"))
	l.message()
	l.ended()
	waitFor(t, "the refusal in the log", func() bool { return strings.Contains(log.String(), "token refused") })
	if text := log.String(); !strings.Contains(text, "module=session") || strings.Contains(text, "listening") {
		t.Fatalf("logged:\n%s", text)
	}
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
