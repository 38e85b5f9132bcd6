package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"

	"github.com/felixlog/felix/transport/quic"
)

// A broker is one broker and the connections and long-lived streams to it.
// All of them are opened when first needed and again when lost.
type broker struct {
	c    *Client
	addr string // as configured or discovered

	connecting chan struct{} // one token: held by whoever makes the first connection

	mu    sync.Mutex
	caps  *capabilities // of the latest authenticated stream; nil before
	dials int           // connections made, to spread them over ports
	first *conn         // the connection made to learn caps, until a role takes it
	pools [roles][]*connSlot

	publishes [2][]*publishSlot // without and with acknowledgement
	caches    *callPool
	groups    *callPool // about claims
	polls     *pollPool
}

// A connSlot holds one connection of a role.
type connSlot struct {
	opening chan struct{} // one token: held by whoever opens
	conn    *conn         // guarded by the broker's mu
}

func newBroker(c *Client, addr string) *broker {
	b := &broker{c: c, addr: addr, connecting: make(chan struct{}, 1)}
	sizes := [roles]int{
		rolePublish: c.cfg.pools.PublishConns,
		roleCache:   c.cfg.pools.CacheConns,
		roleEvent:   c.cfg.pools.EventConns,
		roleGroup:   1, // a connection is a worker's home: see PollReclaim
	}
	for r, n := range sizes {
		for range n {
			b.pools[r] = append(b.pools[r], &connSlot{opening: make(chan struct{}, 1)})
		}
	}
	for range c.cfg.pools.PublishConns * c.cfg.pools.PublishStreams {
		for kind := range b.publishes {
			b.publishes[kind] = append(b.publishes[kind], &publishSlot{opening: make(chan struct{}, 1)})
		}
	}
	b.caches = newCallPool(b, roleCache, c.cfg.pools.CacheConns*c.cfg.pools.CacheStreams)
	b.groups = newCallPool(b, roleGroup, 1)
	b.polls = newPollPool(b)
	return b
}

// learn notes what a stream's authentication told.
func (b *broker) learn(caps *capabilities) {
	b.mu.Lock()
	b.caps = caps
	b.mu.Unlock()
}

// known is what the broker advertised last; nil before the first stream.
func (b *broker) known() *capabilities {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.caps
}

// alive gives any live connection, nil when there is none.
func (b *broker) alive() *conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.first != nil && b.first.alive() {
		return b.first
	}
	for _, pool := range b.pools {
		for _, slot := range pool {
			if slot.conn != nil && slot.conn.alive() {
				return slot.conn
			}
		}
	}
	return nil
}

// connect makes sure that there is a live connection and that the broker's
// capabilities are known.
func (b *broker) connect(ctx context.Context) (*conn, *capabilities, error) {
	if cn, caps := b.alive(), b.known(); cn != nil && caps != nil {
		return cn, caps, nil
	}
	select {
	case b.connecting <- struct{}{}:
		defer func() { <-b.connecting }()
	case <-ctx.Done():
		return nil, nil, ctxError("connect", ctx, RetryNow)
	}
	if cn, caps := b.alive(), b.known(); cn != nil && caps != nil {
		return cn, caps, nil
	}
	ctx, cancel := within(ctx, b.c.cfg.dialTimeout)
	defer cancel()
	cn, err := b.dial(ctx, windowSizes{})
	if err != nil {
		return nil, nil, err
	}
	s, err := cn.open(ctx, nil, false)
	if err != nil {
		cn.Close(0, "")
		return nil, nil, err
	}
	cn.keep(s)
	b.mu.Lock()
	b.first = cn
	b.mu.Unlock()
	return cn, s.caps, nil
}

// conn gives the i-th connection of a role, opening it if need be.
func (b *broker) conn(ctx context.Context, r role, i int) (*conn, error) {
	slot := b.pools[r][i]
	windows := b.c.windowsOf(r)
	if cn := b.take(slot, windows); cn != nil {
		return cn, nil
	}
	select {
	case slot.opening <- struct{}{}:
		defer func() { <-slot.opening }()
	case <-ctx.Done():
		return nil, ctxError("connect", ctx, RetryNow)
	}
	if cn := b.take(slot, windows); cn != nil {
		return cn, nil
	}
	cn, err := b.dial(ctx, windows)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	slot.conn = cn
	b.mu.Unlock()
	return cn, nil
}

