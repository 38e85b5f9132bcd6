package conformance

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/felixlog/felix/conformance/raw"
	"github.com/felixlog/felix/felixtest"
)

// patience bounds every wait of the raw tests. It is a bound on hanging, not
// on speed.
const patience = 20 * time.Second

// readMax is the longest frame the raw tests read: as long as any may be.
const readMax = 16 << 20

// A rawConn is a QUIC connection to a node with no Felix client on it.
type rawConn struct {
	t    *testing.T
	node *felixtest.Node
	quic *quic.Conn
}

// dialRaw connects without ALPN, as the published clients do.
func dialRaw(t *testing.T, n *felixtest.Node) *rawConn {
	t.Helper()
	c, err := tryDial(n, nil)
	if err != nil {
		t.Fatalf("dial: %v", err)
	}
	t.Cleanup(func() { c.CloseWithError(0, "") })
	return &rawConn{t, n, c}
}

// in is the connection as a subtest sees it: failures are the subtest's.
func (c *rawConn) in(t *testing.T) *rawConn { return &rawConn{t, c.node, c.quic} }

func tryDial(n *felixtest.Node, alpn []string) (*quic.Conn, error) {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(n.CAPEM())
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return quic.DialAddr(ctx, n.Addr(), &tls.Config{
		RootCAs: roots, ServerName: "localhost", NextProtos: alpn, MinVersion: tls.VersionTLS13,
	}, &quic.Config{MaxIdleTimeout: 6 * time.Second, KeepAlivePeriod: 2 * time.Second, MaxIncomingUniStreams: 1024})
}

// A rawStream is one bidirectional stream, or the sending half of one where
// Receive is nil.
type rawStream struct {
	t       *testing.T
	send    *quic.SendStream
	receive *quic.ReceiveStream
	both    *quic.Stream
}

// open opens a bidirectional stream and sends nothing on it.
func (c *rawConn) open() *rawStream {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := c.quic.OpenStreamSync(ctx)
	if err != nil {
		c.t.Fatalf("open stream: %v", err)
	}
	return &rawStream{t: c.t, both: s}
}

// openUni opens a unidirectional stream and sends nothing on it.
func (c *rawConn) openUni() *rawStream {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := c.quic.OpenUniStreamSync(ctx)
	if err != nil {
		c.t.Fatalf("open stream: %v", err)
	}
	return &rawStream{t: c.t, send: s}
}

// acceptEvents waits for the node to open an event stream.
func (c *rawConn) acceptEvents() *rawStream {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	s, err := c.quic.AcceptUniStream(ctx)
	if err != nil {
		c.t.Fatalf("accept event stream: %v", err)
	}
	return &rawStream{t: c.t, receive: s}
}

// authFrame is the auth message of a client that offers nothing.
func authFrame(token string) raw.Frame {
	return raw.JSON(map[string]any{"type": "auth", "tenant_id": "t1", "token": token})
}

// The offers of the published client (profile_test.go holds it to them).
const (
	clientFlags    = 0x1FFF
	clientFeatures = 0xFB77_FFFF
)

// fullAuthFrame is the auth message of the published client.
func fullAuthFrame(token string) raw.Frame {
	return raw.JSON(map[string]any{"type": "auth", "tenant_id": "t1", "token": token,
		"client_flags": clientFlags, "client_features": clientFeatures, "client_features_hi": 1})
}

// legacy opens a stream authenticated by a client that offers nothing.
func (c *rawConn) legacy() *rawStream {
	c.t.Helper()
	s := c.open()
	s.frames(authFrame(c.node.Token()))
	s.wantText(`{"type":"ok"}`)
	return s
}

// session opens a stream authenticated with all the published client offers.
func (c *rawConn) session(permissions ...string) *rawStream {
	c.t.Helper()
	s := c.open()
	s.frames(fullAuthFrame(c.node.Token(permissions...)))
	if f := s.frame(); f.Type() != "auth_ok" {
		c.t.Fatalf("answer to auth: %s", f.Describe())
	}
	return s
}

func (s *rawStream) reader() io.Reader {
	if s.both != nil {
		return s.both
	}
	return s.receive
}

// bytes sends bytes as they are.
func (s *rawStream) bytes(b []byte) {
	s.t.Helper()
	if err := s.write(b); err != nil {
		s.t.Fatalf("send: %v", err)
	}
}

