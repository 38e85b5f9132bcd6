package session_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/felixlog/felix/felixtest"
	"github.com/felixlog/felix/transport"
	"github.com/felixlog/felix/transport/quic"
	"github.com/felixlog/felix/transport/tlsconfig"
	"github.com/felixlog/felix/wire"
)

// patience bounds every wait of these tests; nothing is measured by it.
const patience = 20 * time.Second

// A peer is a client that sends frames as it likes, over real QUIC.
type peer struct {
	t    *testing.T
	node testNode
	conn transport.Conn
}

// A testNode is a node as a peer needs it.
type testNode interface {
	Addr() string
	CAPEM() []byte
	Tenant() string
	Namespace() string
	Token(permissions ...string) string
}

var _ testNode = (*felixtest.Node)(nil)

func dial(t *testing.T, n testNode) *peer {
	t.Helper()
	return dialWith(t, n, quic.ConnOptions{})
}

func dialWith(t *testing.T, n testNode, o quic.ConnOptions) *peer {
	t.Helper()
	conf, err := tlsconfig.NewClient(tlsconfig.ClientOptions{CAPEM: n.CAPEM(), ServerName: "localhost"})
	if err != nil {
		t.Fatal(err)
	}
	d, err := quic.NewDialer(quic.DialOptions{ConnOptions: o, TLS: conf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := d.Dial(ctx, n.Addr())
	if err != nil {
		t.Fatal(err)
	}
	return &peer{t: t, node: n, conn: conn}
}

// modern is what a client of this level offers.
func modern() wire.Offer {
	return wire.Offer{Flags: wire.KnownFlags, Features: wire.KnownFeatures &^ wire.FeatureAckOnCommit, HasFlags: true}
}

// A lane is one bidirectional stream of a peer.
type lane struct {
	t  *testing.T
	st transport.Stream
	in *wire.FrameReader
}

// open opens a bidirectional stream without saying anything.
func (p *peer) open() *lane {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	st, err := p.conn.OpenStream(ctx)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := st.SetReadDeadline(time.Now().Add(patience)); err != nil {
		p.t.Fatal(err)
	}
	return &lane{t: p.t, st: st, in: wire.NewFrameReader(st, wire.MaxFramePayload)}
}

// login opens a stream and authenticates it with the given offer and token.
func (p *peer) login(o wire.Offer, token string) *lane {
	p.t.Helper()
	l := p.open()
	l.say(o.Auth(p.node.Tenant(), token))
	switch m := l.message().(type) {
	case *wire.AuthOK:
		if !o.HasFlags {
			p.t.Fatal("auth_ok to a client that offered nothing")
		}
	case *wire.OK:
		if o.HasFlags {
			p.t.Fatal("ok to a client that negotiates")
		}
	default:
		p.t.Fatalf("answer to auth: %#v", m)
	}
	return l
}

func (l *lane) send(b []byte) {
	l.t.Helper()
	if _, err := l.st.Write(b); err != nil {
		l.t.Fatal(err)
	}
}

func (l *lane) say(m wire.Message) {
	l.t.Helper()
	l.send(wire.AppendMessage(nil, m))
}

// frame reads the next frame; the payload is the caller's.
func (l *lane) frame() (wire.Header, []byte) {
	l.t.Helper()
	h, payload, err := l.in.Next()
	if err != nil {
		l.t.Fatalf("read frame: %v", err)
	}
	return h, append([]byte(nil), payload...)
}

func (l *lane) message() wire.Message {
	l.t.Helper()
	h, payload := l.frame()
	if h.Flags != 0 {
		l.t.Fatalf("frame with flags %#x, want a message", h.Flags)
	}
	m, err := wire.ParseMessage(payload)
	if err != nil {
		l.t.Fatal(err)
	}
	return m
}

func (l *lane) ack() wire.Ack {
	l.t.Helper()
	h, payload := l.frame()
	var a wire.Ack
	if err := wire.ParseAck(h.Flags, payload, &a); err != nil {
		l.t.Fatalf("frame with flags %#x, want an ack: %v", h.Flags, err)
	}
	return a
}

// ended checks that the broker finished the stream cleanly.
func (l *lane) ended() {
	l.t.Helper()
	if _, _, err := l.in.Next(); !errors.Is(err, io.EOF) {
		l.t.Fatalf("read after the last answer: %v, want a clean end", err)
	}
}

// publish is a binary batch for a stream of the test's namespace.
func (p *peer) publish(id uint64, stream string, payloads ...[]byte) *wire.Publish {
	return &wire.Publish{
		Acked: true, RequestID: id, AckMode: wire.AckPerBatch,
		Tenant: []byte(p.node.Tenant()), Namespace: []byte(p.node.Namespace()), Stream: []byte(stream),
		Block: wire.AppendBlock(nil, payloads...),
	}
}

// An eventLane is one subscription as a raw client sees it.
type eventLane struct {
	t    *testing.T
	st   transport.ReceiveStream
	in   *wire.FrameReader
	said *wire.Subscribed
}

// subscribe opens a subscription and reads its hello.
func (p *peer) subscribe(o wire.Offer, m *wire.Subscribe) *eventLane {
	p.t.Helper()
	return p.subscribeAs(o, p.node.Token(), m)
}

func (p *peer) subscribeAs(o wire.Offer, token string, m *wire.Subscribe) *eventLane {
	p.t.Helper()
	l := p.login(o, token)
	m.Tenant, m.Namespace = p.node.Tenant(), p.node.Namespace()
	l.say(m)
	said, ok := l.message().(*wire.Subscribed)
	if !ok {
		p.t.Fatal("subscribe was refused")
	}
	l.ended()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	st, err := p.conn.AcceptUniStream(ctx)
	if err != nil {
		p.t.Fatal(err)
	}
	e := &eventLane{t: p.t, st: st, in: wire.NewFrameReader(st, wire.MaxFramePayload), said: said}
	h, payload := e.frame()
	hello, err := wire.ParseMessage(payload)
	if err != nil || h.Flags != 0 {
		p.t.Fatalf("first frame of an event stream: flags %#x, %v", h.Flags, err)
	}
	if got := hello.(*wire.EventStreamHello).SubscriptionID; got != said.SubscriptionID {
		p.t.Fatalf("hello of subscription %d, want %d", got, said.SubscriptionID)
	}
	return e
}

func (e *eventLane) frame() (wire.Header, []byte) {
	e.t.Helper()
	if err := e.st.SetReadDeadline(time.Now().Add(patience)); err != nil {
		e.t.Fatal(err)
	}
	h, payload, err := e.in.Next()
	if err != nil {
		e.t.Fatalf("read event stream: %v", err)
	}
	return h, append([]byte(nil), payload...)
}

// ended checks that the broker finished the event stream cleanly.
func (e *eventLane) ended() {
	e.t.Helper()
	if _, _, err := e.in.Next(); !errors.Is(err, io.EOF) {
		e.t.Fatalf("after the last frame: %v, want a clean end", err)
	}
}

func (e *eventLane) batch() wire.EventBatch {
	e.t.Helper()
	h, payload := e.frame()
	var b wire.EventBatch
	if err := wire.ParseEventBatch(h.Flags, payload, &b); err != nil {
		e.t.Fatalf("frame with flags %#x, want events: %v", h.Flags, err)
	}
	return b
}

// A handClock stands still until a test moves it.
type handClock struct {
	mu     sync.Mutex
	now    time.Time
	timers map[*handTimer]struct{}
	made   atomic.Int64 // timers set so far
}

type handTimer struct {
	at time.Time
	f  func()
}

func newHandClock() *handClock {
	return &handClock{now: time.Now(), timers: make(map[*handTimer]struct{})}
}

func (c *handClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *handClock) AfterFunc(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &handTimer{at: c.now.Add(d), f: f}
	c.timers[t] = struct{}{}
	c.made.Add(1)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		_, pending := c.timers[t]
		delete(c.timers, t)
		return pending
	}
}

// advance moves the clock and runs what fell due.
func (c *handClock) advance(d time.Duration) {
	c.mu.Lock()
	c.now = c.now.Add(d)
	var due []func()
	for t := range c.timers {
		if !t.at.After(c.now) {
			due = append(due, t.f)
			delete(c.timers, t)
		}
	}
	c.mu.Unlock()
	for _, f := range due {
		f()
	}
}

// waitFor polls until cond holds.
func waitFor(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !cond(); {
		if time.Now().After(end) {
			t.Fatalf("waited for %s in vain", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// metric reads one unlabelled series off the node's metrics page.
func metric(t *testing.T, n *felixtest.Node, name string) string {
	t.Helper()
	res, err := http.Get(n.AdminURL() + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	page, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	t.Fatalf("no metric %s", name)
	return ""
}
