// Package rawquic is what Felix's own figures are divided by: QUIC with
// nothing behind it. It uses the transport of Felix, receive path included,
// sends the frames that Felix sends, and does nothing with them but count or
// answer. What Felix loses against it is the price of being a broker.
package rawquic

import (
	"context"
	"time"

	"github.com/felixlog/felix/bench/internal/pki"
	"github.com/felixlog/felix/transport"
	"github.com/felixlog/felix/transport/quic"
	"github.com/felixlog/felix/transport/udp"
)

func listen(t pki.Files, poll time.Duration) (transport.Listener, error) {
	cfg, err := t.Server()
	if err != nil {
		return nil, err
	}
	return quic.Listen("127.0.0.1:0", quic.ListenOptions{TLS: cfg, Socket: udp.Options{Poll: poll}})
}

// A client is one UDP socket and the connections on it.
type client struct {
	dialer *quic.Dialer
	conns  []transport.Conn
}

func dial(ctx context.Context, t pki.Files, addr string, poll time.Duration, conns int) (*client, error) {
	cfg, err := t.Client()
	if err != nil {
		return nil, err
	}
	d, err := quic.NewDialer(quic.DialOptions{TLS: cfg, LocalAddr: "127.0.0.1:0", Socket: udp.Options{Poll: poll}})
	if err != nil {
		return nil, err
	}
	c := &client{dialer: d}
	for range conns {
		conn, err := d.Dial(ctx, addr)
		if err != nil {
			c.close()
			return nil, err
		}
		c.conns = append(c.conns, conn)
	}
	return c, nil
}

func (c *client) close() {
	for _, conn := range c.conns {
		_ = conn.Close(0, "done") // the run is over; nothing is owed
	}
	_ = c.dialer.Close()
}
