// Package rawquic is what Felix's own figures are divided by: QUIC with
// nothing behind it. It uses the transport of Felix, receive path included,
// sends the frames that Felix sends, and does nothing with them but count or
// answer. What Felix loses against it is the price of being a broker.
package rawquic

import (
	"context"
	"time"

	"github.com/felixlog/felix/bench/internal/measure"
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

// note adds to a result what the client's side of the carrier counted.
func (c *client) note(r *measure.Result) {
	var sent, lost uint64
	gso, gro := true, true
	for _, conn := range c.conns {
		s := conn.Stats()
		sent, lost = sent+s.PacketsSent, lost+s.PacketsLost
		gso, gro = gso && s.GSO, gro && s.GRO
	}
	if sent > 0 {
		r.Note("packets_lost", "%.2f %%", 100*float64(lost)/float64(sent))
	}
	r.Note("offload", "GSO %v, GRO %v", gso, gro)
	if s := c.dialer.Socket(); s.PollHits+s.PollMisses > 0 {
		r.Note("polls", "%.0f %% found a packet", 100*float64(s.PollHits)/float64(s.PollHits+s.PollMisses))
	}
}
