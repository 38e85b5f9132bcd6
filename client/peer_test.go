package client

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/felixlog/felix/transport"
	"github.com/felixlog/felix/transport/quic"
	"github.com/felixlog/felix/transport/tlsconfig"
	"github.com/felixlog/felix/wire"
)

// patience bounds every wait of these tests; it measures nothing.
const patience = 20 * time.Second

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("did not come about: %s", what)
		}
	}
}

var (
	authorityOnce sync.Once
	authority     *tlsconfig.DevCA
)

// testCA is one authority for all tests: making keys takes time.
func testCA(t testing.TB) *tlsconfig.DevCA {
	t.Helper()
	authorityOnce.Do(func() {
		ca, err := tlsconfig.NewDevCA(tlsconfig.DevOptions{})
		if err != nil {
			t.Fatal(err)
		}
		authority = ca
	})
	return authority
}

// A peer is a scripted broker on a real QUIC listener. Each stream a client
// opens is authenticated and then given to serve, on a goroutine of its own.
type peer struct {
	t  testing.TB
	ln *quic.Listener

	// answer answers an auth; the default offers everything.
	answer func(a *wire.Auth) wire.Message
	serve  func(s *peerStream)

	mu     sync.Mutex
	auths  []*wire.Auth
	conns  []transport.Conn
	nextID uint64
	wg     sync.WaitGroup
}

// fullOffer is a broker that knows everything and grants a window.
func fullOffer(*wire.Auth) wire.Message {
	return &wire.AuthOK{
		ServerFlags:    wire.KnownFlags,
		ServerFeatures: wire.Some(wire.KnownFeatures &^ (wire.FeatureTopology | wire.FeatureRedirect)),
		PublishWindow:  wire.Some[uint32](256),
	}
}

// offering is a broker with just these flags and features.
func offering(flags wire.Flags, features wire.Features) func(*wire.Auth) wire.Message {
	return func(*wire.Auth) wire.Message {
		return &wire.AuthOK{ServerFlags: flags, ServerFeatures: wire.Some(features)}
	}
}

// legacy is a broker from before negotiation.
func legacy(*wire.Auth) wire.Message { return &wire.OK{} }

func newPeer(t testing.TB, serve func(s *peerStream)) *peer {
	t.Helper()
	return newPeerAt(t, "127.0.0.1:0", serve)
}

func newPeerAt(t testing.TB, addr string, serve func(s *peerStream)) *peer {
	t.Helper()
	p := &peer{t: t, serve: serve, answer: fullOffer}
	tls, err := testCA(t).Server()
	if err != nil {
		t.Fatal(err)
	}
	if p.ln, err = quic.Listen(addr, quic.ListenOptions{TLS: tls}); err != nil {
		t.Fatal(err)
	}
	p.wg.Go(p.accept)
	t.Cleanup(p.stop)
	return p
}

func (p *peer) addr() string { return p.ln.Addr().String() }

// stop ends the broker and waits for its scripts.
func (p *peer) stop() {
	p.ln.Close()
	p.wg.Wait()
}

func (p *peer) accept() {
	for {
		c, err := p.ln.Accept(context.Background())
		if err != nil {
			return
		}
		p.mu.Lock()
		p.conns = append(p.conns, c)
		p.mu.Unlock()
		p.wg.Go(func() { p.streams(c) })
	}
}

func (p *peer) streams(c transport.Conn) {
	for {
		st, err := c.AcceptStream(c.Context())
		if err != nil {
			return
		}
		p.wg.Go(func() { p.stream(c, st) })
	}
}

func (p *peer) stream(c transport.Conn, st transport.Stream) {
	s := &peerStream{Stream: st, p: p, conn: c, in: wire.NewFrameReader(st, wire.MaxFramePayload)}
	auth, ok := s.message().(*wire.Auth)
	if !ok {
		return // the connection went away first
	}
	p.mu.Lock()
	p.auths = append(p.auths, auth)
	answer := p.answer
	p.mu.Unlock()
	m := answer(auth)
	s.send(m)
	if _, refused := m.(*wire.Error); refused {
		st.CloseWrite()
		return
	}
	s.auth = auth
	p.mu.Lock()
	serve := p.serve
	p.mu.Unlock()
	serve(s)
}

// setServe sets what streams are given to.
func (p *peer) setServe(serve func(*peerStream)) {
	p.mu.Lock()
	p.serve = serve
	p.mu.Unlock()
}

// setAnswer changes what auths are answered from now on.
func (p *peer) setAnswer(f func(*wire.Auth) wire.Message) {
	p.mu.Lock()
	p.answer = f
	p.mu.Unlock()
}