// take gives the slot's connection if it lives, or moves the broker's first
// connection there.
func (b *broker) take(slot *connSlot, windows windowSizes) *conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	if slot.conn != nil && slot.conn.alive() {
		return slot.conn
	}
	slot.conn = nil
	if b.first != nil && b.first.alive() && b.first.windows == windows {
		slot.conn, b.first = b.first, nil
	}
	return slot.conn
}

// eventConn gives a connection with room for one more subscription, and
// counts it there. Connections are filled one after the other.
func (b *broker) eventConn(ctx context.Context) (*conn, error) {
	for i := range b.pools[roleEvent] {
		cn, err := b.conn(ctx, roleEvent, i)
		if err != nil {
			return nil, err
		}
		if cn.reserveSubscription() {
			return cn, nil
		}
	}
	n := len(b.pools[roleEvent])
	return nil, &Error{
		Op: "subscribe", Code: CodeLimitExceeded, Retry: RetryNever, Broker: b.addr,
		Message: fmt.Sprintf("%d event connections carry %d subscriptions each, see Pools.EventConns", n, eventCapacity),
	}
}

// dial makes a connection. Further ones are spread over the broker's ports
// (wire 2.6).
func (b *broker) dial(ctx context.Context, windows windowSizes) (*conn, error) {
	ctx, cancel := within(ctx, b.c.cfg.dialTimeout)
	defer cancel()
	addr := b.nextAddr()
	var (
		cn  = &conn{b: b, windows: windows}
		err error
	)
	if windows == (windowSizes{}) {
		cn.Conn, err = b.c.dialer.Dial(ctx, addr)
	} else {
		cn.Conn, err = b.c.dialer.DialWindows(ctx, addr, windows.quic())
	}
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, ctxError("connect", ctx, RetryNow)
	case errors.As(err, new(*tls.CertificateVerificationError)):
		return nil, lost("connect", addr, RetryNever, err)
	default:
		return nil, lost("connect", addr, RetryNow, b.c.cause(err))
	}
	cn.router.init(cn, b.c.cfg.pools.PendingEventStreams)
	b.c.connected(cn)
	return cn, nil
}

func (b *broker) nextAddr() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := b.dials
	b.dials++
	if b.caps == nil || len(b.caps.ports) == 0 || n == 0 {
		return b.addr
	}
	host, _, err := net.SplitHostPort(b.addr)
	if err != nil {
		return b.addr
	}
	port := b.caps.ports[n%len(b.caps.ports)]
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// close ends every connection.
func (b *broker) close(reason string) {
	b.mu.Lock()
	conns := []*conn{b.first}
	for _, pool := range b.pools {
		for _, slot := range pool {
			conns = append(conns, slot.conn)
		}
	}
	b.mu.Unlock()
	for _, cn := range conns {
		if cn != nil {
			cn.Close(0, reason)
		}
	}
}

// windowSizes are the receive windows of a connection in bytes; zero for the
// carrier's default.
type windowSizes struct{ conn, stream int }

func (c *Client) windowsOf(r role) windowSizes {
	w := c.cfg.windows
	switch r {
	case roleEvent:
		return windowSizes{w.EventConn, w.EventStream}
	case roleCache:
		return windowSizes{w.CacheConn, w.CacheStream}
	default:
		return windowSizes{}
	}
}

// quic fills in a size that is not set: a connection's window is at least a
// stream's.
func (w windowSizes) quic() quic.Windows {
	d := quic.DefaultWindows()
	out := quic.Windows{Conn: uint64(w.conn), Stream: uint64(w.stream)}
	if out.Stream == 0 {
		out.Stream = d.Stream
		if out.Conn != 0 {
			out.Stream = min(out.Stream, out.Conn)
		}
	}
	if out.Conn == 0 {
		out.Conn = max(d.Conn, out.Stream)
	}
	out.Conn = max(out.Conn, out.Stream)
	return out
}