// write sends bytes and gives up after patience.
func (s *rawStream) write(b []byte) error {
	var w interface {
		io.Writer
		SetWriteDeadline(time.Time) error
	} = s.both
	if s.both == nil {
		w = s.send
	}
	if err := w.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	_, err := w.Write(b)
	return err
}

// frames sends frames in one write.
func (s *rawStream) frames(frames ...raw.Frame) {
	s.t.Helper()
	var b []byte
	for _, f := range frames {
		b = f.Append(b)
	}
	s.bytes(b)
}

// fin ends the sending half, unless the node has refused the rest of it.
func (s *rawStream) fin() {
	s.t.Helper()
	var err error
	if s.both != nil {
		err = s.both.Close()
	} else {
		err = s.send.Close()
	}
	if err != nil && s.sendContext().Err() == nil {
		s.t.Fatalf("end stream: %v", err)
	}
}

// next reads a frame.
func (s *rawStream) next() (raw.Frame, error) {
	deadline := time.Now().Add(patience)
	if s.both != nil {
		s.both.SetReadDeadline(deadline)
	} else {
		s.receive.SetReadDeadline(deadline)
	}
	return raw.ReadFrame(s.reader(), readMax)
}

// frame reads a frame, which must come.
func (s *rawStream) frame() raw.Frame {
	s.t.Helper()
	f, err := s.next()
	if err != nil {
		s.t.Fatalf("read frame: %v", err)
	}
	return f
}

// wantText reads a JSON frame and compares it byte for byte.
func (s *rawStream) wantText(want string) {
	s.t.Helper()
	if f := s.frame(); f.Flags != 0 || string(f.Payload) != want {
		s.t.Fatalf("got  %s\nwant %s", f.Describe(), want)
	}
}

// wantJSON reads a JSON frame and compares it as a value: order of members
// does not count, but members too many or too few do.
func (s *rawStream) wantJSON(want string) {
	s.t.Helper()
	f := s.frame()
	if f.Flags != 0 || canonical(s.t, f.Payload) != canonical(s.t, []byte(want)) {
		s.t.Fatalf("got  %s\nwant %s", f.Describe(), want)
	}
}

func canonical(t *testing.T, b []byte) string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("not JSON: %q", b)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// wantError reads an error message with this code; texts must all be in it.
func (s *rawStream) wantError(code, text string) {
	s.t.Helper()
	f := s.frame()
	if f.Type() != "error" || f.String("code") != code || f.String("message") != text {
		s.t.Fatalf("got %s, want error %q with code %q", f.Describe(), text, code)
	}
}

// wantEnd checks that the node's half ends, cleanly or by a reset, with no
// further frame.
func (s *rawStream) wantEnd() {
	s.t.Helper()
	f, err := s.next()
	var reset *quic.StreamError
	switch {
	case err == nil:
		s.t.Fatalf("stream goes on: %s", f.Describe())
	case errors.Is(err, io.EOF):
	case errors.As(err, &reset) && reset.Remote:
	default:
		s.t.Fatalf("stream did not end: %v", err)
	}
}

// wantFIN checks that the node's half ends cleanly with no further frame.
func (s *rawStream) wantFIN() {
	s.t.Helper()
	if f, err := s.next(); err == nil {
		s.t.Fatalf("stream goes on: %s", f.Describe())
	} else if !errors.Is(err, io.EOF) {
		s.t.Fatalf("stream did not end cleanly: %v", err)
	}
}

// wantStopped checks that the node no longer wants what this side sends. A
// node that just stops reading leaves the peer blocked on flow control.
func (s *rawStream) wantStopped() {
	s.t.Helper()
	ctx := s.sendContext()
	select {
	case <-ctx.Done():
	case <-time.After(patience):
		s.t.Fatal("the node neither reads nor refuses the rest of the stream")
	}
}

func (s *rawStream) sendContext() context.Context {
	if s.both != nil {
		return s.both.Context()
	}
	return s.send.Context()
}

// cacheGet is a request every authenticated stream can answer: it shows
// whether a stream goes on.
func cacheGet(id uint64) raw.Frame {
	return raw.JSON(map[string]any{"type": "cache_get", "tenant_id": "t1", "namespace": "default",
		"cache": "primary", "key": "absent", "request_id": id})
}

// wantAlive checks that the stream still answers.
func (s *rawStream) wantAlive() {
	s.t.Helper()
	const id = 1<<63 + 1
	s.frames(cacheGet(id))
	f := s.frame()
	if got, _ := f.Uint("request_id"); f.Type() != "cache_value" || got != id {
		s.t.Fatalf("answer to a request after it: %s", f.Describe())
	}
}
