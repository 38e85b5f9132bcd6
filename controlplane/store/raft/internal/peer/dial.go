package peer

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"
)

// Dial opens a connection of a kind to a member.
func (m *Mux) Dial(ctx context.Context, kind Kind, to uint64) (net.Conn, error) {
	addr, ok := m.cfg.Peers[to]
	if !ok {
		return nil, fmt.Errorf("member %d is not among the peers", to)
	}
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	raw := conn
	stop := context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	if m.cfg.TLS.Set() {
		conn, err = m.secure(ctx, conn, addr)
		if err != nil {
			return nil, err
		}
	}
	if err := m.cfg.call(conn, kind, to); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("member %d at %s: %w", to, addr, err)
	}
	if !stop() { // its deadline must not outlive us
		_ = conn.Close()
		return nil, ctx.Err()
	}
	_ = conn.SetDeadline(time.Time{})
	return conn, nil
}

func (m *Mux) secure(ctx context.Context, conn net.Conn, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	cfg, err := m.cfg.TLS.client(host)
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	secure := tls.Client(conn, cfg)
	if err := secure.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return secure, nil
}