func (p *peer) authCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.auths)
}

// firstAuth is the first auth that came.
func (p *peer) firstAuth() *wire.Auth {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.auths[0]
}

func (p *peer) connCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// cut ends every connection, as a crash would.
func (p *peer) cut() {
	p.mu.Lock()
	conns := p.conns
	p.mu.Unlock()
	for _, c := range conns {
		c.Close(7, "cut")
	}
}

// A peerStream is one authenticated stream on the broker's side.
type peerStream struct {
	transport.Stream
	p    *peer
	conn transport.Conn
	in   *wire.FrameReader
	auth *wire.Auth
}

// next reads a frame; ok is false at the end of the stream.
func (s *peerStream) next() (h wire.Header, payload []byte, ok bool) {
	h, payload, err := s.in.Next()
	if err != nil {
		var reset *transport.ResetError
		var closed *transport.CloseError
		if !errors.Is(err, io.EOF) && !errors.As(err, &reset) && !errors.As(err, &closed) {
			s.p.t.Errorf("peer read: %v", err)
		}
		return h, nil, false
	}
	return h, payload, true
}

// message reads a JSON message; nil at the end of the stream.
func (s *peerStream) message() wire.Message {
	h, payload, ok := s.next()
	if !ok {
		return nil
	}
	if h.Flags != 0 {
		s.p.t.Errorf("peer got flags %#04x, expected a JSON message", uint16(h.Flags))
		return nil
	}
	m, err := wire.ParseMessage(payload)
	if err != nil {
		s.p.t.Errorf("peer got a bad message: %v", err)
		return nil
	}
	return m
}

// publish reads a binary publish; its bytes are the test's to keep.
func (s *peerStream) publish() (*wire.Publish, bool) {
	h, payload, ok := s.next()
	if !ok {
		return nil, false
	}
	p := new(wire.Publish)
	if err := wire.ParsePublish(h.Flags, append([]byte(nil), payload...), p); err != nil {
		s.p.t.Errorf("peer got a bad publish: %v", err)
		return nil, false
	}
	return p, true
}

func (s *peerStream) send(m wire.Message) { s.Write(wire.AppendMessage(nil, m)) }

func (s *peerStream) ack(a wire.Ack) { s.Write(a.Append(nil)) }

// events answers a subscribe: it opens an event stream, names it, and says
// "subscribed".
func (s *peerStream) events(answer wire.Subscribed) *peerEvents {
	s.p.mu.Lock()
	s.p.nextID++
	answer.SubscriptionID = s.p.nextID
	s.p.mu.Unlock()
	st, err := s.conn.OpenUniStream(s.conn.Context())
	if err != nil {
		s.p.t.Errorf("peer open event stream: %v", err)
		return nil
	}
	e := &peerEvents{SendStream: st, p: s.p, id: answer.SubscriptionID}
	e.send(&wire.EventStreamHello{SubscriptionID: e.id})
	s.send(&answer)
	s.CloseWrite()
	return e
}

// peerEvents is an event stream on the broker's side.
type peerEvents struct {
	transport.SendStream
	p  *peer
	id uint64
}

func (e *peerEvents) send(m wire.Message) { e.Write(wire.AppendMessage(nil, m)) }

// batch sends records in the shared form, with offsets.
func (e *peerEvents) batch(base, skipped uint64, payloads ...string) {
	b := wire.EventBatch{Shared: true, HasOffsets: true, BaseOffset: base, HasSkipped: skipped > 0, SkippedBefore: skipped, Block: block(payloads...)}
	e.Write(b.Append(nil))
}

func block(payloads ...string) wire.Block {
	var bytes [][]byte
	for _, p := range payloads {
		bytes = append(bytes, []byte(p))
	}
	return wire.AppendBlock(nil, bytes...)
}

// quick is a reconnect policy that does not make tests wait.
func quick() Option {
	return WithReconnect(ReconnectPolicy{Attempts: 5, Initial: time.Millisecond, Max: 10 * time.Millisecond})
}

// dial connects a client to the peers, closed at the test's end.
func dial(t testing.TB, seeds []string, opts ...Option) *Client {
	t.Helper()
	c, err := tryDial(t, seeds, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func tryDial(t testing.TB, seeds []string, opts ...Option) (*Client, error) {
	t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(testCA(t).CAPEM())
	all := append([]Option{WithTenant("t1"), WithToken("token"), WithRootCAs(pool), quick(), WithDialTimeout(patience)}, opts...)
	c, err := Dial(testContext(t), seeds, all...)
	if err == nil {
		t.Cleanup(func() {
			if err := c.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
		})
	}
	return c, err
}
