package quic

import (
	"context"
	"crypto/x509"
	"net"
	"unicode/utf8"

	quicgo "github.com/quic-go/quic-go"

	"github.com/felixlog/felix/transport"
	"github.com/felixlog/felix/transport/udp"
)

var _ transport.Conn = (*conn)(nil)

// maxReason bounds the text of a close in bytes, which has to fit one packet.
const maxReason = 256

type conn struct {
	qc     *quicgo.Conn
	ctx    context.Context
	cancel context.CancelCauseFunc
	socket *socket
	path   *udp.Path
	peer   []*x509.Certificate
	alpn   string
}

// newConn wraps an established connection of s. ended, if set, is called once
// when it has ended.
func newConn(qc *quicgo.Conn, s *socket, ended func(*conn)) *conn {
	state := qc.ConnectionState()
	c := &conn{qc: qc, socket: s, alpn: state.TLS.NegotiatedProtocol}
	if chains := state.TLS.VerifiedChains; len(chains) > 0 {
		c.peer = chains[0]
	}
	c.path = s.udp.WatchPath(qc.RemoteAddr())
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	s.noteSegmentation(state.GSO)
	context.AfterFunc(qc.Context(), func() {
		c.cancel(mapError(context.Cause(qc.Context())))
		c.path.Release()
		if ended != nil {
			ended(c)
		}
	})
	return c
}

func (c *conn) OpenStream(ctx context.Context) (transport.Stream, error) {
	s, err := c.qc.OpenStreamSync(ctx)
	if err != nil {
		return nil, mapError(err)
	}
	return newStream(s), nil
}

func (c *conn) OpenUniStream(ctx context.Context) (transport.SendStream, error) {
	s, err := c.qc.OpenUniStreamSync(ctx)
	if err != nil {
		return nil, mapError(err)
	}
	return &sendStream{s: s}, nil
}

func (c *conn) AcceptStream(ctx context.Context) (transport.Stream, error) {
	s, err := c.qc.AcceptStream(ctx)
	if err != nil {
		return nil, mapError(err)
	}
	return newStream(s), nil
}

func (c *conn) AcceptUniStream(ctx context.Context) (transport.ReceiveStream, error) {
	s, err := c.qc.AcceptUniStream(ctx)
	if err != nil {
		return nil, mapError(err)
	}
	return &receiveStream{s}, nil
}

func (c *conn) Close(code uint64, reason string) error {
	err := c.qc.CloseWithError(quicgo.ApplicationErrorCode(code), cut(reason, maxReason))
	// Whoever closed may look at Context at once.
	c.cancel(mapError(context.Cause(c.qc.Context())))
	return mapError(err)
}

// cut shortens s to at most n bytes, on a rune boundary.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func (c *conn) Context() context.Context { return c.ctx }

func (c *conn) LocalAddr() net.Addr { return c.qc.LocalAddr() }

func (c *conn) RemoteAddr() net.Addr { return c.qc.RemoteAddr() }

func (c *conn) PeerCertificates() []*x509.Certificate { return c.peer }

func (c *conn) ALPN() string { return c.alpn }

func (c *conn) Stats() transport.Stats {
	s := c.qc.ConnectionStats()
	return transport.Stats{
		SmoothedRTT:     s.SmoothedRTT,
		MTU:             c.path.MTU(),
		PacketsSent:     s.PacketsSent,
		PacketsReceived: s.PacketsReceived,
		PacketsLost:     s.PacketsLost,
		BytesSent:       s.BytesSent,
		BytesReceived:   s.BytesReceived,
		GSO:             c.qc.ConnectionState().GSO,
		GRO:             c.socket.udp.GRO(),
	}
}
