package quic

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	quicgo "github.com/quic-go/quic-go"

	"github.com/felixlog/felix/transport"
)

// A Dialer makes connections from one UDP socket, which they share.
type Dialer struct {
	socket  *socket
	options DialOptions
	config  *quicgo.Config
	conns   registry
}

// NewDialer binds the socket. Errors are about the options or the socket.
func NewDialer(o DialOptions) (*Dialer, error) {
	if o.TLS == nil {
		return nil, errors.New("quic dialer: TLS is required")
	}
	cfg, err := o.ConnOptions.config(orDefault(o.Windows, DefaultWindows()), o.Logger)
	if err != nil {
		return nil, fmt.Errorf("quic dialer: %w", err)
	}
	s, err := openSocket(orDefault(o.LocalAddr, ":0"), o.Socket, o.Logger)
	if err != nil {
		return nil, fmt.Errorf("quic dialer: %w", err)
	}
	return &Dialer{socket: s, options: o, config: cfg}, nil
}

// Dial connects to addr ("host:port"). A host of several addresses is tried
// on all of them, IPv4 first, each a little after the one before. It ends
// with ctx, with the handshake timeout, or with a [*transport.CloseError]
// that says what the peer or the handshake had against it. A server that
// refuses this side's client certificate says so only afterwards: the
// connection is made and ends at once.
func (d *Dialer) Dial(ctx context.Context, addr string) (transport.Conn, error) {
	return d.dial(ctx, addr, d.config)
}

// DialWindows is Dial with receive windows of its own, for a connection whose
// use differs from the dialer's others.
func (d *Dialer) DialWindows(ctx context.Context, addr string, w Windows) (transport.Conn, error) {
	cfg := d.config.Clone()
	if err := w.apply(cfg); err != nil {
		return nil, fmt.Errorf("quic dial %s: %w", addr, err)
	}
	return d.dial(ctx, addr, cfg)
}

func (d *Dialer) dial(ctx context.Context, addr string, cfg *quicgo.Config) (transport.Conn, error) {
	host, addrs, err := resolve(ctx, addr)
	if err != nil {
		return nil, fmt.Errorf("quic dial %s: %w", addr, err)
	}
	conf := d.options.TLS
	if conf.ServerName == "" {
		conf = conf.Clone()
		conf.ServerName = host
	}
	qc, err := race(ctx, addrs, stagger, func(ctx context.Context, to netip.AddrPort) (*quicgo.Conn, error) {
		return d.socket.tr.Dial(ctx, net.UDPAddrFromAddrPort(to), conf, cfg)
	}, discard)
	if err != nil {
		return nil, fmt.Errorf("quic dial %s: %w", addr, mapHandshakeError(err))
	}
	c := newConn(qc, d.socket, d.conns.remove)
	if !d.conns.add(c) {
		c.Close(0, closedReason)
		return nil, fmt.Errorf("quic dial %s: dialer is closed: %w", addr, net.ErrClosed)
	}
	return c, nil
}

// discard drops a connection that came second.
func discard(qc *quicgo.Conn) { qc.CloseWithError(0, "") }

// LocalAddr is the bound address.
func (d *Dialer) LocalAddr() net.Addr { return d.socket.udp.LocalAddr() }

// Conns is how many connections are open.
func (d *Dialer) Conns() int { return d.conns.len() }

// Socket reads the counters of the UDP socket.
func (d *Dialer) Socket() SocketStats { return d.socket.stats() }

// Close closes every connection with code 0, then the socket. Dials in
// progress fail. It may be called again.
func (d *Dialer) Close() error {
	d.conns.closeAll(0, closedReason)
	return d.socket.close()
}
